"""Tests that the tour runs as a script, shows every operation, and marks the written places."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import inlay

EXAMPLES = Path(__file__).parents[2] / "examples"
OPERATIONS = [
    "scatter",
    "slice_scatter",
    "diagonal_scatter",
    "masked_scatter",
    "tril_indices",
    "triu_indices",
    "put_along_axis",
    "index_select",
    "take_along_axis",
    "masked_select",
    "masked_fill",
    "index_fill",
    "select_scatter",
    "diagonal",
    "tril",
    "triu",
]
# The tour runs each operation to find the places to which an element is written.
SCENES = {
    "the last duplicate wins": """\
  >>> inlay.scatter(memory, slots, entries)
    memory        slots   entries            after
     0   0   0     2       1   2   3         [4] [5] [6]
     0   0   0     0      [4] [5] [6]         0   0   0
     0   0   0     2      [7] [8] [9]   ->   [7] [8] [9]
     0   0   0                                0   0   0
""",
    "a sum has several sources": """\
  >>> inlay.scatter(nodes, target, messages, overwrite=False, reduce="sum")
    target                     nodes
     0   2   2   3   2          50   60   70   80
    messages              ->   after
    [1] [2] [3] [4] [7]         [1]  60  [12]  [4]
""",
    "a maximum has one": """\
  >>> inlay.scatter(nodes, target, messages, overwrite=False, reduce="amax")
    target                     nodes
     0   2   2   3   2          50   60   70   80
    messages              ->   after
    [1]  2   3  [4] [7]         [1]  60   [7]  [4]
""",
    "a constant has none": """\
  >>> inlay.triu(x, diagonal=1)
    x                  after
     1   2   3         *0*  2   3
     4   5   6    ->   *0* *0*  6
     7   8   9         *0* *0* *0*
""",
    "in place, the input is shown as it was": """\
  >>> x[1:, ::2] = v
    x                 v              after
     0   0   0   0    [1] [2]         0   0   0   0
     0   0   0   0    [3] [4]   ->   [1]  0  [2]  0
     0   0   0   0                   [3]  0  [4]  0
""",
}


def tour(folder: Path, *options: str, **variables: str) -> str:
    """The output of the tour when it runs in a temporary directory."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "tour.py"), *options],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("tour")
    shown = tour(folder, "--color", "never", "--picture", "none")
    assert not list(folder.iterdir())
    return shown


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_called(plain, name) -> None:
    calls = [line for line in plain.splitlines() if line.startswith("  >>> ")]
    assert any(f"inlay.{name}(" in call for call in calls)


@pytest.mark.parametrize("reduce", ["sum", "mul", "mean", "amax", "amin"])
def test_every_reduction_is_called(plain, reduce) -> None:
    assert f'overwrite=False, reduce="{reduce}")' in plain
    assert "include_self=True)" in plain


def test_every_in_place_function_is_named(plain) -> None:
    for name in inlay.__all__:
        if name.endswith("_") and not name.startswith("_"):
            assert name in plain.split()


@pytest.mark.parametrize("scene", SCENES)
def test_marks_what_was_written_where(plain, scene) -> None:
    assert SCENES[scene] in plain


def test_colours_are_for_terminals_or_on_demand(tmp_path, plain) -> None:
    assert "\033" not in plain
    assert tour(tmp_path, "--picture", "none") == plain
    coloured = tour(tmp_path, "--color", "always", "--picture", "none", NO_COLOR="1")
    first, second = "\033[48;5;215;38;5;16m 4 \033[0m", "\033[48;5;114;38;5;16m 7 \033[0m"
    assert coloured.count(first) >= 2, "the source and the place written have one colour"
    assert coloured.count(second) >= 2


@pytest.mark.parametrize("name", ["pictures/tour.png", "tour.svg"])
def test_draws_a_picture(tmp_path, name) -> None:
    pytest.importorskip("matplotlib", reason="only `make demo` installs it, for the picture alone")
    shown = tour(tmp_path, "--color", "never", "--picture", name)
    assert f"The same as a picture: {Path(name)}" in shown
    starts = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml"}
    content = (tmp_path / name).read_bytes()
    assert content.startswith(starts[Path(name).suffix])
    assert len(content) > 50_000
