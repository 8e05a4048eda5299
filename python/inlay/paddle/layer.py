"""Functions in the autograd graph of Paddle: one `PyLayer` serves all operations and all orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import paddle
from paddle.base import core

from inlay.errors import InlayRuntimeError
from inlay.paddle.tensors import differentiable, dtype, spec

if TYPE_CHECKING:
    from inlay._inlay import Function


def wanted(function: Function, tensors: list[Any]) -> tuple[bool, ...] | None:
    """Which inputs need a gradient. `None` if no input does, or if Paddle does not record."""
    if not core._has_grad():
        return None
    found = tuple(
        may and type(tensor) is not tuple and not tensor.stop_gradient
        for may, tensor in zip(function.differentiable, tensors, strict=True)
    )
    return found if any(found) else None


def apply(function: Function, tensors: list[Any]) -> list[Any]:
    """Calls a function, and records the call if an input needs a gradient."""
    needs = wanted(function, tensors)
    if needs is None:
        return function.call(tensors)
    return list(InlayCall.apply(Call(function, tensors, needs), sources(tensors, needs)))


def sources(tensors: list[Any], needs: tuple[bool, ...]) -> list[Any]:
    """The inputs that need a gradient."""
    return [tensor for tensor, need in zip(tensors, needs, strict=True) if need]


class Call:
    """A function with its inputs. Paddle looks for tensors in lists, but not in other objects."""

    __slots__ = ("function", "needs", "old", "tensors", "vjp")

    def __init__(self, function: Function, tensors: list[Any], needs: tuple[bool, ...]) -> None:
        self.function = function
        self.tensors = tensors
        self.needs = needs
        self.vjp = function.vjp(needs)
        #: The target as it was before an in-place call, if the gradient needs its values.
        self.old: Any = None

    def used(self, outputs: list[tuple[str, list[int]]]) -> tuple[int, ...]:
        """How the gradient uses each input and output: 0 not, 1 its shape, 2 its values."""
        inputs = [spec(tensor) for tensor in self.tensors]
        return self.vjp.needs([*inputs, *outputs, *outputs])


class Saved:
    """The inputs and outputs of a call that its gradient uses, with stand-ins for the others."""

    __slots__ = ("items", "name", "versions", "vjp")

    def __init__(self, call: Call, results: list[Any], written: bool = False) -> None:
        used = call.used([spec(result) for result in results])
        self.name = call.function.name
        self.vjp = call.vjp
        self.items: list[Any] = []
        #: The number of the item and its version, for each tensor that was saved.
        self.versions: list[tuple[int, int]] = []
        for k, tensor in enumerate(call.tensors):
            self._save(call.old if k == 0 and written else tensor, tensor, used[k])
        for k, result in enumerate(results, len(call.tensors)):
            # A result refers to the recorded call, which holds this object. A detached result
            # does not, so it closes no cycle. The gradient with respect to it is not asked for.
            kept = result.detach() if used[k] == 2 else None
            # Paddle counts the write after the call has returned.
            self._save(kept, result, used[k], later=int(written))

    def _save(self, kept: Any, tensor: Any, used: int, later: int = 0) -> None:
        if used == 2 and type(tensor) is not tuple:
            self.versions.append((len(self.items), kept.inplace_version + later))
            self.items.append(kept)
        else:
            self.items.append(spec(tensor))

    def restore(self) -> list[Any]:
        """The saved items."""
        for k, version in self.versions:
            expect_version(self.name, self.items[k], version)
        return self.items


def expect_version(name: str, tensor: Any, version: int) -> None:
    """Raises if a saved tensor was written since, as Paddle does for its own calls."""
    now = tensor.inplace_version
    if now != version:
        raise InlayRuntimeError(
            f"{name}: a tensor that the gradient needs was written in place after the call: its "
            f"version is {now}, expected {version}; pass a clone to the in-place operation"
        )


class InlayCall(paddle.autograd.PyLayer):  # type: ignore[misc]
    """A call in Paddle's graph. Its gradient is a call again, so all orders work.

    The inputs that need a gradient are passed in one list, as one argument. `paddle.grad` marks
    edges that it does not need as stopped, and a `PyLayer` must return `None` for those, but is
    not told which. It marks no edges of a layer with a single argument.
    """

    @staticmethod
    def forward(ctx: Any, call: Call, sources: list[Any]) -> tuple[Any, ...]:
        """Calls the function, and saves what its gradient uses."""
        results = call.function.call(call.tensors)
        ctx.saved = Saved(call, results)
        constant = [result for result in results if not differentiable(dtype(result))]
        if constant:
            ctx.mark_non_differentiable(*constant)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[list[Any]]:
        """The gradients of the inputs that need one, as one list."""
        saved = ctx.saved
        return (apply(saved.vjp, [*saved.restore(), *gradients]),)
