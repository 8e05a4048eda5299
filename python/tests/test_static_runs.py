"""Runs of programs: errors that name the source line, threads, files."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import chain, eager, feeds

import inlay
from inlay import static

# Errors.


def test_errors_when_built_have_name_and_line() -> None:
    program = static.Program()
    x = program.data("x", [None, 3], "float32")
    with pytest.raises(
        ValueError, match=r"scatter: updates has shape \[2, 4\].*'rows', test_static_runs.py"
    ):
        inlay.scatter(x, [0, 1], np.zeros((2, 4), "f4"), name="rows")
    with pytest.raises(TypeError, match="scatter: updates has dtype float64"):
        inlay.scatter(x, [0, 1], np.zeros((2, 3)))
    # The failed operation is not in the program.
    assert len(program) == 1 or "scatter" not in str(program)


def test_errors_when_run_have_name_and_line_and_change_nothing() -> None:
    program, y = chain()
    feed = feeds()
    bad = {**feed, "index": np.array([1, 9])}
    with pytest.raises(IndexError, match=r"index\[1\] is 9.*'totals', programs.py:\d+"):
        static.Executor().run(program, bad, [y])
    short = {**feed, "mask": np.ones((5, 5), bool)}
    with pytest.raises(ValueError, match="masked_scatter: source has 10 elements, mask selects 25"):
        static.Executor().run(program, short, [y])
    np.testing.assert_array_equal(static.Executor().run(program, feed, [y])[0], eager(feed))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"x": None}, r'feed "x" is missing, expected float32 \[\?, \?\]'),
        ({"z": np.zeros(1)}, r'feed "z" is not among the program\'s inputs \["index"'),
        ({"x": np.zeros(5, "f4")}, r'feed "x" is float32 \[5\], expected float32 \[\?, \?\]'),
    ],
)
def test_wrong_feeds_are_named(change: dict[str, Any], text: str) -> None:
    program, y = chain()
    feed = {name: value for name, value in {**feeds(), **change}.items() if value is not None}
    with pytest.raises(ValueError, match=text):
        static.Executor().run(program, feed, [y])


def test_a_feed_of_another_dtype_is_a_type_error() -> None:
    program, y = chain()
    text = 'run: feed "x" has dtype float64, expected float32'
    with pytest.raises(inlay.InlayTypeError, match=text):
        static.Executor().run(program, {**feeds(), "x": np.zeros((5, 5))}, [y])


def test_values_are_not_there_when_built() -> None:
    program = static.Program()
    x = program.data("x", [], "float32")
    for ask in (
        bool,
        float,
        int,
        lambda x: x.item(),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        np.asarray,
    ):
        with pytest.raises(RuntimeError, match=r"is symbolic.*use where"):
            ask(x)


def test_programs_are_not_mixed() -> None:
    x, y = static.Program().data("x", [2]), static.Program().data("y", [2])
    with pytest.raises(ValueError, match="different programs"):
        x + y
    with pytest.raises(ValueError, match="different programs"):
        static.Program().plan([x])


def test_a_parameter_is_not_taken_as_a_constant() -> None:
    x = static.Program().data("x", [2])
    with pytest.raises(RuntimeError, match="wants a gradient but is no input"):
        x * inlay.to_tensor([1.0, 2.0], stop_gradient=False)


# Threads.


def test_many_threads_run_one_program() -> None:
    program, y = chain()
    executor, failures = static.Executor(), []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(30):
            size = int(rng.integers(3, 9))
            feed = {**feeds(size), "x": rng.random((size, size), np.float32)}
            if rng.integers(4) == 0:
                with pytest.raises(IndexError):
                    executor.run(program, {**feed, "index": np.array([0, size])}, [y])
            if not np.array_equal(executor.run(program, feed, [y])[0], eager(feed)):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Files.


def test_a_program_runs_in_another_process(tmp_path: Path) -> None:
    program, y = chain()
    path, feed = tmp_path / "chain.inlay", feeds()
    static.save(program, str(path), {"y": y})
    np.savez(tmp_path / "feed.npz", **feed)
    script = """
import sys, numpy as np
from inlay import static
program = static.load(sys.argv[1])
assert program.inputs == ["x", "rows", "index", "mask"] and program.outputs == ["y"]
(y,) = static.Executor().run(program, dict(np.load(sys.argv[2])))
np.save(sys.argv[3], y)
"""
    files = [str(path), str(tmp_path / "feed.npz"), str(tmp_path / "y.npy")]
    done = subprocess.run([sys.executable, "-c", script, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), eager(feed))


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    program, y = chain()
    path = tmp_path / "chain.inlay"
    static.save(program, str(path), {"y": y})
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="load: "):
            static.load(str(path))
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="load: "):
            static.load(str(path))
    with pytest.raises(ValueError, match="no outputs"):
        static.save(static.Program(), str(path))
