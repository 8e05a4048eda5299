"""The node of a call that autograd records: plain tensors, and nothing watches.

The call itself and its derivative run in Rust. A gradient that is not plain, or that is recorded
itself, goes on as in `_autograd`.
"""

from __future__ import annotations

from typing import Any

import torch

from inlay._inlay import Recording

from ._autograd import Derived, Missing, apply


class Recorded(torch.autograd.Function):  # type: ignore[misc]
    """A call on plain tensors: a `Recording`, and the inputs that need a gradient."""

    # It returns the result, which was computed before.
    forward = staticmethod(Recording.enter_torch)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """Returns the gradients of the inputs."""
        recording = ctx.recording
        if grad is None:
            return (None,) * len(ctx.needs_input_grad)
        saved = ctx.saved_tensors
        found = recording.gradients(saved, grad)
        if found is None:
            inputs = [
                Missing(*item) if type(item) is tuple else item for item in recording.inputs(saved)
            ]
            found = apply(Derived(recording.vjp), [*inputs, grad])
        return None, *found


# The engine calls this method of the node. Torch's own looks for `backward` and calls it.
Recorded._backward_cls.apply = Recorded.backward

# `Function.apply` in Python only looks for transforms. The caller has seen that there are none.
record = super(torch.autograd.Function, Recorded).apply
