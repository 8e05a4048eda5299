"""How each library gets to the result of a workload: one module a library.

Each module has

- ``VERSION``;
- ``tensors(bases, row)``: the library's own tensors, in the row's layout, made before the clock
  starts;
- ``roads(row, tensors)``: every way to the result that may be the fastest, by a name; none, where
  the library has no such operation. Out of place a road gives a fresh result, in row-major order,
  and keeps x; in place it writes x; backward it gives the result and its gradients to x and to
  values;
- ``array(tensor)``: a result as a NumPy array.

A road is a call that awaits no arguments. One call is a `functools.partial`, a few short statements
are a `Lines`: both are timed as if they stood in the loop, so that tiny calls are not timed with a
frame of Python around them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.rows import Row

Lap = Callable[[int], int]


class Lines:
    """Statements that leave their result in ``y``, and what their names mean."""

    def __init__(self, text: str, **names: Any) -> None:
        self.text = text
        self.names = names
        self.code = compile(text, "road", "exec")

    def __call__(self) -> Any:
        scope = dict(self.names)
        exec(self.code, scope)
        return scope["y"]


Road = Callable[[], Any]
Roads = dict[str, Road]


def packed(found: Roads, row: Row, pack: Callable[[Any], Any]) -> Roads:
    """Roads to a result in row-major order, for a library that may keep its inputs' strides."""
    if row.layout == "contiguous" or row.mode != "out of place":
        return found

    def then(road: Road) -> Road:
        return lambda: pack(road())

    return {name: then(road) for name, road in found.items()}


def lap(road: Road) -> Lap:
    """A function that runs a road some times, drops each result, and returns the nanoseconds."""
    if isinstance(road, Lines):
        names, body = road.names, f"{road.text}; del y"
    elif isinstance(road, partial):
        names = {f"a{n}": value for n, value in enumerate(road.args)}
        words = [*names, *(f"{name}={name}" for name in road.keywords)]
        names = {**names, **road.keywords, "function": road.func}
        body = f"function({', '.join(words)})"
    else:
        names, body = {"function": road}, "function()"
    scope: dict[str, Any] = {"repeat": itertools.repeat, "clock": time.perf_counter_ns}
    # The names are arguments of an outer function, so that the loop finds them without a search.
    source = f"""\
def outer({", ".join(names)}):
    def lap(calls):
        start = clock()
        for _ in repeat(None, calls):
            {body}
        return clock() - start
    return lap
"""
    exec(source, scope)
    return scope["outer"](**names)
