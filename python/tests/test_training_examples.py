"""Tests that the examples that train or trace run as scripts and give the promised results."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def shown(name: str, folder: Path, *options: str) -> str:
    """The output of an example when it runs in a temporary directory."""
    done = run(name, folder, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_karate_club_is_split_as_it_was(tmp_path) -> None:
    text = shown("karate_club.py", tmp_path, "--picture", "none")
    assert not list(tmp_path.iterdir())
    sides = {
        side: set(map(int, members.split(", ")))
        for side, members in re.findall(r"^With the (\w+): ([\d, ]+)$", text, re.MULTILINE)
    }
    instructor = {*range(9), *range(10, 14), 16, 17, 19, 21}
    assert sides["instructor"] | sides["president"] == set(range(34))
    assert not sides["instructor"] & sides["president"]
    wrong = sides["instructor"] ^ instructor
    assert len(wrong) <= 1, wrong
    assert f"\n{34 - len(wrong)} of 34 right" in text


def test_karate_club_graph_is_zacharys(monkeypatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    karate = __import__("karate_club")
    pairs = {tuple(sorted(pair)) for pair in karate.PAIRS.tolist()}
    assert len(pairs) == len(karate.PAIRS) == 78
    degrees = [sum(member in pair for pair in pairs) for member in range(34)]
    assert degrees == [
        *(16, 9, 10, 6, 3, 4, 4, 4, 5, 2, 3, 1, 2, 5, 2, 2, 2),
        *(2, 2, 3, 2, 2, 2, 5, 3, 3, 2, 4, 3, 4, 4, 6, 12, 17),
    ]
    assert karate.WENT_WITH_INSTRUCTOR.sum() == 17


def test_karate_on_a_chosen_kind_of_tensors(tmp_path) -> None:
    text = shown("karate.py", tmp_path, "inlay")
    losses = [float(loss) for loss in re.findall(r"^ *\d+ +(\d\.\d+)$", text, re.MULTILINE)]
    assert len(losses) == 11
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 10_000
    assert re.search(r"^right +3[34] of 34$", text, re.MULTILINE)
    refused = run("karate.py", tmp_path, "tensorflow")
    assert refused.returncode == 1
    assert refused.stderr == "usage: python examples/karate.py [inlay|torch|paddle|jax]\n"


def test_covariance_is_recovered(tmp_path) -> None:
    text = shown("covariance.py", tmp_path, "--picture", "none")
    assert not list(tmp_path.iterdir())
    (error,) = re.findall(r"^relative error (\S+)$", text, re.MULTILINE)
    assert float(error) < 1e-4
    losses = [float(loss) for loss in re.findall(r"^ *\d+ +(\S+) +\S+$", text, re.MULTILINE)]
    assert len(losses) > 5
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("name", ["karate_club", "covariance"])
def test_training_takes_steps(tmp_path, name) -> None:
    before = shown(f"{name}.py", tmp_path, "--picture", "none", "--steps", "0")
    after = shown(f"{name}.py", tmp_path, "--picture", "none", "--steps", "3")
    assert before.splitlines()[:2] == after.splitlines()[:2]
    assert before != after
    refused = run(f"{name}.py", tmp_path, "--picture", "none", "--steps", "-1")
    assert refused.returncode == 2
    assert "--steps must be 0 or more" in refused.stderr


@pytest.mark.parametrize("name", ["karate_club", "covariance"])
def test_training_draws_a_picture(tmp_path, name) -> None:
    pytest.importorskip("matplotlib", reason="only `make demo` installs it, for the picture alone")
    picture = Path("pictures") / f"{name}.png"
    assert f"As a picture: {picture}" in shown(f"{name}.py", tmp_path, "--picture", str(picture))
    content = (tmp_path / picture).read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(content) > 30_000


@pytest.mark.parametrize("name", ["karate_club", "covariance"])
def test_a_picture_needs_matplotlib(tmp_path, name) -> None:
    code = f"""if True:
        import runpy, sys
        sys.modules["matplotlib"] = None
        sys.path.insert(0, {str(EXAMPLES)!r})
        sys.argv = ["{name}.py", "--steps", "1"]
        runpy.run_path({str(EXAMPLES / name)!r} + ".py", run_name="__main__")
    """
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "Install matplotlib, or pass --picture none." in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_static_graph_is_shown_and_gives_the_same_bits(tmp_path) -> None:
    text = shown("static_graph.py", tmp_path, "--picture", "graph.svg")
    assert "'messages', static_graph.py:" in text
    assert "copies saved: 3" in text
    assert "The same bits as eager: True" in text
    assert (tmp_path / "graph.svg").read_text().startswith("<svg")
