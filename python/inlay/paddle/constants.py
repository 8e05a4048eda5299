"""The values of a static graph, as `bind` sees them. Other arguments become constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from inlay._inlay import Tensor
from inlay.paddle.tensors import dtype_name

#: The name of the library in errors.
name = "Paddle"

# `paddle.assign` takes NumPy arrays of these dtypes.
_ASSIGNED = frozenset(["bool", "int32", "int64", "float32", "float64", "complex64", "complex128"])


def is_tensor(value: object) -> bool:
    """Whether a value belongs to a program."""
    return isinstance(value, paddle.pir.Value)


def dtype(tensor: Any) -> str:
    """The name of the dtype of a value."""
    return dtype_name(tensor.dtype)


def adopt(tensor: Tensor) -> Any:
    """A constant of the current program with the values of a tensor."""
    name = str(tensor.dtype)
    if name not in _ASSIGNED:
        # These dtypes are exact in the wider one.
        wide = tensor.astype("float32" if "float" in name else "int32")
        return paddle.cast(_assigned(wide.numpy()), name)
    array = tensor.numpy()
    if array.dtype.kind == "c":
        return paddle.complex(_assigned(array.real), _assigned(array.imag))
    return _assigned(array)


def _assigned(array: Any) -> Any:
    """A constant with the elements of an array."""
    if array.dtype.kind == "f" and np.any((array == 0) & np.signbit(array)):
        # Paddle drops the sign of a zero.
        signs = np.copysign(np.ones_like(array), array)
        return paddle.assign(np.asarray(array * signs)) * paddle.assign(np.asarray(signs))
    return paddle.assign(np.array(array, order="C"))
