"""Programs in files, pickles and copies, and the exceptions of the file system."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from programs import chain, eager, feeds

import inlay
from inlay import static


class Place:
    """An `os.PathLike` that is no `Path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


def test_paths_may_be_strings_or_path_like(tmp_path: Path) -> None:
    program, y = chain()
    path, feed = tmp_path / "chain.inlay", feeds()
    for given in (str(path), path, Place(path)):
        path.unlink(missing_ok=True)
        static.save(program, given, {"y": y})
        (result,) = static.Executor().run(static.load(given), feed)
        np.testing.assert_array_equal(result, eager(feed))


def test_a_missing_file_is_a_file_not_found_error(tmp_path: Path) -> None:
    path = tmp_path / "nothing.inlay"
    with pytest.raises(FileNotFoundError) as raised:
        static.load(path)
    assert raised.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as expected:
        path.open()
    assert raised.value.errno == expected.value.errno
    assert raised.value.strerror == expected.value.strerror
    program, y = chain()
    with pytest.raises(FileNotFoundError):
        static.save(program, tmp_path / "no" / "folder.inlay", {"y": y})


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    # Windows reports a folder as a lack of permission.
    refused = PermissionError if os.name == "nt" else IsADirectoryError
    program, y = chain()
    with pytest.raises(refused):
        static.load(tmp_path)
    with pytest.raises(refused):
        static.save(program, tmp_path, {"y": y})


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read every file"
)
def test_a_file_that_may_not_be_read_is_a_permission_error(tmp_path: Path) -> None:
    path = tmp_path / "secret.inlay"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(PermissionError):
        static.load(path)


@pytest.mark.parametrize(
    "again",
    [lambda program: pickle.loads(pickle.dumps(program)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
def test_a_copy_is_the_whole_program_and_independent(again: object) -> None:
    program, y = chain()
    program.set_outputs({"y": y})
    other = again(program)  # type: ignore[operator]
    assert isinstance(other, static.Program)
    assert str(other) == str(program)
    feed = feeds()
    (result,) = static.Executor().run(other, feed)
    np.testing.assert_array_equal(result, eager(feed))
    other.data("another", [None])
    assert len(other) == len(program) + 1
    with pytest.raises(ValueError, match="different programs"):
        other.run(feed, [y])


def test_a_program_without_outputs_can_be_pickled() -> None:
    program = static.Program()
    program.data("x", [None, 2], "float64")
    other = pickle.loads(pickle.dumps(program))
    assert other.inputs == ["x"]
    assert len(pickle.loads(pickle.dumps(static.Program()))) == 0
    with pytest.raises(inlay.InlayValueError, match="no program of Inlay"):
        inlay._inlay._rebuild_program(b"damaged")


def test_a_listing_is_written_as_python_would() -> None:
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None, 2], "float32")
        y = inlay.scatter(x, [0], [[1.0, 2.0]], overwrite=False, reduce="mean")
        y[1:3, None] = 2.0
        y.cast("float64").sum(axis=1, keepdim=True).reshape([-1])
    text = str(program)
    for part in (
        "axis=0, reduce='mean', include_self=False)",
        "[1:3, None])",
        "dtype='float64')",
        "axes=[1], keepdim=True)",
        "shape=[-1])",
    ):
        assert part in text, text
    for rust in ("Some(", "Known(", "Symbol", "true", "false", "{"):
        assert rust not in text, text
