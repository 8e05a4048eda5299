"""Dtypes, conversions of single numbers, and reductions in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes  # noqa: F401  (registers "bfloat16" with NumPy)
import numpy as np

Array = np.ndarray
Position = tuple[int, ...]

INTEGERS = ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEXES = ["complex64", "complex128"]
DTYPES = {name: np.dtype(name) for name in ["bool", *INTEGERS, *FLOATS, *COMPLEXES]}
BOOL, INT64, UINT64 = DTYPES["bool"], DTYPES["int64"], DTYPES["uint64"]
FLOAT32, FLOAT64 = DTYPES["float32"], DTYPES["float64"]

REDUCES = {"add": "sum", "prod": "mul", "multiply": "mul", "max": "amax", "min": "amin"}
REDUCES |= {name: name for name in ["sum", "mul", "mean", "amax", "amin"]}


def kind(dtype: np.dtype) -> str:
    return {"b": "bool", "u": "integer", "i": "integer", "c": "complex"}.get(dtype.kind, "float")


def dtype_named(op: str, dtype: Any) -> np.dtype:
    if str(dtype) not in DTYPES:
        raise TypeError(f"{op}: dtype is {dtype}, expected one of {', '.join(DTYPES)}")
    return DTYPES[str(dtype)]


def limits(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def wrapped(value: int, dtype: np.dtype) -> Any:
    low, high = limits(dtype)
    return dtype.type((value - low) % (high - low + 1) + low)


def rounded(value: float, dtype: np.dtype) -> Any:
    """Rounds an int or a float once to a float dtype, to nearest, ties to even."""
    with np.errstate(all="ignore"):
        guess = dtype.type(float(value))
        if dtype == FLOAT64 or value == 0 or not math.isfinite(value):
            return guess
        infinity = dtype.type(math.inf)
        near = [guess, np.nextafter(guess, infinity), np.nextafter(guess, -infinity)]
    beyond = 2**16 if dtype == DTYPES["float16"] else 2**128  # the value that infinity would have

    def error(number: Any) -> tuple[Fraction, int]:
        exact = math.copysign(min(abs(float(number)), beyond), float(number))
        odd = int(np.array(number).view(f"uint{8 * dtype.itemsize}")) & 1
        return abs(Fraction(exact) - Fraction(value)), odd

    return min(near, key=error)


def plain(number: Any) -> Any:
    """The exact value as a Python int, float or complex."""
    return {"float": float, "complex": complex}.get(kind(number.dtype), int)(number)


def converted(number: Any, dtype: np.dtype) -> Any:
    """Casts one number. A cast from complex to real is not allowed."""
    value, want = plain(number), kind(dtype)
    if want == "bool":
        return dtype.type(value != 0)
    if want == "complex":
        part = FLOAT32 if dtype.itemsize == 8 else FLOAT64
        return dtype.type(complex(rounded(value.real, part), rounded(value.imag, part)))
    if want == "float":
        return rounded(value, dtype)
    if isinstance(value, int):
        return wrapped(value, dtype)
    low, high = limits(dtype)
    if not math.isfinite(value):
        return dtype.type(high if value > 0 else low if value < 0 else 0)
    return dtype.type(min(max(int(value), low), high))


def scalar(op: str, name: str, value: Any, dtype: np.dtype) -> Any:
    """Converts a Python number argument to the dtype of the tensor that it is written into."""
    ranks = ["bool", "integer", "float", "complex"]
    given = {bool: "bool", int: "integer", float: "float", complex: "complex"}[type(value)]
    if ranks.index(given) > ranks.index(kind(dtype)):
        raise TypeError(f"{op}: {name} is {value}, which dtype {dtype} can't hold")
    if kind(dtype) == "integer" and not limits(dtype)[0] <= value <= limits(dtype)[1]:
        raise ValueError(f"{op}: {name} is {value}, which dtype {dtype} can't hold")
    if given == "integer" and kind(dtype) == "float":
        return rounded(value, dtype)
    return dtype.type(value) if given == "integer" else converted(np.array(value)[()], dtype)


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which floats and complex numbers are computed before the final rounding."""
    return FLOAT32 if kind(dtype) == "float" and dtype.itemsize == 2 else dtype


def product(a: Any, b: Any) -> Any:
    if kind(a.dtype) != "complex":
        return a * b
    real, imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    return a.dtype.type(complex(real, imag))


def reduction(numbers: Sequence[Any], how: str, dtype: np.dtype) -> Any:
    """The reduction of one or more numbers of `dtype`, in order."""
    if how == "assign":
        return numbers[-1]
    if kind(dtype) == "bool":
        return dtype.type(any(numbers) if how in ("sum", "amax") else all(numbers))
    if how in ("amax", "amin"):
        best = numbers[0]
        for number in numbers:
            if number != number:  # NaN
                return number
            if (number > best) if how == "amax" else (number < best):
                best = number
        return best
    if kind(dtype) == "integer":
        total = 1 if how == "mul" else 0
        for number in numbers:
            total = total * int(number) if how == "mul" else total + int(number)
        return wrapped(total // len(numbers) if how == "mean" else total, dtype)
    work = wide(dtype)
    with np.errstate(all="ignore"):
        total = work.type(numbers[0])
        for number in numbers[1:]:
            next_one = work.type(number)
            total = product(total, next_one) if how == "mul" else total + next_one
        if how == "mean" and kind(dtype) == "complex":
            count = total.real.dtype.type(len(numbers))
            total = complex(total.real / count, total.imag / count)
        elif how == "mean":
            total = total / work.type(len(numbers))
        return dtype.type(total)
