"""Helpers of the tests with Paddle tensors: dtypes, conversions, layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
from naive import DTYPES

#: Paddle imports and exports these dtypes, but has no operations for them.
UNSIGNED = ["uint16", "uint32", "uint64"]
KNOWN = [name for name in DTYPES if name not in UNSIGNED]


def to_paddle(values: Any, requires_gradient: bool = False) -> paddle.Tensor:
    """A Paddle tensor with the elements and the dtype of an array."""
    array = np.array(values, order="C")
    if array.dtype == DTYPES["bfloat16"]:
        tensor = paddle.to_tensor(array.view("i2")).view("bfloat16")
    else:
        tensor = paddle.to_tensor(array)
    tensor.stop_gradient = not requires_gradient
    return tensor


def to_numpy(tensor: paddle.Tensor) -> np.ndarray:
    """The elements of a Paddle tensor, which returns bfloat16 as uint16."""
    array = tensor.numpy()
    return array.view(DTYPES["bfloat16"]) if tensor.dtype == paddle.bfloat16 else array


def transposed(array: np.ndarray) -> paddle.Tensor:
    """A Paddle tensor whose memory has the axes in reverse order."""
    axes = list(range(array.ndim))[::-1]
    return to_paddle(np.transpose(array)).transpose(axes) if array.ndim else to_paddle(array)


def spread(array: np.ndarray) -> paddle.Tensor:
    """A Paddle tensor that is every other element of a larger one."""
    if array.size == 0 or array.ndim == 0:
        return to_paddle(array)
    wide = np.ones([2 * size + 1 for size in array.shape], array.dtype)
    wide[tuple(slice(1, None, 2) for _ in array.shape)] = array
    return to_paddle(wide)[tuple(slice(1, None, 2) for _ in array.shape)]


LAYOUTS: dict[str, Callable[[np.ndarray], paddle.Tensor]] = {
    "contiguous": to_paddle,
    "transposed": transposed,
    "spread": spread,
}


def has_dtypes(arrays: Any) -> bool:
    """Whether Paddle has the dtypes of all arrays."""
    return all(array.dtype.name in KNOWN for array in arrays)
