"""One library in a process of its own: told by its parent, in lines of JSON, what to time.

``python -m benchmarks.worker NAME`` answers ``prepare`` with the roads it found and the one it
took, ``time`` with the seconds that a call took, ``release`` with nothing.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import inputs, reference
from benchmarks.roads import Lap, Road, lap
from benchmarks.rows import Row, row

LONG = 0.02  # seconds that a timing lasts at least
WARM = 0.03  # and before it: threads that have slept get cores of their own only after a while
TRIAL = 0.004  # and one that only chooses a road
TRIALS = 3  # of which the best counts
COLD = 0.2  # a call as long as this needs no warm caches
SLOW = 3.0  # a road this many times slower than another is not timed with care
HOPELESS = 50.0  # nor at all; high, since the first call may compile
EXPECTED = ("result", "grad_x", "grad_values")
LIMITS = ("limit", "gpu-copy")  # which compute nothing


def seconds(run: Lap, at_least: float, guess: float) -> tuple[float, int]:
    """The time of one call, out of as many as last long enough, and how many these were."""
    calls = max(1, round(at_least / max(guess, 1e-8)))
    while True:
        taken = run(calls) / 1e9
        if taken >= at_least / 2 or taken / calls >= at_least:
            return taken / calls, calls
        calls = max(calls * 2, round(calls * at_least / max(taken, 1e-8)))


class Worker:
    """What a library is timed at: its tensors, and the road it takes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.library = importlib.import_module(f"benchmarks.roads.{name.replace('-', '_')}_")
        self.release()

    def release(self) -> None:
        self.tensors: dict[str, Any] = {}
        self.lap: Lap | None = None
        self.guess = 0.0
        gc.collect()

    def results(self, given: Row, road: Road) -> inputs.Arrays:
        found = road()
        if self.name in LIMITS:
            return {}
        if given.mode != "backward":
            found = [found]
        # A copy: a later call may write the memory, and a view would keep it.
        return {
            name: np.array(self.library.array(one))
            for name, one in zip(EXPECTED, found, strict=False)
        }

    def prepare(self, given: Row, folder: Path, without: list[str], say: Any) -> dict[str, Any]:
        """Try every road; keep the fastest of those that lead to the right result."""
        bases = inputs.load(folder, given)
        expected = {name: bases.pop(name) for name in EXPECTED if name in bases}
        if self.name not in LIMITS:
            bases.pop("moved", None)
        self.tensors = self.library.tensors(bases, given)
        roads = self.library.roads(given, self.tensors)
        before = np.array(self.library.array(self.tensors["x"])) if "x" in self.tensors else None
        tried: dict[str, dict[str, Any]] = {}
        laps: dict[str, Lap] = {}
        best = float("inf")
        for name in list(roads):
            if name in without:
                continue
            say({"trying": name})
            if given.mode == "in place":  # each needs an x that no other has written
                self.tensors = self.library.tensors(bases, given)
                roads = self.library.roads(given, self.tensors)
            try:
                start = time.perf_counter()
                found = self.results(given, roads[name])
                first = time.perf_counter() - start
                verdict, error = "same", 0.0
                if self.name not in LIMITS:
                    verdict, error = reference.compare(given, found, expected)
                if before is not None and given.mode != "in place":
                    x = np.array(self.library.array(self.tensors["x"]))
                    if not np.array_equal(x, before):
                        raise RuntimeError("x was written")
                laps[name] = lap(roads[name])
                taken = first
                if first < HOPELESS * best:
                    taken = laps[name](1) / 1e9
                if taken < SLOW * best and taken < COLD:
                    taken = min(seconds(laps[name], TRIAL, taken)[0] for _ in range(TRIALS))
            except Exception as error_:
                tried[name] = {"error": f"{type(error_).__name__}: {error_}".splitlines()[0][:200]}
                continue
            best = min(best, taken)
            tried[name] = {"seconds": taken, "verdict": verdict, "error": error}
        return self.choose(given, tried, laps, bases)

    def choose(
        self, given: Row, tried: dict[str, Any], laps: dict[str, Lap], bases: inputs.Arrays
    ) -> dict[str, Any]:
        able = {name: road for name, road in tried.items() if "seconds" in road}
        right = {name: road for name, road in able.items() if road["verdict"] != "different"}
        pool = right or able
        if not pool:
            self.release()
            return {"tried": tried, "road": None}
        name = min(pool, key=lambda name: pool[name]["seconds"])
        if given.mode == "in place":
            self.tensors = self.library.tensors(bases, given)
            laps[name] = lap(self.library.roads(given, self.tensors)[name])
        self.lap, self.guess = laps[name], pool[name]["seconds"]
        return {"tried": tried, "road": name, **pool[name]}

    def time(self) -> dict[str, Any]:
        assert self.lap is not None
        gc.disable()
        if self.guess < COLD:
            seconds(self.lap, WARM, self.guess)
        taken, calls = seconds(self.lap, LONG, self.guess)
        gc.enable()
        self.guess = taken
        return {"seconds": taken, "calls": calls}


def main() -> None:
    name = sys.argv[1]
    # Libraries print; the parent reads only what is meant for it.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    if sys.platform == "linux":  # the parent may go while this process is stopped
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")

    worker = Worker(name)
    hello = {"version": worker.library.VERSION, "numpy": np.__version__}
    if hasattr(worker.library, "DEVICE"):
        hello["device"] = worker.library.DEVICE
    say(hello)
    for line in sys.stdin:
        message = json.loads(line)
        if message["do"] == "prepare":
            folder = Path(message["folder"])
            say(worker.prepare(row(message["row"]), folder, message["without"], say))
        elif message["do"] == "time":
            say(worker.time())
        else:
            worker.release()
            say({})


if __name__ == "__main__":
    main()
