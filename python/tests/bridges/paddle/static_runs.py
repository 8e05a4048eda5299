"""Starts `static_worker.py`, and goes on in another process where one dies."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

WORKER = Path(__file__).parent / "static_worker.py"
#: Without Inlay, `to_static` around a plain `PyLayer` dies of this signal in 4 of 80 runs of Paddle
#: 3.3.1. A case that dies so is tried again once; if it dies again, it fails.
PADDLE_DIES = -signal.SIGSEGV


@cache
def problems(mode: str) -> dict[str, str | None]:
    """The problem of each case of a mode; `None` if it has none."""
    found: dict[str, str | None] = {}
    first, tried = 0, -1
    while True:
        code, number, stderr = run(mode, first, found)
        if code == 0:
            return found
        case = list(found)[number]
        if mode == "traced" and code == PADDLE_DIES and tried != number:
            first = tried = number
        else:
            found[case] = f"the process died with {code}:\n{stderr[-3000:]}"
            first = number + 1


def run(mode: str, first: int, found: dict[str, str | None]) -> tuple[int, int, str]:
    """Runs the cases from a number on. Returns the exit code, the last case, and stderr."""
    command = [sys.executable, "-W", "ignore", str(WORKER), mode, str(first)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    number = first
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue  # Paddle prints here, too
        told = json.loads(line)
        number = told.get("number", number)
        found[told["case"]] = told.get("problem", "it did not finish")
    if not found:
        raise RuntimeError(done.stderr[-3000:])
    return done.returncode, number, done.stderr
