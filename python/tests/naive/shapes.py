"""Casts, shapes, concatenation, and constructors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .checks import (
    check_axis,
    check_rank,
    check_same_dtype,
    check_shape,
    stretched,
    swap_in,
    without,
)
from .numbers import FLOAT32, INT64, Array, converted, dtype_named, kind, scalar

# Shape and dtype.


def cast(x: Array, dtype: Any) -> Array:
    want = dtype_named("cast", dtype)
    if kind(x.dtype) == "complex" and kind(want) in ("integer", "float"):
        raise TypeError(f"cast: x has dtype {x.dtype}, which can't become {want}")
    out = np.zeros(x.shape, want)
    for p in np.ndindex(x.shape):
        out[p] = converted(x[p], want)
    return out


def astype(x: Array, dtype: Any) -> Array:
    return cast(x, dtype)


def reshape(x: Array, shape: Sequence[int]) -> Array:
    known = math.prod(n for n in shape if n != -1)
    text = f"reshape: shape is {list(shape)}, x has {x.size} elements"
    if list(shape).count(-1) > 1 or any(n < -1 for n in shape):
        raise ValueError(f"{text}; expected sizes of at least 0 and at most one -1")
    if -1 in shape and (known == 0 or x.size % known != 0):
        raise ValueError(f"{text}; the -1 can't be inferred")
    sizes = [x.size // known if n == -1 else n for n in shape]
    if math.prod(sizes) != x.size:
        raise ValueError(text)
    return np.array([x[p] for p in np.ndindex(x.shape)], x.dtype).reshape(sizes)


def flatten(x: Array, start_axis: int = 0, stop_axis: int = -1) -> Array:
    rank = max(x.ndim, 1)
    first = check_axis("flatten", start_axis, rank, "start_axis")
    last = check_axis("flatten", stop_axis, rank, "stop_axis")
    if first > last:
        raise ValueError(f"flatten: start_axis is {start_axis}, stop_axis is {stop_axis}")
    merged = math.prod(x.shape[first : last + 1])
    return reshape(x, [*x.shape[:first], merged, *x.shape[last + 1 :]])


def some_axes(op: str, axis: int | Sequence[int], rank: int) -> list[int]:
    axes = [axis] if isinstance(axis, int) else list(axis)
    found = sorted(check_axis(op, one, rank) for one in axes)
    if len(set(found)) != len(found):
        raise ValueError(f"{op}: axis is {axes}, expected each axis once")
    return found


def squeeze(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    ones = [d for d in range(x.ndim) if x.shape[d] == 1]
    axes = ones if axis is None else some_axes("squeeze", axis, x.ndim)
    for d in axes:
        if x.shape[d] != 1:
            raise ValueError(f"squeeze: axis is {d}, which has size {x.shape[d]}")
    return reshape(x, without(x.shape, *axes))


def unsqueeze(x: Array, axis: int | Sequence[int]) -> Array:
    count = 1 if isinstance(axis, int) else len(axis)
    sizes = list(x.shape)
    for d in some_axes("unsqueeze", axis, x.ndim + count):
        sizes.insert(d, 1)
    return reshape(x, sizes)


def transpose(x: Array, perm: Sequence[int] | None = None) -> Array:
    perm = list(range(x.ndim))[::-1] if perm is None else perm
    if len(perm) != x.ndim:
        raise ValueError(f"transpose: perm has length {len(perm)}, x has rank {x.ndim}")
    axes = [check_axis("transpose", axis, x.ndim) for axis in perm]
    if len(set(axes)) != len(axes):
        raise ValueError(f"transpose: perm is {list(perm)}, an axis is given twice")
    out = np.zeros([x.shape[axis] for axis in axes], x.dtype)
    for p in np.ndindex(out.shape):
        out[p] = x[tuple(p[axes.index(d)] for d in range(x.ndim))]
    return out


def broadcast_to(x: Array, shape: Sequence[int]) -> Array:
    return stretched("broadcast_to", "x", x, shape)


def concat(x: Sequence[Array], axis: int = 0, op: str = "concat") -> Array:
    if not x:
        raise ValueError(f"{op}: x is empty, expected at least one tensor")
    check_rank(op, "x", x[0], 1)
    axis = check_axis(op, axis, x[0].ndim)
    starts = [0]
    for part in x:
        check_same_dtype(op, "x", part, x[0], "the first of them")
        good = part.ndim == x[0].ndim and without(part.shape, axis) == without(x[0].shape, axis)
        check_shape(op, "x", part, f"{list(x[0].shape)} but for axis {axis}", good)
        starts.append(starts[-1] + part.shape[axis])
    out = np.zeros(swap_in(x[0].shape, axis, starts[-1]), x[0].dtype)
    for part, start in zip(x, starts, strict=False):
        for p in np.ndindex(part.shape):
            out[swap_in(p, axis, start + p[axis])] = part[p]
    return out


def stack(x: Sequence[Array], axis: int = 0) -> Array:
    if not x:
        raise ValueError("stack: x is empty, expected at least one tensor")
    axis = check_axis("stack", axis, x[0].ndim + 1)
    for part in x:
        check_shape("stack", "x", part, list(x[0].shape))
    return concat([np.expand_dims(part, axis) for part in x], axis, op="stack")


# Constructors.


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, op: str = "full") -> Array:
    by_type = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}
    want = dtype_named(op, by_type[type(fill_value)] if dtype is None else dtype)
    if any(n < 0 for n in shape):
        raise ValueError(f"{op}: shape is {list(shape)}, expected sizes of at least 0")
    if math.prod(shape) * want.itemsize >= 2**63:
        raise ValueError(f"{op}: shape is {list(shape)}, which is too large")
    number = scalar(op, "fill_value", fill_value, want)
    return np.array([number] * math.prod(shape), want).reshape(shape)


def zeros(shape: Sequence[int], dtype: Any = "float32") -> Array:
    return full(shape, False, dtype, op="zeros")


def ones(shape: Sequence[int], dtype: Any = "float32") -> Array:
    return full(shape, True, dtype, op="ones")


def zeros_like(x: Array, dtype: Any = None) -> Array:
    return full(x.shape, False, dtype or x.dtype.name, op="zeros_like")


def ones_like(x: Array, dtype: Any = None) -> Array:
    return full(x.shape, True, dtype or x.dtype.name, op="ones_like")


def full_like(x: Array, fill_value: Any, dtype: Any = None) -> Array:
    return full(x.shape, fill_value, dtype or x.dtype.name, op="full_like")


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    start, end = (0, start) if end is None else (start, end)
    whole = all(isinstance(value, int) for value in (start, end, step))
    want = (INT64 if whole else FLOAT32) if dtype is None else dtype_named("arange", dtype)
    for name, value in (("start", start), ("end", end), ("step", step)):
        if not math.isfinite(value):
            raise ValueError(f"arange: {name} is {value}, expected a finite number")
    if step == 0:
        raise ValueError("arange: step is 0")
    if kind(want) not in ("integer", "float"):
        raise TypeError(f"arange: dtype is {want}, expected a real dtype")
    length = -((start - end) // step) if whole else math.ceil((end - start) / step)
    numbers = [start + i * step for i in range(max(0, length))]
    return np.array([scalar("arange", "a value", number, want) for number in numbers], want)
