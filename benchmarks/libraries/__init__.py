"""How each library computes a workload: one module per library.

Each module has

- ``VERSION``;
- ``tensors(bases, row)``: the library's own tensors in the row's layout, made before the timing;
- ``variants(row, tensors)``: the ways to compute the result that may be the fastest, by name. It is
  empty if the library has no such operation. Out of place, a variant returns a new row-major result
  and does not change x. In place, it writes x. Backward, it returns the result and the gradients of
  x and of values;
- ``array(tensor)``: a result as a NumPy array.

A variant is a callable without arguments. A single call is a `functools.partial`, and a few short
statements are a `Lines`. Both are inlined into the timed loop, so that the time of a tiny call does
not include another Python frame.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.rows import Row

Loop = Callable[[int], int]


class Lines:
    """Statements that assign their result to ``y``, and the values of the names in them."""

    def __init__(self, text: str, **names: Any) -> None:
        self.text = text
        self.names = names
        self.code = compile(text, "variant", "exec")

    def __call__(self) -> Any:
        scope = dict(self.names)
        exec(self.code, scope)
        return scope["y"]


Variant = Callable[[], Any]
Variants = dict[str, Variant]


def with_gradients(
    found: Variants, t: dict[str, Any], grad: Callable[[Any, list[Any], Any], Sequence[Any]]
) -> Variants:
    """Variants that also compute the gradients of x and values, with a library's ``grad``."""
    inputs = [t[name] for name in ("x", "values") if name in t]

    def then(variant: Variant) -> Variant:
        def both() -> list[Any]:
            result = variant()
            return [result, *grad(result, inputs, t["weights"])]

        return both

    return {f"{name}, grad": then(variant) for name, variant in found.items()}


def packed(found: Variants, row: Row, pack: Callable[[Any], Any]) -> Variants:
    """Variants that copy their result to row-major order if it has other strides."""
    if row.layout == "contiguous" or row.mode != "out of place":
        return found

    def then(variant: Variant) -> Variant:
        return lambda: pack(variant())

    return {name: then(variant) for name, variant in found.items()}


def timed_loop(variant: Variant) -> Loop:
    """A function that calls a variant n times, drops each result, and returns the nanoseconds."""
    if isinstance(variant, Lines):
        names, body = variant.names, f"{variant.text}; del y"
    elif isinstance(variant, partial):
        names = {f"a{n}": value for n, value in enumerate(variant.args)}
        words = [*names, *(f"{name}={name}" for name in variant.keywords)]
        names = {**names, **variant.keywords, "function": variant.func}
        body = f"function({', '.join(words)})"
    else:
        names, body = {"function": variant}, "function()"
    scope: dict[str, Any] = {"repeat": itertools.repeat, "clock": time.perf_counter_ns}
    # The names become arguments of an outer function, so the loop reads them as closure variables.
    source = f"""\
def outer({", ".join(names)}):
    def loop(calls):
        start = clock()
        for _ in repeat(None, calls):
            {body}
        return clock() - start
    return loop
"""
    exec(source, scope)
    return scope["outer"](**names)
