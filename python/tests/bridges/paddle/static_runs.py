"""Starts `static_worker.py`, and goes on in another process where one dies."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

WORKER = Path(__file__).parent / "static_worker.py"


@cache
def problems(mode: str) -> dict[str, str | None]:
    """The problem of each case of a mode; `None` if it has none."""
    found: dict[str, str | None] = {}
    first = 0
    while True:
        code, number, stderr = run(mode, first, found)
        if code == 0:
            return found
        found[list(found)[number]] = f"the process died with {code}:\n{stderr[-3000:]}"
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
