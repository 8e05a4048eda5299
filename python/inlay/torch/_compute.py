"""Functions on plain CPU tensors, outside of autograd."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from ._checks import resolved


def compute(function: Any, inputs: Sequence[Any]) -> list[Any]:
    """Calls a Function. An input is a tensor, or the dtype and the shape of one.

    The results are contiguous and have memory of their own, because two tensors over one memory
    would not notice each other's in-place changes.
    """
    given: list[Any] = [item if type(item) is tuple else resolved(item) for item in inputs]
    try:
        results = function.call(given)
    except Exception:
        readable = [item if type(item) is tuple else _readable(item) for item in given]
        if all(map(operator.is_, readable, given)):
            raise
        results = function.call(readable)
    return [_own(result, results[:k]) for k, result in enumerate(results)]


def _readable(tensor: Any) -> Any:
    """Returns a tensor with memory for one that hides it, if there is such."""
    # A pullback of torch.func.vjp gets tensors of a transform that has ended.
    tensor = torch._C._functorch.unwrap_if_dead(tensor)
    # Forward-mode gradients have tensors of zeros that have no memory.
    return tensor.clone() if tensor._is_zerotensor() else tensor


def _own(result: Any, others: Sequence[Any]) -> Any:
    """Returns a result that shares no memory with others. Functions share none with inputs."""
    if not isinstance(result, torch.Tensor):
        result = torch.from_dlpack(result)
    if not result.is_contiguous():
        return result.contiguous()
    start = result.data_ptr()
    return result.clone() if any(other.data_ptr() == start for other in others) else result
