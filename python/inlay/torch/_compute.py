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
    given = [item if type(item) is tuple else resolved(item) for item in inputs]
    results = function.call(given)
    return [_own(result, k, results, given) for k, result in enumerate(results)]


def _own(result: Any, k: int, results: Sequence[Any], inputs: Sequence[Any]) -> Any:
    if not isinstance(result, torch.Tensor):
        result = torch.from_dlpack(result)
    if not result.numel():
        return torch.empty(result.shape, dtype=result.dtype)  # with the strides that torch expects
    if not result.is_contiguous():
        return result.contiguous()
    start, size = result.data_ptr(), result.nbytes
    for other in (*inputs, *results[:k]):
        if type(other) is not tuple:
            storage = other.untyped_storage()
            first = storage.data_ptr()
            if start < first + storage.nbytes() and first < start + size:
                return result.clone()
    return result
