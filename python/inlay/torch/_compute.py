"""Functions on plain CPU tensors, outside of autograd."""

from __future__ import annotations

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
        # Forward-mode gradients have tensors of zeros that have no memory.
        zeros = [k for k, item in enumerate(given) if _is_zero(item)]
        if not zeros:
            raise
        for k in zeros:
            given[k] = given[k].clone()
        results = function.call(given)
    return [_own(result, results[:k]) for k, result in enumerate(results)]


def _is_zero(item: Any) -> bool:
    return type(item) is not tuple and bool(item._is_zerotensor())


def _own(result: Any, others: Sequence[Any]) -> Any:
    """Returns a result that shares no memory with others. Functions share none with inputs."""
    if not isinstance(result, torch.Tensor):
        result = torch.from_dlpack(result)
    if not result.is_contiguous():
        return result.contiguous()
    start = result.data_ptr()
    return result.clone() if any(other.data_ptr() == start for other in others) else result
