"""The other writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .checks import (
    check_axis,
    check_rank,
    check_reduce,
    check_same_dtype,
    check_shape,
    element_index,
    flat_index,
    nd_places,
    place,
    split_places,
    stretched,
    stretched_mask,
    swap_in,
    without,
    write,
)
from .five import writes_of_rows
from .numbers import Array, Position, scalar


def put_along_axis(
    x: Array, index: Array, values: Array, axis: int, reduce: str = "assign",
    include_self: bool = True, broadcast: bool = True,
) -> Array:  # fmt: skip
    op = "put_along_axis"
    axis, where_to = element_index(op, x, index, axis, broadcast)
    check_same_dtype(op, "values", values, x)
    how = "assign" if reduce == "assign" else check_reduce(op, reduce, x.dtype, "assign, ")
    if broadcast:
        values = stretched(op, "values", values, where_to.shape)
    fits = values.ndim == x.ndim and all(np.array(values.shape) >= np.array(where_to.shape))
    check_shape(op, "values", values, f"at least {list(where_to.shape)}", fits)
    writes = [(swap_in(p, axis, int(i)), values[p]) for p, i in np.ndenumerate(where_to)]
    return write(x, writes, how, include_self)


def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    mask = stretched_mask("masked_fill", mask, x.shape)
    number = scalar("masked_fill", "value", value, x.dtype)
    out = np.array(x, order="C")
    for p in np.ndindex(x.shape):
        if mask[p]:
            out[p] = number
    return out


def index_fill(x: Array, index: Array, axis: int, value: Any) -> Array:
    axis, rows = flat_index("index_fill", x, index, axis)
    number = scalar("index_fill", "value", value, x.dtype)
    out = np.array(x, order="C")
    for p in np.ndindex(x.shape):
        if p[axis] in rows:
            out[p] = number
    return out


def select_scatter(x: Array, values: Array, axis: int, index: int) -> Array:
    op = "select_scatter"
    check_rank(op, "x", x, 1)
    axis = check_axis(op, axis, x.ndim)
    check_same_dtype(op, "values", values, x)
    row = place(op, "index", index, axis, x.shape[axis])
    check_shape(op, "values", values, without(x.shape, axis))
    out = np.array(x, order="C")
    for p in np.ndindex(values.shape):
        out[(*p[:axis], row, *p[axis:])] = values[p]
    return out


def index_add(x: Array, index: Array, axis: int, value: Array) -> Array:
    return write(x, writes_of_rows("index_add", x, index, axis, "value", value), "sum", True)


def index_copy(x: Array, index: Array, axis: int, value: Array) -> Array:
    return write(x, writes_of_rows("index_copy", x, index, axis, "value", value), "assign", False)


def index_put(x: Array, indices: Sequence[Array], value: Array, accumulate: bool = False) -> Array:
    op = "index_put"
    index = nd_places(op, x, indices)
    check_same_dtype(op, "value", value, x)
    value = stretched(op, "value", value, [*index.shape[:-1], *x.shape[index.shape[-1] :]])
    return write(x, writes_nd(index, value), "sum" if accumulate else "assign", True)


def writes_nd(index: Array, updates: Array) -> list[tuple[Position, Any]]:
    """Pairs of a place and an update, for an index whose last axis holds coordinates."""
    lead = index.ndim - 1
    return [((*index[p[:lead]].tolist(), *p[lead:]), updates[p]) for p in np.ndindex(updates.shape)]


def scatter_nd(index: Array, updates: Array, shape: Any) -> Array:
    sizes = shape if isinstance(shape, list) else [shape]
    if min(sizes, default=0) < 0:
        raise ValueError(f"scatter_nd: shape is {sizes}, expected sizes of at least 0")
    return scatter_nd_add(np.zeros(sizes, updates.dtype), index, updates, op="scatter_nd")


def scatter_nd_add(x: Array, index: Array, updates: Array, op: str = "scatter_nd_add") -> Array:
    index = split_places(op, x, index)
    check_same_dtype(op, "updates", updates, x)
    check_shape(op, "updates", updates, [*index.shape[:-1], *x.shape[index.shape[-1] :]])
    return write(x, writes_nd(index, updates), "sum", True)
