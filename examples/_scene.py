"""A scene of the tour, and how its writes are traced.

This module does not know where an operation writes. It changes each element slightly and runs the
call again: the element was written to the places whose value changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import inlay

NUDGE = 2.0**-10  # exact in float32 when added to the small numbers of the tour
COLOURS = 9  # the number of colours that tell elements apart
SELF = -1  # the colour of a place's own old value


@dataclass(frozen=True)
class Scene:
    """One call on small tensors."""

    title: str
    call: str  # the code; its last line is the result, or writes into the base
    use: str  # what people use it for
    data: dict[str, np.ndarray]  # the base first
    show: tuple[str, ...]  # names by column; names in one column are stacked
    paint: str = ""  # the input whose elements colour the places that they are written to
    by: int | None = None  # the axis along which colours differ; None: one colour per element
    after: str = "after"  # the name of the result

    def run(self, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All variables once the call has run, its result under the name `after`."""
        scope: dict[str, Any] = {name: inlay.to_tensor(value) for name, value in data.items()}
        *first, last = self.call.splitlines()
        exec("\n".join(first), {"inlay": inlay}, scope)
        try:
            scope["after"] = eval(last, {"inlay": inlay}, scope)
        except SyntaxError:  # a statement: `x[...] = v`
            exec(last, {"inlay": inlay}, scope)
            scope["after"] = scope[next(iter(data))]
        return {name: np.array(value) for name, value in scope.items()}

    def reach(self, name: str, result: np.ndarray) -> np.ndarray:
        """For each element of an input, which places of the result depend on it."""
        value = self.data[name]
        reached = np.zeros((value.size, result.size), bool)
        for k in range(value.size):
            for nudge in (NUDGE, -NUDGE):
                nudged = value.copy()
                nudged.flat[k] += nudge
                reached[k] |= (self.run({**self.data, name: nudged})["after"] != result).ravel()
        return reached


@dataclass(frozen=True)
class Cell:
    """One element as it is drawn."""

    text: str
    kind: str = "kept"  # kept, written, constant, unused; where (of an index); yes, no (of a mask)
    colours: tuple[int, ...] = ()  # of the elements that it came from, in their order


@dataclass(frozen=True)
class Grid:
    """One tensor as it is drawn."""

    name: str
    rows: list[list[Cell]]


def trace(scene: Scene) -> list[list[Grid]]:
    """The scene's columns of grids: run, traced and coloured."""
    scope = scene.run(scene.data)
    result = scope["after"]
    base = next(iter(scene.data))
    kept = scene.reach(base, result).any(axis=0)
    cells: dict[str, list[Cell]] = {}

    colours_at: list[tuple[int, ...]] = [()] * result.size
    if scene.paint:
        reached = scene.reach(scene.paint, result)
        used = reached.any(axis=1)
        shape = scene.data[scene.paint].shape
        group = np.arange(used.size) if scene.by is None else np.indices(shape)[scene.by].ravel()
        groups = sorted(set(group.tolist()))
        if len(groups) > COLOURS:  # then only those that are used
            groups = sorted(set(group[used].tolist()))
        colour = {g: i for i, g in enumerate(groups)}
        cells[scene.paint] = [
            Cell(text(v), "written", (colour[g],)) if u else Cell(text(v), "unused")
            for v, g, u in zip(scene.data[scene.paint].flat, group.tolist(), used, strict=True)
        ]
        own = (SELF,) if scene.paint != base else ()
        for place, from_base in enumerate(kept):
            found = tuple(colour[g] for g in group[reached[:, place]].tolist())
            colours_at[place] = own + found if found and from_base else found
    cells["after"] = [
        Cell(text(v), "written" if c else "kept" if k else "constant", c)
        for v, c, k in zip(result.flat, colours_at, kept, strict=True)
    ]

    def grid(name: str, alone: bool) -> Grid:
        value = {**scope, **scene.data}[name]  # an input as it was before the call
        upright = value.ndim == 1 and alone and value.dtype.kind in "bi"
        width = 1 if upright else value.shape[-1]
        flat = cells.get(name) or [Cell(text(v), kind(v)) for v in value.flat]
        rows = [flat[i : i + width] for i in range(0, len(flat), width)]
        return Grid(scene.after if name == "after" else name, rows)

    return [[grid(name, len(c.split()) == 1) for name in c.split()] for c in scene.show]


def text(value: np.generic) -> str:
    """A value in as few characters as possible."""
    return ".T"[int(value)] if value.dtype.kind == "b" else f"{value:g}"


def kind(value: np.generic) -> str:
    """How an element of an input without colours is drawn."""
    if value.dtype.kind == "b":
        return "yes" if value else "no"
    return "where" if value.dtype.kind == "i" else "kept"
