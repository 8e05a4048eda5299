"""The values of a static graph, as `bind` sees them. Other arguments become constants."""

from __future__ import annotations

from typing import Any

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
    if name in _ASSIGNED:
        return paddle.assign(tensor.numpy())
    # These dtypes are exact in the wider one.
    wide = "float32" if "float" in name else "int32"
    return paddle.cast(paddle.assign(tensor.astype(wide).numpy()), name)
