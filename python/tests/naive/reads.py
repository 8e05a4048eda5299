"""The other reads, and slicing, which reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checks import (
    check_integers,
    check_rank,
    check_same_dtype,
    check_shape,
    element_index,
    flat_index,
    nd_places,
    place,
    places,
    split_places,
    stretched,
    stretched_mask,
    swap_in,
    together,
)
from .numbers import BOOL, Array


def index_select(x: Array, index: Array, axis: int = 0) -> Array:
    axis, rows = flat_index("index_select", x, index, axis)
    out = np.zeros(swap_in(x.shape, axis, len(rows)), x.dtype)
    for p in np.ndindex(out.shape):
        out[p] = x[swap_in(p, axis, rows[p[axis]])]
    return out


def take_along_axis(x: Array, index: Array, axis: int, broadcast: bool = True) -> Array:
    axis, where_from = element_index("take_along_axis", x, index, axis, broadcast)
    out = np.zeros(where_from.shape, x.dtype)
    for p in np.ndindex(out.shape):
        out[p] = x[swap_in(p, axis, int(where_from[p]))]
    return out


def masked_select(x: Array, mask: Array) -> Array:
    mask = stretched_mask("masked_select", mask, x.shape)
    return np.array([x[p] for p in np.ndindex(x.shape) if mask[p]], x.dtype)


def tril(x: Array, diagonal: int = 0) -> Array:
    check_integers("tril", diagonal=diagonal)
    return half("tril", x, lambda r, c: c - r <= diagonal)


def triu(x: Array, diagonal: int = 0) -> Array:
    check_integers("triu", diagonal=diagonal)
    return half("triu", x, lambda r, c: c - r >= diagonal)


def half(op: str, x: Array, keep: Callable[[int, int], bool]) -> Array:
    check_rank(op, "x", x, 2)
    out = np.zeros(x.shape, x.dtype)
    for p in np.ndindex(x.shape):
        if keep(p[-2], p[-1]):
            out[p] = x[p]
    return out


def index_get(x: Array, indices: Sequence[Array]) -> Array:
    index = nd_places("index_get", x, indices)
    return rows_at(x, index)


def gather_nd(x: Array, index: Array) -> Array:
    return rows_at(x, split_places("gather_nd", x, index))


def rows_at(x: Array, index: Array) -> Array:
    """The rows of `x` at the places along the last axis of `index`."""
    lead, depth = index.shape[:-1], index.shape[-1]
    out = np.zeros([*lead, *x.shape[depth:]], x.dtype)
    for p in np.ndindex(out.shape):
        out[p] = x[(*index[p[: len(lead)]].tolist(), *p[len(lead) :])]
    return out


# Slicing. NumPy applies the key to an array of positions. Errors are checked here.


def selected(op: str, x: Array, key: tuple) -> Array:
    """The row-major positions in `x` that the key selects, in the shape of the selection."""
    items, axis = list(key), 0
    several = len([item for item in items if is_array(item)]) > 1
    total = len([None for item in items for _ in range(axes_used(item))])
    if total > x.ndim or len([item for item in items if item is Ellipsis]) > 1:
        raise IndexError(f"{op}: the key has {total} indices, x has rank {x.ndim}")
    for i, item in enumerate(items):
        if is_mask(item):
            check_shape(op, "mask", item, list(x.shape[axis : axis + item.ndim]))
        elif isinstance(item, np.ndarray):
            name = f"indices[{i}]" if several else "index"
            items[i] = places(op, item, axis, x.shape[axis], name)
        elif isinstance(item, int):
            place(op, "index", item, axis, x.shape[axis])
        elif isinstance(item, slice) and item.step == 0:
            raise ValueError(f"{op}: step is 0")
        axis += x.ndim - total if item is Ellipsis else axes_used(item)
    # Integers and 0-D integer tensors remove their axes first, and the ellipsis is written out.
    positions = np.arange(x.size).reshape(x.shape)
    whole = [slice(None)] * (x.ndim - total)
    axes: list[Any] = []
    for item in items:
        axes += whole if item is Ellipsis else [slice(None)] * axes_used(item)
        if is_single(item):
            axes[-1] = int(item)
    rest: list[Any] = []
    for item in items:
        rest += whole if item is Ellipsis else [] if is_single(item) else [item]
    together(op, *(np.flatnonzero(i) if is_mask(i) else i for i in rest if is_array(i)))
    return np.asarray(positions[tuple(axes)][tuple(rest)])


def is_array(item: Any) -> bool:
    return isinstance(item, np.ndarray)


def is_single(item: Any) -> bool:
    return isinstance(item, int) or (is_array(item) and item.dtype != BOOL and item.ndim == 0)


def is_mask(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype == BOOL


def axes_used(item: Any) -> int:
    return 0 if item is None or item is Ellipsis else item.ndim if is_mask(item) else 1


def getitem(x: Array, key: tuple) -> Array:
    positions = selected("getitem", x, key)
    return np.array([x.flat[p] for p in positions.flat], x.dtype).reshape(positions.shape)


def setitem(x: Array, value: Array, key: tuple) -> Array:
    positions = selected("setitem", x, key)
    check_same_dtype("setitem", "value", value, x)
    value = stretched("setitem", "value", value, positions.shape)
    out = np.array(x, order="C")
    for p in np.ndindex(positions.shape):
        out.flat[positions[p]] = value[p]
    return out
