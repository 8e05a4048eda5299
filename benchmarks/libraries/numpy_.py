"""NumPy: a copy and an assignment, and common alternatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.inputs import FILL, LAID, view
from benchmarks.libraries import Lines, Variant, Variants, packed
from benchmarks.reference import REDUCTIONS, reduction, region
from benchmarks.rows import Row

VERSION = np.__version__
Write = Callable[[np.ndarray], np.ndarray]


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    # The copy is needed because an in-place variant writes x.
    return {
        name: view(base.copy(), row.layout) if name in LAID else base
        for name, base in bases.items()
    }


def array(tensor: Any) -> np.ndarray:
    return np.array(tensor) if isinstance(tensor, tuple) else np.asarray(tensor)


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if row.mode == "backward":
        return {}
    x = t.get("x")
    found = {}
    for name, (text, names) in lines(row, t).items():
        if row.mode == "in place":
            found[name] = Lines(f"{text}; y = x", x=x, **names)
        else:
            text = text.replace("x", "y", 1)
            found[f"copy, {name}"] = Lines(f"y = x.copy(); {text}", x=x, **names)
    for name, write in writes(row, t).items():
        if row.mode == "in place":
            found[name] = partial(write, x)
        else:
            found[f"copy, {name}"] = copied(write, x)
    if row.mode == "in place":
        return found
    return packed({**found, **wholes(row, t)}, row, np.ascontiguousarray)


def copied(write: Write, x: np.ndarray) -> Variant:
    return lambda: write(x.copy())


def lines(row: Row, t: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Variants that write into x with one statement: the statement, and the values of its names."""
    values, index, mask = t.get("values"), t.get("index"), t.get("mask")
    before = ":, " * row.axis

    def assign(key: str, value: Any, **names: Any) -> dict[str, tuple[str, dict[str, Any]]]:
        return {"assign": (f"x[{key}] = value", {"value": value, **names})}

    if row.op == "slice_scatter":
        start, stop = ("" if end is None else end for end in (row.start, row.stop))
        step = "" if row.step == 1 else f":{row.step}"
        return assign(f"{before}{start}:{stop}{step}", values)
    if row.op == "select_scatter":
        return assign(f"{before}{row.at}", values)
    if row.op == "masked_scatter" and row.mask_rows:
        return assign("mask[:, 0]", values.reshape(-1, row.shape[1]), mask=mask)
    if row.op == "masked_scatter":
        names = {"place": np.place, "mask": mask, "values": values}
        return {
            **assign("mask", values, mask=mask),
            "place": ("place(x, mask, values)", names),
        }
    if row.op == "masked_fill":
        names = {"putmask": np.putmask, "copyto": np.copyto, "mask": mask, "fill": FILL}
        return {
            **assign("mask", FILL, mask=mask),
            "putmask": ("putmask(x, mask, fill)", names),
            "copyto": ("copyto(x, fill, where=mask)", names),
        }
    if row.op == "index_fill":
        return assign(f"{before}index", FILL, index=index)
    if row.op == "scatter" and row.reduce == "assign":
        return assign(f"{before}index", values, index=index)
    if row.op == "put_along_axis" and row.reduce == "assign":
        names = {"put": np.put_along_axis, "index": index, "values": values, "axis": row.axis}
        return {"put_along_axis": ("put(x, index, values, axis)", names)}
    if row.op == "diagonal_scatter" and square(row):
        n = row.shape[1]
        first = row.offset if row.offset >= 0 else -row.offset * n
        names = {"key": slice(first, (n - max(row.offset, 0)) * n, n + 1), "values": values}
        return {"flat": ("x.reshape(-1)[key] = values", names)}
    if at_is_fast(row) and row.include_self and reduction(row) != "mean":
        at = REDUCTIONS[reduction(row)].at
        key = (*(slice(None) for _ in row.shape[: row.axis]), index) if row.axis else index
        names = {"at": at, "key": key, "values": values}
        return {"at": ("at(x, key, values)", names)}
    return {}


def at_is_fast(row: Row) -> bool:
    """Whether to try ``ufunc.at``. It is fast on 1-D arrays, but takes seconds on wide rows."""
    flat = len(row.shape) == 1 or row.count * row.entries // row.shape[row.axis] < 1_000_000
    return flat and row.op in ("scatter", "index_add")


def square(row: Row) -> bool:
    return len(row.shape) == 2 and row.shape[0] == row.shape[1] and row.layout == "contiguous"


def writes(row: Row, t: dict[str, Any]) -> dict[str, Write]:
    """Variants that write into an array with more than one statement."""
    if row.op == "diagonal_scatter":

        def diagonal(y: np.ndarray) -> np.ndarray:
            region(row, y)[...] = t["values"]
            return y

        return {"diagonal": diagonal}
    if row.op in ("scatter", "index_add", "put_along_axis") and reduction(row) != "assign":
        return reductions(row, t)
    return {}


def reductions(row: Row, t: dict[str, Any]) -> dict[str, Write]:
    """Reductions by ``ufunc.at``, by sorting and ``reduceat``, and 1-D sums by ``bincount``."""
    values, index = t["values"], t["index"]
    rows = (*(slice(None) for _ in row.shape[: row.axis]), index)
    kind = reduction(row)
    function = REDUCTIONS[kind]
    neutral = {"sum": 0, "mean": 0, "mul": 1, "amax": -np.inf, "amin": np.inf}[kind]
    down = (..., *(None for _ in row.shape[row.axis + 1 :]))  # broadcasts counts along a row

    def divided(y: np.ndarray) -> np.ndarray:
        """Turn a sum into a mean. Places that are not indexed keep their value."""
        counts = np.bincount(index, minlength=row.shape[row.axis])
        if row.include_self:
            counts += 1
        else:
            np.maximum(counts, 1, out=counts)
        divide = np.floor_divide if row.dtype == "int64" else np.divide
        return divide(y, counts[down].astype(y.dtype), out=y)

    def at(y: np.ndarray) -> np.ndarray:
        if not row.include_self:
            y[rows] = neutral
        function.at(y, rows, values)
        return divided(y) if kind == "mean" else y

    def sort(y: np.ndarray) -> np.ndarray:
        order = np.argsort(index, kind="stable")
        ordered = index[order]
        starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        named = (*rows[:-1], ordered[starts])
        groups = function.reduceat(values[(*rows[:-1], order)], starts, axis=row.axis)
        y[named] = function(y[named], groups) if row.include_self else groups
        return divided(y) if kind == "mean" else y

    def bincount(y: np.ndarray) -> np.ndarray:
        y += np.bincount(index, values, len(y)).astype(y.dtype)
        return divided(y) if kind == "mean" else y

    if row.op == "put_along_axis":
        grid = list(np.ogrid[tuple(map(slice, index.shape))])

        def at_elements(y: np.ndarray) -> np.ndarray:
            key = (*grid[: row.axis], index, *grid[row.axis + 1 :])
            if not row.include_self:
                y[key] = neutral
            function.at(y, key, values)
            if kind == "mean":
                counts = np.ones(y.shape, y.dtype)
                np.add.at(counts, key, 1)
                y /= counts
            return y

        return {"at": at_elements}
    found = {} if len(row.shape) == 1 else {"sort, reduceat": sort}
    if at_is_fast(row) and (kind == "mean" or not row.include_self):
        found["at"] = at
    flat = len(row.shape) == 1 and row.include_self and row.dtype.startswith("float")
    if flat and kind in ("sum", "mean"):
        found["bincount"] = bincount
    return found


def wholes(row: Row, t: dict[str, Any]) -> Variants:
    """Variants that compute the result without copying x first."""
    x, values, index, mask = (t.get(name) for name in ("x", "values", "index", "mask"))
    axis, n = row.axis, row.shape[row.axis]
    if row.op in ("tril_indices", "triu_indices"):
        function = getattr(np, row.op)
        return {row.op: partial(function, row.shape[0], row.offset, row.shape[1])}
    if row.op == "slice_scatter" and row.step == 1:
        before = (*row.selection[:axis], slice(0, row.start))
        after = (*row.selection[:axis], slice(row.stop, n))
        return {"concatenate": lambda: np.concatenate((x[before], values, x[after]), axis)}
    if row.op == "slice_scatter":
        others = (*row.selection[:axis], slice(1, None, 2))

        def two_copies() -> np.ndarray:
            y = np.empty(x.shape, x.dtype)
            y[row.selection] = values
            y[others] = x[others]
            return y

        return {"empty, two copies": two_copies}
    if row.op == "masked_fill":
        fill = x.dtype.type(FILL)
        return {"where": partial(np.where, mask, fill, x)}
    if row.op == "index_select":
        rows = (*(slice(None) for _ in row.shape[:axis]), index)
        return {
            "take": partial(np.take, x, index, axis),
            "take, clip": partial(np.take, x, index, axis, mode="clip"),
            "key": partial(x.__getitem__, rows),
        }
    if row.op == "take_along_axis":
        return {"take_along_axis": partial(np.take_along_axis, x, index, axis)}
    if row.op == "masked_select":
        return {"key": partial(x.__getitem__, mask), "extract": partial(np.extract, mask, x)}
    return {}
