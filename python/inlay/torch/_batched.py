"""Batches of gradients: `torch.autograd.grad(..., is_grads_batched=True)`.

Torch makes them with an older kind of vmap, which knows nothing of `autograd.Function`. Its tensors
arrive in the forward pass of a derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._compute import compute

_C = torch._C
_BATCHED = _C._parse_dispatch_key("Batched")


def is_batched(tensor: Any) -> bool:
    """Whether a tensor is one of a batch of the older vmap."""
    return bool(_C._dispatch_keys(tensor).has(_BATCHED))


def run_batched(function: Any, inputs: Sequence[Any]) -> list[Any]:
    """Calls a Function once for the whole batch of the innermost vmap."""
    level = _C._vmapmode_increment_nesting() - 1
    _C._vmapmode_decrement_nesting()
    axes: list[int | None] = []
    given = []
    for item in inputs:
        batched = type(item) is not tuple and is_batched(item)
        axes.append(0 if batched else None)
        given.append(torch._remove_batch_dim(item, level, 1, 0) if batched else item)
    outputs = compute(function.vmap(tuple(axes)), given)
    return [torch._add_batch_dim(output, 0, level) for output in outputs]
