"""The primitive that calls a function of Inlay: abstract values, XLA, batches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from inlay.errors import InlayTypeError
from inlay.jax.arrays import canonical
from inlay.jax.functions import Call
from inlay.jax.mesh import abstract, aligned
from inlay.jax.registration import TARGET

__all__ = ["batched", "compiled", "function_p"]

function_p = Primitive("inlay")
function_p.multiple_results = True


@functools.lru_cache(maxsize=4096)
def compiled(call: Call) -> Callable[..., list[Any]]:
    """Returns a compiled function of the inputs, which tracers may be."""

    def run(*inputs: Any) -> list[Any]:
        results = function_p.bind(*aligned(inputs), call=call)
        # Sums of integers have 64 bits, which JAX has only if it is told to.
        return [result.astype(canonical(result.dtype)) for result in results]

    run.__name__ = run.__qualname__ = f"inlay_{call.function.name}"
    # Inlined, so that the lowering sees where its operands come from.
    ready: Callable[..., list[Any]] = jax.jit(run, inline=True)
    return ready


def _run(*inputs: Any, call: Call) -> list[Any]:
    # A primitive is compiled even if functions are not.
    with jax.disable_jit(False):
        return compiled(call)(*inputs)


def _infer(*inputs: Any, call: Call) -> list[Any]:
    return [abstract(shape, Call.dtype(dtype), inputs) for dtype, shape in call.infer(inputs)]


function_p.def_impl(_run)
function_p.def_abstract_eval(_infer)


def _may_write(value: Any) -> bool:
    """Whether a result should take the memory of this input.

    XLA copies an input that it may not overwrite before a call that writes in place, in one thread.
    That is known of an argument of the whole computation, unless it is donated. Intermediate
    results and the state of loops are usually not used again.
    """
    # The owner is a block if the value is one of its arguments, else an operation.
    function = getattr(value.owner, "owner", None)
    if function is None or "sym_name" not in function.attributes:
        return True
    if function.attributes["sym_name"].value != "main":
        return True
    given = function.attributes["arg_attrs"][value.arg_number]
    return "tf.aliasing_output" in given or "jax.buffer_donor" in given


def _lower(context: Any, *inputs: Any, call: Call) -> Any:
    in_place = call.writes and context.avals_in[0] == context.avals_out[0] and _may_write(inputs[0])
    alias = {0: 0} if in_place else None
    # XLA drops a call whose results are empty, and with it the check of the index, unless the call
    # has side effects.
    empty = any(result.size == 0 for result in context.avals_out)
    rule = jax.ffi.ffi_lowering(TARGET, operand_output_aliases=alias, has_side_effect=empty)
    return rule(context, *inputs, text=call.attribute)


def _refuse(context: Any, *_inputs: Any, call: Call) -> Any:
    platforms = ", ".join(context.module_context.platforms)
    raise InlayTypeError(
        f"{call.function.name}: the computation is compiled for {platforms}, expected the CPU: "
        "copy the arrays with jax.device_put(x, jax.devices('cpu')[0]), or use "
        "jax.default_device(jax.devices('cpu')[0])"
    )


mlir.register_lowering(function_p, _refuse)
# A cached rule would be called with arguments of a function of its own, and not see the operands.
mlir.register_lowering(function_p, _lower, platform="cpu", cacheable=False)


def batched(call: Call, axes: Sequence[int | None], size: int) -> Call:
    """Returns the call with a batch axis in some of its given inputs, at axis 0 of its results."""
    every: list[int | None] = [None] * call.function.inputs
    for position, axis in zip(call.positions(), axes, strict=True):
        every[position] = axis
    sizes = None if call.sizes is None else tuple((size, *shape) for shape in call.sizes)
    return call._replace(text=call.function.vmap(tuple(every)).text, sizes=sizes)


def batch_size(inputs: Sequence[Any], axes: Sequence[int | None]) -> int:
    """The size of the batch axis."""
    sizes = (x.shape[axis] for x, axis in zip(inputs, axes, strict=True) if axis is not None)
    return int(next(sizes))


def _batch(inputs: Sequence[Any], axes: Sequence[int | None], *, call: Call) -> Any:
    results = function_p.bind(*inputs, call=batched(call, axes, batch_size(inputs, axes)))
    return results, [0] * len(results)


batching.primitive_batchers[function_p] = _batch
