"""The five main operations: triangle indices, and diagonal, slice, masked and row scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .checks import (
    check_axis,
    check_integers,
    check_kind,
    check_rank,
    check_reduce,
    check_same_dtype,
    check_shape,
    flat_index,
    swap_in,
    together,
    without,
    write,
)
from .numbers import INT64, Array, Position, dtype_named, kind, limits


def tril_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = None) -> Array:
    return triangle("tril_indices", row, col, offset, dtype)


def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = None) -> Array:
    return triangle("triu_indices", row, col, offset, dtype)


def triangle(op: str, row: Any, col: Any, offset: Any, dtype: Any) -> Array:
    col = row if col is None else col
    check_integers(op, row=row, col=col, offset=offset)
    for name, value in (("row", row), ("col", col)):
        if value < 0:
            raise ValueError(f"{op}: {name} is {value}, expected at least 0")
    want = INT64 if dtype is None else dtype_named(op, dtype)
    if kind(want) != "integer":
        raise TypeError(f"{op}: dtype is {want}, expected an integer dtype")
    # Only the rows and columns of the triangle are visited, because there may be 2**63 others.
    lower = op == "tril_indices"
    rows = range(max(0, -offset), row) if lower else range(min(row, col - offset))
    if len(rows) > 2**20 and col > 2**20:
        raise ValueError(f"{op}: row is {row} and col is {col}, the result is too large")
    pairs = []
    for r in rows if col else ():
        columns = range(min(col, r + offset + 1)) if lower else range(max(0, r + offset), col)
        pairs += [(r, c) for c in columns]
    largest = max((max(pair) for pair in pairs), default=0)
    if largest > limits(want)[1]:
        raise ValueError(f"{op}: dtype {want} can't hold the largest index, {largest}")
    return np.array(pairs, want).reshape(len(pairs), 2).T.copy()


def diagonal_map(
    op: str, name: str, x: Array, offset: int, axis1: int, axis2: int
) -> tuple[list[int], dict[Position, Position]]:
    """The shape of the diagonal, and for each position in it the position in `x`."""
    check_rank(op, name, x, 2)
    check_integers(op, offset=offset)
    axis1, axis2 = check_axis(op, axis1, x.ndim, "axis1"), check_axis(op, axis2, x.ndim, "axis2")
    if axis1 == axis2:
        raise ValueError(f"{op}: axis1 and axis2 are both axis {axis1}")
    steps = [(i, i + offset) for i in range(x.shape[axis1]) if 0 <= i + offset < x.shape[axis2]]
    rest = without(x.shape, axis1, axis2)
    positions = {}
    for p in np.ndindex(*rest):
        for k, (i, j) in enumerate(steps):
            others = iter(p)
            here = (i if d == axis1 else j if d == axis2 else next(others) for d in range(x.ndim))
            positions[(*p, k)] = tuple(here)
    return [*rest, len(steps)], positions


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    shape, positions = diagonal_map("diagonal", "x", x, offset, axis1, axis2)
    out = np.zeros(shape, x.dtype)
    for there, here in positions.items():
        out[there] = x[here]
    return out


def diagonal_scatter(
    input: Array, src: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, name: Any = None
) -> Array:
    shape, positions = diagonal_map("diagonal_scatter", "input", input, offset, axis1, axis2)
    check_same_dtype("diagonal_scatter", "src", src, input, "input")
    check_shape("diagonal_scatter", "src", src, shape)
    out = np.array(input, order="C")
    for there, here in positions.items():
        out[here] = src[there]
    return out


def slice_scatter(
    x: Array, y: Array, axis: Any = 0, start: Any = None, stop: Any = None, step: Any = 1,
    name: Any = None,
) -> Array:  # fmt: skip
    op = "slice_scatter"
    check_rank(op, "x", x, 1)
    check_same_dtype(op, "y", y, x)
    axes = axis if isinstance(axis, list) else [axis]
    lists = []
    for label, value in (("start", start), ("stop", stop), ("step", step)):
        lists.append(value if isinstance(value, list) else [value] * len(axes))
        if len(lists[-1]) != len(axes):
            raise ValueError(f"{op}: {label} has length {len(lists[-1])}, axis has {len(axes)}")
    axes = [check_axis(op, a, x.ndim) for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{op}: axis is {axis}, an axis is given twice")
    taken = [range(size) for size in x.shape]
    for a, first, last, stride in zip(axes, *lists, strict=True):
        check_integers(op, start=first or 0, stop=last or 0, step=stride)
        if stride == 0:
            raise ValueError(f"{op}: step is 0")
        taken[a] = range(*slice(first, last, stride).indices(x.shape[a]))
    check_shape(op, "y", y, [len(indices) for indices in taken])
    out = np.array(x, order="C")
    for p in np.ndindex(y.shape):
        out[tuple(taken[d][p[d]] for d in range(x.ndim))] = y[p]
    return out


def masked_scatter(input: Array, mask: Array, source: Array, name: Any = None) -> Array:
    op = "masked_scatter"
    check_same_dtype(op, "source", source, input, "input")
    check_kind(op, "mask", mask, "bool")
    try:
        input, mask = together(op, input, mask)
    except ValueError as problem:
        raise ValueError(f"{problem}; the mask does not fit") from None
    true = [p for p in np.ndindex(input.shape) if mask[p]]
    supply = [source[p] for p in np.ndindex(source.shape)]
    if len(supply) < len(true):
        raise ValueError(f"{op}: source has {len(supply)} elements, mask selects {len(true)}")
    out = np.array(input, order="C")
    for k, p in enumerate(true):
        out[p] = supply[k]
    return out


def scatter(
    x: Array, index: Array, updates: Array, overwrite: bool = True, axis: int = 0,
    reduce: str = "sum", name: Any = None, *, include_self: bool = False,
) -> Array:  # fmt: skip
    how = "assign" if overwrite else check_reduce("scatter", reduce, x.dtype)
    writes = writes_of_rows("scatter", x, index, axis, "updates", updates)
    return write(x, writes, how, include_self)


def writes_of_rows(
    op: str, x: Array, index: Array, axis: int, name: str, updates: Array
) -> list[tuple[Position, Any]]:
    """Pairs of a place and an update, where `updates[i]` goes to row `index[i]`."""
    axis, rows = flat_index(op, x, index, axis, ranks=(0, 1))
    check_same_dtype(op, name, updates, x)
    if index.ndim == 0:
        check_shape(op, name, updates, without(x.shape, axis))
        updates = np.expand_dims(updates, axis)
    expected = swap_in(x.shape, axis, len(rows))
    good = without(updates.shape, axis) == without(x.shape, axis) and updates.ndim == x.ndim
    good = good and updates.shape[axis] >= len(rows)
    check_shape(op, name, updates, f"{list(expected)}, or more along axis {axis}", good)
    return [(swap_in(p, axis, rows[p[axis]]), updates[p]) for p in np.ndindex(*expected)]
