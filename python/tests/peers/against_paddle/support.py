"""Helpers of the tests against Paddle: dtypes, conversions, and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import paddle
import pytest
from arguments import shapes
from naive import DTYPES

import inlay

UNSIGNED = ["uint16", "uint32", "uint64"]  # Paddle imports and exports them, but has no operations
KNOWN = [name for name in DTYPES if name not in UNSIGNED]

# The dtypes that Paddle supports. The test of dtypes shows that it supports no others.
LARGE = ["int32", "int64", "float32", "float64"]
TAKES = {
    "slice_scatter": KNOWN,
    "select_scatter": KNOWN,
    "diagonal_scatter": [name for name in KNOWN if name != "bfloat16"],
    "masked_scatter": ["bool", *LARGE, "complex64", "complex128"],
    "masked_fill": KNOWN,
    "masked_select": KNOWN,
    "index_fill": KNOWN,
    "index_select": ["bool", "bfloat16", *LARGE, "complex64", "complex128"],
    "scatter": LARGE,
    "put_along_axis": ["uint8", "int16", *LARGE],
    "take_along_axis": ["uint8", "int16", *LARGE],
    "where": ["bool", *LARGE, "complex64", "complex128"],
    "tril": ["bool", "float16", *LARGE, "complex64", "complex128"],
}


def each_dtype_of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("dtype", TAKES[name])


# Conversions.


def to_paddle(values: Any, dtype: str | None = None) -> paddle.Tensor:
    if not isinstance(values, np.ndarray | np.generic):
        return paddle.to_tensor(values, dtype=dtype)
    array = np.array(values, order="C")
    if array.dtype == DTYPES["bfloat16"]:
        return paddle.to_tensor(array.view("i2")).view("bfloat16")
    return paddle.to_tensor(array)


def to_numpy(tensor: paddle.Tensor) -> np.ndarray:
    array = tensor.numpy()
    return array.view(DTYPES["bfloat16"]) if tensor.dtype == paddle.bfloat16 else array


def laid(rng: np.random.Generator, array: np.ndarray) -> paddle.Tensor:
    """A Paddle tensor with the array's elements, with any order of axes and with gaps."""
    if array.size == 0:
        return to_paddle(array)
    order = rng.permutation(array.ndim)
    steps = tuple(slice(None, None, int(step)) for step in rng.integers(1, 3, array.ndim))
    wide = [array.shape[axis] * steps[axis].step for axis in order]
    base, back = np.ones(wide, array.dtype), np.argsort(order).tolist()
    base.transpose(back)[(..., *steps)] = array
    theirs = to_paddle(base)
    return theirs.transpose(back)[steps] if array.ndim else theirs


Compare = Callable[[np.ndarray, np.ndarray], None]


def shared(*tensors: paddle.Tensor) -> list[inlay.Tensor]:
    return [inlay.from_dlpack(tensor) for tensor in tensors]


# Arguments.


def full_shapes(
    rng: np.random.Generator, least: int = 0, each: int = 3
) -> Iterator[tuple[int, ...]]:
    """Shapes of every rank. None has an axis of size 0, because Paddle may crash on it."""
    return (tuple(max(size, 1) for size in shape) for shape in shapes(rng, least, each))


def some_rows(rng: np.random.Generator, size: int) -> np.ndarray:
    count = int(rng.integers(0, 2 * size + 2)) if size else 0
    return rng.integers(-size, max(size, 1), count)
