"""One `autograd.Function` for all operations, their derivatives of any order and their batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from ._batched import is_batched, run_batched
from ._checks import is_plain
from ._compute import compute
from ._dtypes import DTYPES, NAMES

_C = torch._C


class Missing:
    """Stands for a tensor of which only dtype and shape are used, so that it need not be saved."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: str, shape: Sequence[Any]) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)

    def tensor(self) -> Any:
        """Returns a tensor of one element that is expanded to the shape."""
        return torch.zeros((), dtype=DTYPES[self.dtype]).expand(self.shape)


def spec(tensor: Any) -> tuple[str, list[int | None]]:
    """Returns the dtype and the sizes of a tensor. A symbolic size is None."""
    dtype = tensor.dtype
    sizes = [size if type(size) is int else None for size in tensor.shape]
    return (dtype if type(dtype) is str else NAMES[dtype]), sizes


def needs(function: Any, tensors: Sequence[Any]) -> Sequence[int]:
    """Returns what a Function uses of each tensor: 0 nothing, 1 its shape, 2 its elements."""
    specs = [spec(tensor) for tensor in tensors]
    try:
        found: Sequence[int] = function.needs(specs)
    except Exception:
        if None not in [size for _, sizes in specs for size in sizes]:
            raise
        # A rule depends on sizes that are symbolic. Torch guards them when they become numbers.
        found = function.needs(
            [
                (dtype, [int(size) for size in t.shape])
                for (dtype, _), t in zip(specs, tensors, strict=True)
            ]
        )
    return found


class Derived:
    """A Function, called through the operation `inlay::function` if something is tracing."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def redispatch(self, tensors: Sequence[Any]) -> list[Any]:
        """Calls the operation of torch that computes the Function."""
        inputs = [t.tensor() if type(t) is Missing else t for t in tensors]
        outputs: list[Any] = torch.ops.inlay.function(self.function.text, inputs)
        return outputs


def _run(call: Any, tensors: Sequence[Any]) -> list[Any]:
    """Computes a Function below autograd."""
    direct = not _C._len_torch_dispatch_stack()
    items: list[Any] = []
    for tensor in tensors:
        if type(tensor) is Missing:
            items.append((tensor.dtype, tensor.shape))
        else:
            direct = direct and is_plain(tensor)
            items.append(tensor)
    if direct:
        try:
            return compute(call.function, items)
        except Exception:
            if not any(isinstance(item, torch.Tensor) and is_batched(item) for item in items):
                raise
            return run_batched(call.function, items)
    with _C._AutoDispatchBelowAutograd():
        redispatched: list[Any] = call.redispatch(tensors)
        return redispatched


class Apply(torch.autograd.Function):  # type: ignore[misc]
    """Calls a Function. The first argument is a call such as `Derived`, the others are tensors.

    The backward pass is a call of the same class, so derivatives have derivatives.
    """

    @staticmethod
    def forward(call: Any, *tensors: Any) -> Any:
        """Computes the outputs."""
        return tuple(_run(call, tensors))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Saves what the derivative needs, and the dtype and shape of the rest."""
        call, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.call = call
        # Integers have no gradient, nor has what no input changes (`ones_like`).
        may = any(call.function.differentiable)
        fixed = [t for t in output if not (may and (t.is_floating_point() or t.is_complex()))]
        if fixed:
            ctx.mark_non_differentiable(*fixed)
        _save(ctx, call.function, ctx.needs_input_grad[1:], tensors, output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Returns the gradients of the inputs, as outputs of a Function."""
        return None, *_gradients(ctx, grads)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """Returns the tangents of the outputs: the derivative of `backward`, which is linear."""
        function = ctx.call.function
        inputs, outputs = _restored(ctx)
        wanted = tuple(
            may and tangent is not None
            for may, tangent in zip(function.differentiable, tangents, strict=True)
        )
        if not any(wanted):
            return (None,) * function.outputs
        vjp = function.vjp(wanted)
        linear = (False,) * (function.inputs + function.outputs) + (True,) * function.outputs
        grads = [Missing(*_shape(t)) for t in outputs]
        chosen = [k for k, want in enumerate(wanted) if want]
        results = [Missing(*_shape(inputs[k])) for k in chosen]
        given = [*inputs, *outputs, *grads, *results, *(tangents[k] for k in chosen)]
        return tuple(apply(Derived(vjp.vjp(linear)), given))

    @staticmethod
    def vmap(info: Any, in_dims: Any, call: Any, *tensors: Any) -> Any:
        """Calls the Function over a batch, once."""
        axes = tuple(dim if type(dim) is int else None for dim in in_dims[1:])
        outputs = apply(Derived(call.function.vmap(axes)), tensors)
        return tuple(outputs), (0,) * len(outputs)


class ApplyAlone(torch.autograd.Function):  # type: ignore[misc]
    """`Apply` outside of `torch.func`. Torch inspects signatures at each call of `setup_context`.

    Measured: 25 us a call.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        """Computes the outputs, and saves what the derivative needs."""
        output = tuple(_run(inputs[0], inputs[1:]))
        Apply.setup_context(ctx, inputs, output)
        return output

    backward = staticmethod(Apply.backward)
    jvp = staticmethod(Apply.jvp)


class ApplyInPlace(torch.autograd.Function):  # type: ignore[misc]
    """Writes into the first tensor.

    The last argument is a copy of that tensor if the derivative needs its values, else None. It is
    not the first one because autograd takes the first for the target, if that is a view.
    """

    @staticmethod
    def forward(ctx: Any, call: Any, target: Any, *rest: Any) -> Any:
        """Writes, and returns the first tensor."""
        *tensors, old = rest
        call.function.write((target, *tensors))
        ctx.mark_dirty(target)
        ctx.set_materialize_grads(False)
        ctx.call = call
        old = Missing(*_shape(target)) if old is None else old
        _save(ctx, call.function, ctx.needs_input_grad[1:-1], [old, *tensors], (target,))
        return target

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Returns the gradients of the inputs."""
        return None, *_gradients(ctx, grads), None


def apply(call: Any, tensors: Sequence[Any]) -> list[Any]:
    """Returns the outputs of a Function, recorded by autograd if a gradient is needed."""
    if _C._functorch.peek_interpreter_stack() is not None:
        return list(Apply.apply(call, *tensors))
    if forward_ad._current_level < 0 and not (
        _C.is_grad_enabled() and any(type(t) is not Missing and t.requires_grad for t in tensors)
    ):
        return _run(call, tensors)
    return list(ApplyAlone.apply(call, *tensors))


def needs_old_value(function: Any, tensors: Sequence[Any]) -> bool:
    """Whether the derivative of an in-place call needs the value that the call overwrites."""
    wanted = _wanted(function, [t.requires_grad for t in tensors])
    if wanted is None:
        return False
    # An in-place write does not change dtype and shape.
    return needs(function.vjp(wanted), (*tensors, tensors[0], tensors[0]))[0] == 2


def _wanted(function: Any, required: Sequence[bool]) -> tuple[bool, ...] | None:
    """Returns which inputs get a gradient, or None if none does."""
    wanted = tuple(
        may and need for may, need in zip(function.differentiable, required, strict=True)
    )
    return wanted if any(wanted) else None


def _shape(tensor: Any) -> tuple[str, Any]:
    dtype = tensor.dtype
    return (dtype if type(dtype) is str else NAMES[dtype]), tensor.shape


def _save(ctx: Any, function: Any, required: Any, inputs: Any, outputs: Any) -> None:
    """Saves the tensors whose values the derivative needs. Torch notices writes to them."""
    everything = (*inputs, *outputs)
    ctx.sizes = len(inputs), len(outputs)
    ctx.wanted = _wanted(function, required)
    forward = forward_ad._current_level >= 0
    keep: Sequence[int] = (2 if forward else 0,) * len(everything)
    if ctx.wanted is not None:
        ctx.vjp = function.vjp(ctx.wanted)
        used = needs(ctx.vjp, (*everything, *outputs))
        keep = [max(a, b) for a, b in zip(keep, used, strict=False)]
    saved, ctx.kept = [], []
    for tensor, need in zip(everything, keep, strict=True):
        if need == 2 and type(tensor) is not Missing:
            saved.append(tensor)
            ctx.kept.append(None)
        else:
            ctx.kept.append(tensor if type(tensor) is Missing else Missing(*_shape(tensor)))
    ctx.save_for_backward(*saved)
    if forward:
        ctx.save_for_forward(*saved)


def _restored(ctx: Any) -> tuple[list[Any], list[Any]]:
    """Returns the inputs and outputs of the call, with stand-ins for those that were not saved."""
    saved = iter(ctx.saved_tensors)
    everything = [next(saved) if kept is None else kept for kept in ctx.kept]
    count = ctx.sizes[0]
    return everything[:count], everything[count:]


def _gradients(ctx: Any, grads: Sequence[Any]) -> list[Any]:
    """Returns one gradient or None for each input."""
    result: list[Any] = [None] * ctx.sizes[0]
    if ctx.wanted is None or all(grad is None for grad in grads):
        return result
    inputs, outputs = _restored(ctx)
    given = []
    for grad, output in zip(grads, outputs, strict=True):
        if grad is None:
            dtype, shape = _shape(output)
            grad = torch.zeros((), dtype=DTYPES[dtype]).expand(shape)
        given.append(grad)
    found = iter(apply(Derived(ctx.vjp), [*inputs, *outputs, *given]))
    return [next(found) if want else None for want in ctx.wanted]
