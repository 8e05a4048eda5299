"""The process of one or more libraries. It reads commands from its parent as lines of JSON.

``python -m benchmarks.worker LIBRARY...`` answers ``prepare`` with the variants that it tried and
the one that it chose, and ``time`` with the seconds that a call took. Each command names a library.
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
from benchmarks.libraries import Loop, Variant, timed_loop
from benchmarks.rows import Row, row

LONG = 0.02  # seconds; the shortest duration of a timing
WARM = 0.03  # seconds of warm-up; the scheduler needs time to move woken threads to different cores
TRIAL = 0.004  # seconds of a timing that only serves to choose a variant
TRIALS = 3  # timings per variant; the fastest counts
COLD = 0.2  # seconds; a call that takes longer needs no warm-up
SLOW = 3.0  # a variant that is this many times slower than the fastest is timed with one call
HOPELESS = 50.0  # one this many times slower is not timed again; its first call may have compiled
EXPECTED = ("result", "grad_x", "grad_values")
LIMITS = ("limit", "gpu-copy", "matmul")  # these compute no result


def seconds(run: Loop, at_least: float, guess: float) -> float:
    """The time of one call, averaged over as many calls as take `at_least` seconds."""
    calls = max(1, round(at_least / max(guess, 1e-8)))
    while True:
        taken = run(calls) / 1e9
        if taken >= at_least / 2 or taken / calls >= at_least:
            return taken / calls
        calls = max(calls * 2, round(calls * at_least / max(taken, 1e-8)))


class Worker:
    """A library with the tensors of a workload and the variant that is timed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.library = importlib.import_module(f"benchmarks.libraries.{name.replace('-', '_')}_")
        self.release()

    def hello(self) -> dict[str, str]:
        found = {"version": self.library.VERSION, "numpy": np.__version__}
        device = getattr(self.library, "DEVICE", None)
        return found if device is None else {**found, "device": device}

    def release(self) -> None:
        self.tensors: dict[str, Any] = {}
        self.loop: Loop | None = None
        self.guess = 0.0
        gc.collect()

    def results(self, given: Row, variant: Variant) -> inputs.Arrays:
        found = variant()
        if self.name in LIMITS:
            return {}
        if given.mode != "backward":
            found = [found]
        # The copy is needed because a later call may reuse the memory.
        return {
            name: np.array(self.library.array(one))
            for name, one in zip(EXPECTED, found, strict=False)
        }

    def prepare(self, given: Row, folder: Path, without: list[str], say: Any) -> dict[str, Any]:
        """Try every variant, and keep the fastest one with the expected result."""
        bases = inputs.load(folder, given)
        expected = {name: bases.pop(name) for name in EXPECTED if name in bases}
        if self.name not in LIMITS:
            bases.pop("moved", None)
        self.tensors = self.library.tensors(bases, given)
        variants = self.library.variants(given, self.tensors)
        before = np.array(self.library.array(self.tensors["x"])) if "x" in self.tensors else None
        tried: dict[str, dict[str, Any]] = {}
        loops: dict[str, Loop] = {}
        best = float("inf")
        for name in list(variants):
            if name in without:
                continue
            say({"trying": name})
            if given.mode == "in place":  # each variant needs a new x
                self.tensors = self.library.tensors(bases, given)
                variants = self.library.variants(given, self.tensors)
            try:
                start = time.perf_counter()
                found = self.results(given, variants[name])
                first = time.perf_counter() - start
                verdict, error = "same", 0.0
                if self.name not in LIMITS:
                    verdict, error = reference.compare(given, found, expected)
                if before is not None and given.mode != "in place":
                    x = np.array(self.library.array(self.tensors["x"]))
                    if not np.array_equal(x, before):
                        raise RuntimeError("x was written")
                loops[name] = timed_loop(variants[name])
                taken = first
                if first < HOPELESS * best:
                    taken = loops[name](1) / 1e9
                if taken < SLOW * best and taken < COLD:
                    taken = min(seconds(loops[name], TRIAL, taken) for _ in range(TRIALS))
            except Exception as error_:
                tried[name] = {"error": f"{type(error_).__name__}: {error_}".splitlines()[0][:200]}
                continue
            best = min(best, taken)
            tried[name] = {"seconds": taken, "verdict": verdict, "error": error}
        return self.choose(given, tried, loops, bases)

    def choose(
        self, given: Row, tried: dict[str, Any], loops: dict[str, Loop], bases: inputs.Arrays
    ) -> dict[str, Any]:
        able = {name: one for name, one in tried.items() if "seconds" in one}
        right = {name: one for name, one in able.items() if one["verdict"] != "different"}
        pool = right or able
        if not pool:
            self.release()
            return {"tried": tried, "variant": None}
        name = min(pool, key=lambda name: pool[name]["seconds"])
        if given.mode == "in place":
            self.tensors = self.library.tensors(bases, given)
            loops[name] = timed_loop(self.library.variants(given, self.tensors)[name])
        self.loop, self.guess = loops[name], pool[name]["seconds"]
        return {"tried": tried, "variant": name, **pool[name]}

    def time(self, pieces: int) -> dict[str, Any]:
        """Time the variant in one or more pieces. The fastest piece counts."""
        assert self.loop is not None
        gc.disable()
        if self.guess < COLD:
            seconds(self.loop, WARM, self.guess)
        taken = min(seconds(self.loop, LONG / pieces, self.guess) for _ in range(pieces))
        gc.enable()
        self.guess = taken
        return {"seconds": taken}


def main() -> None:
    # Libraries may print to stdout, but only messages may reach the parent.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    if sys.platform == "linux":  # the parent may end while this process is suspended
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")

    workers = {name: Worker(name) for name in sys.argv[1:]}
    say({name: worker.hello() for name, worker in workers.items()})
    for line in sys.stdin:
        message = json.loads(line)
        worker = workers[message["library"]]
        if message["do"] == "prepare":
            folder = Path(message["folder"])
            say(worker.prepare(row(message["row"]), folder, message["without"], say))
        elif message["do"] == "time":
            say(worker.time(message["pieces"]))
        else:
            worker.release()
            say({})


if __name__ == "__main__":
    main()
