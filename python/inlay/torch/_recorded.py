"""The short way of a call that autograd records: plain tensors, and nothing watches.

It does the same as `_autograd.ApplyAlone`, with less Python code: a tiny call takes a third of the
time. What is not plain in the backward pass goes on as there.
"""

from __future__ import annotations

from typing import Any

import torch

from ._autograd import Derived, Missing, apply

_C = torch._C


class Recorded(torch.autograd.Function):  # type: ignore[misc]
    """A call of an operation on plain tensors."""

    @staticmethod
    def forward(ctx: Any, function: Any, *tensors: Any) -> Any:
        """Computes the result, and saves what the derivative needs."""
        results, ctx.vjp, saved, ctx.kept = function.record(tensors, ctx.needs_input_grad[1:])
        ctx.save_for_backward(*saved)
        ctx.set_materialize_grads(False)
        result = results[0]
        dtype = result.dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            ctx.mark_non_differentiable(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Returns the gradients of the inputs."""
        vjp, kept = ctx.vjp, ctx.kept
        if grad is None:
            return (None,) * len(kept)
        saved = ctx.saved_tensors
        if not _C.is_grad_enabled() and not _C._len_torch_dispatch_stack():
            try:
                return None, *vjp.recall(saved, kept, (grad,))
            except Exception:
                # The gradient is not plain: it has the conjugate bit, or belongs to a batch.
                pass
        left = iter(saved)
        given = [next(left) if item is None else Missing(item.dtype, item.shape) for item in kept]
        found = iter(apply(Derived(vjp), [*given, grad]))
        return None, *(next(found) if wanted else None for wanted in vjp.wanted)


# `Function.apply` in Python only looks for transforms, as `record` does.
_apply = super(torch.autograd.Function, Recorded).apply


def record(function: Any, *tensors: Any) -> Any:
    """Calls a Function on plain tensors, of which some require a gradient."""
    if _C._functorch.peek_interpreter_stack() is not None:
        return apply(Derived(function), tensors)[0]
    return _apply(function, *tensors)
