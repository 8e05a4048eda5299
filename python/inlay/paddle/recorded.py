"""The short way of a call that Paddle records: plain tensors in the dynamic graph.

It does the same as `layer.InlayCall`, with less Python code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import paddle
from paddle.base import core

from inlay.paddle.layer import apply, expect_version
from inlay.paddle.tensors import differentiable, dtype

if TYPE_CHECKING:
    from inlay._inlay import Function


class _Call:
    """A function with its inputs. Paddle looks for tensors in lists, but not in other objects."""

    __slots__ = ("function", "required", "tensors")

    def __init__(self, function: Function, tensors: tuple[Any, ...]) -> None:
        self.function = function
        self.tensors = tensors
        self.required = tuple(not tensor.stop_gradient for tensor in tensors)


class InlayRecorded(paddle.autograd.PyLayer):  # type: ignore[misc]
    """A call of an operation on plain tensors. Its arguments are those of `layer.InlayCall`."""

    @staticmethod
    def forward(ctx: Any, call: _Call, sources: list[Any]) -> Any:
        """Calls the function, and saves what its gradient reads."""
        results, ctx.vjp, saved, ctx.kept = call.function.record(call.tensors, call.required)
        result = results[0]
        # A result refers to the recorded call, which holds what is saved. A detached result does
        # not, so it closes no cycle.
        ctx.saved = tuple(item.detach() if item is result else item for item in saved)
        ctx.versions = [item.inplace_version for item in ctx.saved]
        if not differentiable(dtype(result)):
            ctx.mark_non_differentiable(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[list[Any]]:
        """The gradients of the inputs that need one, as one list."""
        vjp, saved = ctx.vjp, ctx.saved
        for item, version in zip(saved, ctx.versions, strict=True):
            expect_version(vjp.name, item, version)
        if not core._has_grad():
            found = vjp.recall(saved, ctx.kept, (grad,))
            return ([gradient for gradient in found if gradient is not None],)
        left = iter(saved)
        given = [next(left) if item is None else (item.dtype, item.shape) for item in ctx.kept]
        return (apply(vjp, [*given, grad]),)


@paddle.jit.not_to_static  # type: ignore[untyped-decorator]
def record(function: Function, *tensors: Any) -> Any:
    """Calls a function on plain tensors, of which some require a gradient."""
    call = _Call(function, tensors)
    may = zip(tensors, call.required, function.differentiable, strict=True)
    return InlayRecorded.apply(call, [x for x, needs, has in may if needs and has])
