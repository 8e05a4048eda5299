"""Pointwise operations and reductions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .checks import check_axis, check_kind, check_same_dtype, is_undefined, together, without
from .numbers import (
    BOOL,
    FLOAT64,
    INT64,
    UINT64,
    Array,
    Position,
    kind,
    plain,
    reduction,
    wide,
    wrapped,
)


def where(condition: Array, x: Array, y: Array) -> Array:
    check_kind("where", "condition", condition, "bool")
    check_same_dtype("where", "y", y, x)
    condition, x, y = together("where", condition, x, y)
    out = np.zeros(x.shape, x.dtype)
    for p in np.ndindex(x.shape):
        out[p] = x[p] if condition[p] else y[p]
    return out


def pointwise(op: str, x: Array, y: Array, want: np.dtype, one: Callable[[Any, Any], Any]) -> Array:
    check_same_dtype(op, "y", y, x)
    x, y = together(op, x, y)
    out = np.zeros(x.shape, want)
    with np.errstate(all="ignore"):
        for p in np.ndindex(x.shape):
            out[p] = one(x[p], y[p])
    return out


def add(x: Array, y: Array) -> Array:
    return pointwise("add", x, y, x.dtype, lambda a, b: reduction([a, b], "sum", x.dtype))


def multiply(x: Array, y: Array) -> Array:
    return pointwise("multiply", x, y, x.dtype, lambda a, b: reduction([a, b], "mul", x.dtype))


def negative(x: Array) -> Array:
    check_kind_is_number("negative", x)
    out = np.zeros(x.shape, x.dtype)
    for p in np.ndindex(x.shape):
        out[p] = wrapped(-int(x[p]), x.dtype) if kind(x.dtype) == "integer" else -x[p]
    return out


def check_kind_is_number(op: str, x: Array) -> None:
    if kind(x.dtype) == "bool":
        raise TypeError(f"{op}: not defined for bool")


def real(x: Array) -> Array:
    return part(x, lambda number: number.real)


def imag(x: Array) -> Array:
    return part(x, lambda number: number.imag)


def part(x: Array, of: Callable[[Any], Any]) -> Array:
    is_complex = kind(x.dtype) == "complex"
    out = np.zeros(x.shape, f"float{4 * x.dtype.itemsize}" if is_complex else x.dtype)
    for p in np.ndindex(x.shape):
        out[p] = of(x[p]) if is_complex else of(complex(x[p]))
    return out


def subtract(x: Array, y: Array) -> Array:
    def one(a: Any, b: Any) -> Any:
        if kind(x.dtype) == "integer":
            return wrapped(int(a) - int(b), x.dtype)
        return x.dtype.type(wide(x.dtype).type(a) - wide(x.dtype).type(b))

    if x.dtype == y.dtype == BOOL:
        raise TypeError("subtract: x has dtype bool, expected a number")
    return pointwise("subtract", x, y, x.dtype, one)


def divide(x: Array, y: Array) -> Array:
    want = FLOAT64 if kind(x.dtype) in ("bool", "integer") else x.dtype

    def one(a: Any, b: Any) -> Any:
        if kind(want) == "complex":
            return want.type(quotient(a, b))
        return want.type(wide(want).type(a) / wide(want).type(b))

    return pointwise("divide", x, y, want, one)


def quotient(a: Any, b: Any) -> complex:
    """Smith's algorithm, as in NumPy: it scales, so that no square overflows."""
    if b.real == 0 and b.imag == 0:
        return complex(a.real / abs(b.real), a.imag / abs(b.real))
    if abs(b.real) >= abs(b.imag):
        ratio = b.imag / b.real
        scale = b.real.dtype.type(1) / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = b.real / b.imag
    scale = b.real.dtype.type(1) / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale)


def comparison(op: str, holds: Callable[[Any, Any], bool]) -> Callable[[Array, Array], Array]:
    def compare(x: Array, y: Array) -> Array:
        if x.dtype == y.dtype and kind(x.dtype) == "complex" and op not in ("equal", "not_equal"):
            raise TypeError(f"{op}: x has dtype {x.dtype}, which has no order")
        return pointwise(op, x, y, BOOL, lambda a, b: holds(plain(a), plain(b)))

    return compare


equal = comparison("equal", operator.eq)
not_equal = comparison("not_equal", operator.ne)
less_than = comparison("less_than", operator.lt)
less_equal = comparison("less_equal", operator.le)
greater_than = comparison("greater_than", operator.gt)
greater_equal = comparison("greater_equal", operator.ge)


def lanes(
    op: str, x: Array, axis: Any, keepdim: bool
) -> tuple[list[int], dict[Position, list[Any]]]:
    """The shape of a reduction's result, and the numbers that are reduced to each element."""
    axes = list(range(x.ndim)) if axis is None else axis if isinstance(axis, list) else [axis]
    axes = [check_axis(op, a, x.ndim) for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{op}: axis is {axis}, an axis is given twice")
    kept = [1 if d in axes else n for d, n in enumerate(x.shape)]
    shape = kept if keepdim else without(x.shape, *axes)
    numbers: dict[Position, list[Any]] = {p: [] for p in np.ndindex(*shape)}
    for p in np.ndindex(x.shape):
        there = [0 if d in axes else i for d, i in enumerate(p)]
        numbers[tuple(there if keepdim else without(p, *axes))].append(x[p])
    return shape, numbers


def reduced(op: str, x: Array, how: str, want: np.dtype, axis: Any, keepdim: bool) -> Array:
    """Reduces in sequence, so the last bits of floats may differ from those of a tree."""
    shape, numbers = lanes(op, x, axis, keepdim)
    if is_undefined(how, x.dtype):
        raise TypeError(f"{op}: x has dtype {x.dtype}, for which {op} is not defined")
    of_none = {"sum": 0, "mul": 1}
    if how == "mean" and kind(want) in ("float", "complex"):
        of_none["mean"] = complex(math.nan, math.nan) if kind(want) == "complex" else math.nan
    out = np.zeros(shape, want)
    for p, lane in numbers.items():
        if not lane and how not in of_none:
            raise ValueError(f"{op}: x has shape {list(x.shape)}, expected at least one element")
        lane = [want.type(number) for number in lane]
        out[p] = reduction(lane, how, want) if lane else want.type(of_none[how])
    return out


def in_64_bits(dtype: np.dtype) -> np.dtype:
    return {"b": INT64, "i": INT64, "u": UINT64}.get(dtype.kind, dtype)


def sum(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("sum", x, "sum", in_64_bits(x.dtype), axis, keepdim)


def mean(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("mean", x, "mean", x.dtype, axis, keepdim)


def prod(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("prod", x, "mul", in_64_bits(x.dtype), axis, keepdim)


def amax(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("amax", x, "amax", x.dtype, axis, keepdim)


def amin(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("amin", x, "amin", x.dtype, axis, keepdim)
