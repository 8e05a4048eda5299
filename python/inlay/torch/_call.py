"""Inlay's functions on torch tensors: what the C functions call if an argument is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.overrides import handle_torch_function, has_torch_function

import inlay
from inlay._bridge import bind

from . import _library
from ._autograd import ApplyInPlace, Derived, apply, needs_old_value
from ._checks import check_writable, explain, is_plain, modes_active, resolved
from ._compute import compute
from ._dtypes import name_of

_C = torch._C
_OPERATIONS = {operation.name: operation for operation in inlay.operations()}


class Torch:
    """What `inlay._bridge` needs to know of torch."""

    name = "torch"

    @staticmethod
    def is_tensor(value: Any) -> bool:
        """Whether this is a torch tensor."""
        return isinstance(value, torch.Tensor)

    @staticmethod
    def dtype(tensor: Any) -> str:
        """Returns Inlay's name of the dtype of a tensor."""
        return name_of(tensor.dtype)

    @staticmethod
    def adopt(tensor: Any) -> Any:
        """Returns a torch tensor over the memory of an Inlay tensor."""
        adopted = torch.from_dlpack(tensor)
        fake = _C._get_dispatch_mode(_C._TorchDispatchModeKey.FAKE)
        if fake is None or fake.allow_non_fake_inputs:
            return adopted
        return fake.from_tensor(adopted)


_TORCH = Torch()


def call(name: str, in_place: bool, objects: Sequence[Any]) -> Any:
    """Calls an operation, with one object for each declared argument.

    An argument that was left out is None.
    """
    operation = _OPERATIONS[name]
    public = operation.twin if in_place and operation.twin else name
    relevant = _tensors(objects)
    if has_torch_function(relevant):
        keywords = {
            argument.name: value
            for argument, value in zip(operation.arguments, objects, strict=True)
            if value is not None
        }
        return handle_torch_function(getattr(inlay, public), relevant, **keywords)
    given = [name_of(value, name) if isinstance(value, torch.dtype) else value for value in objects]
    try:
        function, tensors = bind(name, tuple(given), _TORCH)
        if modes_active() or not all(map(is_plain, tensors)):
            return _dispatched(operation, in_place, given, tensors)
        run = _write if in_place else _compute
        return run(function, operation, tensors)
    except Exception as error:
        explain(public, relevant, error)
        raise


def _tensors(objects: Sequence[Any]) -> list[Any]:
    """Returns the torch tensors among the arguments, also those in lists."""
    found: list[Any] = []
    for value in objects:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(item for item in value if isinstance(item, torch.Tensor))
    return found


def _needs_gradient(tensors: Sequence[Any]) -> bool:
    return _C.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _compute(function: Any, operation: Any, tensors: Sequence[Any]) -> Any:
    if _needs_gradient(tensors) or forward_ad._current_level >= 0:
        return apply(Derived(function), tensors)[0]
    return compute(function, tensors)[0]


def _write(function: Any, operation: Any, tensors: Sequence[Any]) -> Any:
    target = tensors[0]
    check_writable(operation.twin, operation.arguments[0].name, target)
    if forward_ad._current_level >= 0:
        return target.copy_(apply(Derived(function), tensors)[0])
    inputs = [target, *(resolved(tensor) for tensor in tensors[1:])]
    if _needs_gradient(tensors):
        old = target.clone() if needs_old_value(function, inputs) else None
        return ApplyInPlace.apply(Derived(function), *inputs, old)
    function.write(inputs)
    if not target.is_inference():
        _C._increment_version((target,))
    return target


def _dispatched(operation: Any, in_place: bool, objects: Sequence[Any], tensors: Any) -> Any:
    """Calls the operation of `torch.ops.inlay`, which modes, transforms and tracers can see."""
    layout = _library.LAYOUTS[operation.name]
    args, keywords = layout.arguments(layout.filled(objects, tensors))
    result = getattr(torch.ops.inlay, operation.twin if in_place else operation.name)(
        *args, **keywords
    )
    return args[0] if in_place else result
