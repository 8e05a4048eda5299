"""A chain of writes as a program: its nodes, its plan, and its time beside eager calls.

Run it as ``python examples/static_graph.py [--picture FILE]``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import inlay
from inlay import static


def update(cache: Any, step: Any, scale: Any, rows: Any, gates: Any) -> Any:
    """A step of a decoder's memory: new rows, a decayed diagonal, messages, and a reset."""
    cache = inlay.slice_scatter(cache, step, start=0, stop=64, name="new rows")
    cache = inlay.diagonal_scatter(cache, scale, name="decay")
    cache = inlay.scatter(cache, rows, step, overwrite=False, include_self=True, name="messages")
    return inlay.masked_fill(cache, gates, 0.0, name="reset")


def milliseconds(call: Callable[[], Any], rounds: int = 15) -> float:
    """The median time of a call."""
    call()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)) * 1e3


def main() -> None:
    """Build the program, show it, run it, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", default="out/static_graph.svg", help="or none")
    picture = parser.parse_args().picture

    program = static.Program()
    with static.program_guard(program):
        inputs = [
            static.data("cache", [None, None]),
            static.data("step", [64, None]),
            static.data("scale", [None]),
            static.data("rows", [64], "int64"),
            static.data("gates", [None, 1], "bool"),
        ]
        result = update(*inputs)
    print(program)

    rng = np.random.default_rng(0)
    given = {
        "cache": rng.random((2048, 2048), np.float32),
        "step": rng.random((64, 2048), np.float32),
        "scale": rng.random(2048, np.float32),
        "rows": rng.integers(0, 2048, 64),
        "gates": rng.random((2048, 1)) < 0.01,
    }
    tensors = {name: inlay.to_tensor(array) for name, array in given.items()}
    executor = static.Executor()

    def by_program() -> Any:
        return executor.run(program, tensors, [result], return_numpy=False)[0]

    def eager() -> Any:
        return update(*tensors.values())

    same = by_program().numpy().tobytes() == eager().numpy().tobytes()
    print(program.explain([result]))
    print(f"The same bits as eager: {same}")
    print(f"eager {milliseconds(eager):.2f} ms, program {milliseconds(by_program):.2f} ms")
    if picture != "none":
        file = Path(picture)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(program.to_svg(), encoding="utf-8")
        print(f"drawn: {picture}")


if __name__ == "__main__":
    main()
