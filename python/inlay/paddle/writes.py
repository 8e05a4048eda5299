"""In-place calls: they write into the memory of a Paddle tensor, and its autograd notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddle import _C_ops

from inlay.errors import InlayValueError
from inlay.paddle.layer import Call, InlayCall, Saved, sources, wanted
from inlay.paddle.tensors import OPERATIONS, spec

if TYPE_CHECKING:
    from inlay._inlay import Function


def write(function: Function, tensors: list[Any]) -> Any:
    """Calls a function in place, and records the call if an input needs a gradient."""
    target = tensors[0]
    needs = wanted(function, tensors)
    if needs is None:
        function.write(tensors)
        target._bump_inplace_version()
        return target
    if not target.stop_gradient and target.is_leaf:
        # Paddle's own in-place operations raise a ValueError here.
        first = OPERATIONS[function.name].arguments[0].name
        raise InlayValueError(
            f"{function.name}: {first} is a leaf that requires a gradient, so it can't be written "
            f"in place; call inlay.{function.name}, or write inside of paddle.no_grad()"
        )
    call = Call(function, tensors, needs)
    if call.used([spec(target)] * function.outputs)[0] == 2:
        # The clone is part of the graph, so that gradients of gradients reach the old values.
        call.old = target.clone()
    result = InlayWrite.apply(call, sources(tensors, needs))
    if not needs[0]:
        # `PyLayer` does not accept a leaf as its result, not even one without a gradient. Its
        # result is another tensor over the same memory. The assignment copies nothing: it makes
        # the target the result in Paddle's graph, and counts the write.
        _C_ops.assign_out_(result, target)
    return target


class InlayWrite(InlayCall):
    """An in-place call in Paddle's graph. Its gradient is the one of the call that is not."""

    @staticmethod
    def forward(ctx: Any, call: Call, sources: list[Any]) -> Any:
        """Writes into the target, and saves what the gradient uses."""
        call.function.write(call.tensors)
        target = call.tensors[0]
        ctx.saved = Saved(call, [target], written=True)
        return target if call.needs[0] else target.detach()
