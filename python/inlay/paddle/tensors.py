"""What the bridge needs to know about Paddle tensors: dtypes, and which of them it can read."""

from __future__ import annotations

from typing import Any

import paddle

from inlay._inlay import Operation, Tensor, operations
from inlay.errors import InlayTypeError, InlayValueError

#: The name of the library in errors.
name = "Paddle"

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in operations()}

#: Names of dtypes, such as "float32". Paddle's own name of a dtype is "paddle.float32".
_NAMES: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """The name of a Paddle dtype, as Inlay writes it."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).removeprefix("paddle.")
    return name


def differentiable(name: str) -> bool:
    """Whether tensors of a dtype have gradients."""
    return name.startswith(("float", "bfloat", "complex"))


def is_tensor(value: object) -> bool:
    """Whether a value is an eager Paddle tensor."""
    return isinstance(value, paddle.Tensor)


def dtype(tensor: Any) -> str:
    """The name of the dtype of a tensor."""
    return dtype_name(tensor.dtype)


def adopt(tensor: Tensor) -> Any:
    """A Paddle tensor over the memory of a tensor of Inlay."""
    return paddle.utils.dlpack.from_dlpack(tensor)


def spec(tensor: Any) -> tuple[str, list[int]]:
    """The dtype and the shape of a tensor. A stand-in is its own description."""
    if type(tensor) is tuple:
        return tensor
    return dtype_name(tensor.dtype), tensor.shape


def check_all(name: str, objects: tuple[Any, ...]) -> None:
    """Raises for the first tensor among the arguments that the bridge can't read.

    It must run before anything reads the tensors through DLPack: Paddle's own functions read a
    tensor without memory, or a sparse one, as if it were dense, and crash.
    """
    for place, value in enumerate(objects):
        if isinstance(value, paddle.Tensor):
            _check(name, place, value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, paddle.Tensor):
                    _check(name, place, item)


def _check(name: str, place: int, tensor: Any) -> None:
    if tensor.is_dense() and tensor._is_dense_tensor_hold_allocation():
        if tensor.place.is_cpu_place():
            return
        where, way = str(tensor.place), "pass {0}.cpu()"
        what = f"is on {where}, but Inlay computes on the CPU"
    else:
        what, way = _unreadable(tensor)
    argument = OPERATIONS[name].arguments[place].name
    error = InlayValueError if "memory" in what else InlayTypeError
    raise error(f"{name}: {argument} {what}; {way.format(argument)}")


def _unreadable(tensor: Any) -> tuple[str, str]:
    """Why a tensor that is not dense can't be read, and how to go on."""
    if tensor.is_dist():
        return "is a DistTensor", "pass the local part, {0}._local_value()"
    if tensor.is_sparse_coo():
        return "is a SparseCooTensor, expected a dense tensor", "pass {0}.to_dense()"
    if tensor.is_sparse_csr():
        return "is a SparseCsrTensor, expected a dense tensor", "pass {0}.to_dense()"
    if tensor.is_selected_rows():
        return "is a SelectedRows, expected a dense tensor", "pass a dense tensor"
    return "has no memory: it was cleared", "pass a tensor with values"
