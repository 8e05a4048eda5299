"""Helpers of the tests of the bridge to PyTorch: tensors from arrays and back, and layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch
from cases import OPERATIONS, SYNTAX, Case, all_cases

import inlay

CASES = [case for case in all_cases() if case.op not in SYNTAX]
WITH_TENSORS = [case for case in CASES if case.tensors]
IN_PLACE = [case.in_place() for case in WITH_TENSORS if case.inplace]


def to_torch(array: np.ndarray) -> Any:
    """A tensor with the elements of an array, in memory of its own."""
    array = np.array(array, order="C")
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array).clone(memory_format=torch.contiguous_format)


def to_numpy(tensor: Any) -> np.ndarray:
    """An array with the elements of a tensor."""
    assert isinstance(tensor, torch.Tensor)
    tensor = tensor.detach()
    if tensor.dtype is torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def contiguous(tensor: Any) -> Any:
    return tensor


def transposed(tensor: Any) -> Any:
    order = tuple(reversed(range(tensor.ndim)))
    return tensor.permute(order).contiguous().permute(order)


def every_other(tensor: Any) -> Any:
    room = torch.zeros([2 * size + 1 for size in tensor.shape], dtype=tensor.dtype)
    view = room[(..., *[slice(1, None, 2)] * tensor.ndim)]
    view.copy_(tensor)
    return view


def expanded(tensor: Any) -> Any:
    """Stride 0 along each axis whose elements are equal; for reading only."""
    for axis in range(tensor.ndim):
        if tensor.shape[axis] > 1:
            first = tensor.narrow(axis, 0, 1).expand_as(tensor)
            if to_numpy(first).tobytes() == to_numpy(tensor).tobytes():  # -0.0 is not 0.0
                tensor = first
    return tensor


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": transposed,
    "every_other": every_other,
    "expanded": expanded,
}


def call(case: Case, tensors: dict[str, Any], in_place: bool = False) -> Any:
    """Calls the function of a case."""
    inputs, attrs = case.arguments(tensors)
    return getattr(inlay, OPERATIONS[case.op].twin if in_place else case.op)(*inputs, **attrs)


def tensors_of(case: Case, layout: Callable[[Any], Any] = contiguous) -> dict[str, Any]:
    return {name: layout(to_torch(array)) for name, array in case.tensors.items()}


def wants_gradient(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def ops_arguments(case: Case, tensors: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of the call in `torch.ops.inlay`."""
    from inlay.torch._library import LAYOUTS as SCHEMAS

    operation = OPERATIONS[case.op]
    inputs, attrs = case.arguments(tensors)
    places = {
        spelling: place
        for place, argument in enumerate(operation.arguments)
        for spelling in (argument.name, *argument.aliases)
    }
    objects = inputs + [None] * (len(operation.arguments) - len(inputs))
    for name, value in attrs.items():
        objects[places[name]] = value
    for place, several in SCHEMAS[case.op].tensors:
        value = objects[place]
        if not several and not isinstance(value, torch.Tensor):
            objects[place] = torch.tensor(
                value, dtype=objects[SCHEMAS[case.op].tensors[0][0]].dtype
            )
    return SCHEMAS[case.op].arguments(objects)
