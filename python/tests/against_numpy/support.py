"""Helpers of the tests against NumPy: dtypes, and reductions into places by `ufunc.at`."""

from __future__ import annotations

import numpy as np
import pytest
from naive import DTYPES, FLOATS, INTEGERS

SHORT_FLOATS = ["float16", "bfloat16"]
REALS = ["bool", *INTEGERS, *FLOATS]

each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_self = pytest.mark.parametrize("include_self", [True, False], ids=["with self", "without"])

AT = {
    "sum": np.add,
    "add": np.add,
    "mul": np.multiply,
    "multiply": np.multiply,
    "prod": np.multiply,
    "amax": np.maximum,
    "max": np.maximum,
    "amin": np.minimum,
    "min": np.minimum,
}
REDUCES = [*AT, "mean"]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a * b`, with each real product rounded.

    For complex numbers, NumPy uses fused multiply-add where it can, so that its result depends on
    the processor and on the strides.
    """
    if a.dtype.kind != "c":
        return np.multiply(a, b)
    a, b = np.broadcast_arrays(a, b)
    out = np.empty(a.shape, a.dtype)
    out.real = a.real * b.real - a.imag * b.imag
    out.imag = a.real * b.imag + a.imag * b.real
    return out


def reduced(
    x: np.ndarray, index: np.ndarray, updates: np.ndarray, reduce: str, include_self: bool
) -> np.ndarray:
    """Reduces rows of updates into the rows of x that an int64 index names."""
    if reduce == "mean":
        return averaged(x, index, updates, include_self)
    if str(x.dtype) in SHORT_FLOATS:
        # By choice: NumPy rounds after each step, Inlay reduces in float32 and rounds once. See the
        # test that sums 4096 ones.
        wide = reduced(x.astype("f4"), index, updates.astype("f4"), reduce, include_self)
        return wide.astype(x.dtype)
    out = x.copy()
    if not include_self:
        # The first update replaces the old value. Starting from 0 would lose the sign of a sum
        # of -0.0.
        first = np.unique(index, return_index=True)[1]
        out[index[first]] = updates[first]
        rest = np.delete(np.arange(len(index)), first)
        index, updates = index[rest], updates[rest]
    if x.dtype.kind == "c" and AT[reduce] is np.multiply:
        for row, update in zip(index, updates, strict=True):
            out[row] = product(out[row], update)
    else:
        AT[reduce].at(out, index, updates)
    return out


def averaged(
    x: np.ndarray, index: np.ndarray, updates: np.ndarray, include_self: bool
) -> np.ndarray:
    """The mean as a sum divided by a count, rounded down for integers. NumPy has no such mean."""
    exact = {"i": "object", "u": "object"}.get(x.dtype.kind, x.dtype)
    work = np.dtype("f4") if str(x.dtype) in SHORT_FLOATS else np.dtype(exact)
    total = reduced(x.astype(work), index, updates.astype(work), "sum", include_self)
    count = np.bincount(index, minlength=len(x)) + include_self
    named = np.unique(index)
    count = count[named].reshape(-1, *[1] * (x.ndim - 1))
    out = x.copy()
    if work.kind == "O":
        out[named] = (total[named] // count).astype(x.dtype)
    elif x.dtype.kind == "c":
        out.real[named] = total.real[named] / count.astype(total.real.dtype)
        out.imag[named] = total.imag[named] / count.astype(total.real.dtype)
    else:
        out[named] = (total[named] / count.astype(work)).astype(x.dtype)
    return out
