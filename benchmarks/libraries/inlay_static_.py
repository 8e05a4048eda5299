"""Inlay's static graphs: functions traced by ``inlay.jit``, and the build of a large program."""

from __future__ import annotations

from functools import partial
from typing import Any

import inlay
from benchmarks.libraries import Variants
from benchmarks.libraries.inlay_ import VERSION, array, tensors
from benchmarks.libraries.inlay_chains import function
from benchmarks.rows import CHAINS, Row
from inlay import static

__all__ = ["VERSION", "array", "tensors", "variants"]


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if row.op == "build_program":
        return {"build, plan, run": partial(build, row, t["x"])}
    if row.op not in CHAINS:
        return {}
    chain = function(row)
    traced = inlay.jit(lambda *values: chain(**dict(zip(t, values, strict=True))))
    return {"jit": partial(traced, *t.values())}


def build(row: Row, x: Any) -> Any:
    """Build, plan and run a program with one node per entry."""
    program = static.Program()
    y = program.data("x", [None] * x.ndim, x.dtype)
    for _ in range(row.entries):
        y = inlay.transpose(y, [1, 0])
    (result,) = static.Executor().run(program, {"x": x}, [y], return_numpy=False)
    return result
