"""Checks that several operations share, and the places that an index names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .numbers import REDUCES, Array, Position, kind, reduction


def check_integers(op: str, **values: Any) -> None:
    for name, value in values.items():
        if not hasattr(value, "__index__"):
            raise TypeError(f"{op}: {name} is {value!r}, expected an integer")


def check_axis(op: str, axis: int, rank: int, name: str = "axis") -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"{op}: {name} {axis} is out of range for rank {rank}")
    return axis % rank


def check_rank(op: str, name: str, x: Array, least: int) -> None:
    if x.ndim < least:
        raise ValueError(f"{op}: {name} has rank {x.ndim}, expected at least {least}")


def check_shape(op: str, name: str, x: Array, expected: Any, good: bool | None = None) -> None:
    if not (list(x.shape) == expected if good is None else good):
        raise ValueError(f"{op}: {name} has shape {list(x.shape)}, expected {expected}")


def check_same_dtype(op: str, name: str, y: Array, x: Array, x_name: str = "x") -> None:
    if y.dtype != x.dtype:
        raise TypeError(f"{op}: {name} has dtype {y.dtype}, {x_name} has dtype {x.dtype}")


def check_kind(op: str, name: str, x: Array, expected: str) -> None:
    if kind(x.dtype) != expected:
        raise TypeError(f"{op}: {name} has dtype {x.dtype}, expected {expected}")


def is_undefined(how: str, dtype: np.dtype) -> bool:
    return (how, kind(dtype)) in (("mean", "bool"), ("amax", "complex"), ("amin", "complex"))


def check_reduce(op: str, reduce: str, dtype: np.dtype, more: str = "") -> str:
    if reduce not in REDUCES:
        names = f"{more}sum, mul, mean, amax, amin (or add, prod, multiply, max, min)"
        raise ValueError(f'{op}: reduce is "{reduce}", expected one of {names}')
    how = REDUCES[reduce]
    if is_undefined(how, dtype):
        raise TypeError(f'{op}: reduce "{reduce}" is not defined for x of dtype {dtype}')
    return how


def place(op: str, name: str, value: int, axis: int, size: int) -> int:
    if not -size <= value < size:
        raise IndexError(f"{op}: {name} is {value}, out of range for axis {axis} of size {size}")
    return value % size


def places(op: str, index: Array, axis: int, size: int, name: str = "index") -> Array:
    """The index as positions, after a check of its range."""
    check_kind(op, name, index, "integer")
    out = np.zeros(index.shape, np.int64)
    for p in np.ndindex(index.shape):
        out[p] = place(op, f"{name}{list(p)}" if p else name, int(index[p]), axis, size)
    return out


def flat_index(
    op: str, x: Array, index: Array, axis: int, ranks: Sequence[int] = (1,)
) -> tuple[int, list[int]]:
    """The checks of scatter, index_select and index_fill for x, axis and a row index."""
    check_rank(op, "x", x, 1)
    axis = check_axis(op, axis, x.ndim)
    check_shape(op, "index", index, f"rank {' or '.join(map(str, ranks))}", index.ndim in ranks)
    return axis, places(op, index, axis, x.shape[axis]).reshape(-1).tolist()


def element_index(op: str, x: Array, index: Array, axis: int, broadcast: bool) -> tuple[int, Array]:
    """The checks of put_along_axis and take_along_axis for x, axis and an index of x's rank."""
    check_rank(op, "x", x, 1)
    axis = check_axis(op, axis, x.ndim)
    check_shape(op, "index", index, f"rank {x.ndim}", index.ndim == x.ndim)
    if broadcast:
        index = stretched(op, "index", index, swap_in(x.shape, axis, index.shape[axis]))
    fits = all(index.shape[d] <= x.shape[d] for d in range(x.ndim) if d != axis)
    check_shape(op, "index", index, f"at most {list(x.shape)} off axis {axis}", fits)
    return axis, places(op, index, axis, x.shape[axis])


def nd_places(op: str, x: Array, indices: Sequence[Array]) -> Array:
    """The places that indices and masks of the first axes name, along a new last axis."""
    checked: list[Array] = []
    for k, index in enumerate(indices):
        axis, name = len(checked), "index" if len(indices) == 1 else f"indices[{k}]"
        if index.dtype == np.bool_:
            check_shape(op, "mask", index, list(x.shape[axis : axis + index.ndim]))
            true = [p for p in np.ndindex(index.shape) if index[p]]
            columns = np.array(true, np.int64).reshape(len(true), index.ndim)
            checked += list(columns.T)
        elif axis < x.ndim:
            checked.append(places(op, index, axis, x.shape[axis], name))
        else:
            checked.append(index)
    if not 1 <= len(checked) <= x.ndim:
        raise ValueError(f"{op}: indices has length {len(indices)}, x has rank {x.ndim}")
    return np.stack(together(op, *checked), axis=-1)


def split_places(op: str, x: Array, index: Array) -> Array:
    """An index whose last axis holds coordinates, after a check of its range."""
    check_kind(op, "index", index, "integer")
    check_rank(op, "index", index, 1)
    depth = index.shape[-1]
    if not 1 <= depth <= x.ndim:
        raise ValueError(f"{op}: index has {depth} on its last axis, x has rank {x.ndim}")
    return np.stack([places(op, index[..., d], d, x.shape[d]) for d in range(depth)], axis=-1)


def stretched(op: str, name: str, x: Array, shape: Sequence[int]) -> Array:
    """A copy of `x`, broadcast to `shape`."""
    lead = len(shape) - x.ndim
    fits = lead >= 0 and min(shape, default=0) >= 0
    fits = fits and all(x.shape[d] in (1, shape[lead + d]) for d in range(x.ndim))
    check_shape(op, name, x, f"one that broadcasts to {list(shape)}", fits)
    out = np.zeros(shape, x.dtype)
    for p in np.ndindex(*shape):
        out[p] = x[tuple(0 if x.shape[d] == 1 else p[lead + d] for d in range(x.ndim))]
    return out


def stretched_mask(op: str, mask: Array, shape: Sequence[int]) -> Array:
    check_kind(op, "mask", mask, "bool")
    return stretched(op, "mask", mask, shape)


def together(op: str, *tensors: Array) -> list[Array]:
    try:
        shape = np.broadcast_shapes(*(t.shape for t in tensors))
    except ValueError:
        shapes = " and ".join(str(list(t.shape)) for t in tensors)
        raise ValueError(f"{op}: shapes {shapes} don't broadcast together") from None
    return [stretched(op, "an input", t, shape) for t in tensors]


def without(values: Sequence[int], *axes: int) -> list[int]:
    return [value for d, value in enumerate(values) if d not in axes]


def swap_in(position: Position, axis: int, value: int) -> Position:
    return (*position[:axis], value, *position[axis + 1 :])


def write(x: Array, writes: list[tuple[Position, Any]], how: str, include_self: bool) -> Array:
    """A copy of `x` after the writes. Each named place becomes the reduction of its updates."""
    sent: dict[Position, list[Any]] = {}
    for position, number in writes:
        sent.setdefault(position, [x[position]] if include_self else []).append(number)
    out = np.array(x, order="C")
    for position, numbers in sent.items():
        out[position] = reduction(numbers, how, x.dtype)
    return out
