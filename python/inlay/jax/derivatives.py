"""Derivatives of the primitive: a linear primitive that applies a Jacobian or its transpose.

The derivative of a function is a linear function of the tangents. Its transpose is the function's
`vjp`. The linear function itself is the `vjp` of that `vjp` with respect to the upstream gradients,
in which it is linear. Both are functions of Inlay, so JAX's forward and reverse mode work to any
order. JAX keeps the inputs of the linear primitive for the backward pass: those whose elements one
of the two functions reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from inlay.jax.functions import Call, Spec, is_inexact, spec_of
from inlay.jax.mesh import abstract
from inlay.jax.primitive import batch_size, batched, function_p

__all__ = ["linear_p"]

linear_p = Primitive("inlay_linear")
linear_p.multiple_results = True


class Linear(NamedTuple):
    """A linear function of the last inputs; the first ones are constants, called residuals."""

    call: Call
    conjugated: bool
    """Whether linear inputs and results are conjugated: Inlay's gradients are the conjugates of
    JAX's."""
    results: tuple[Spec, ...]

    def apply(self, residuals: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """Calls the function."""
        if not self.conjugated:
            return function_p.bind(*residuals, *inputs, call=self.call)  # type: ignore[no-any-return]
        flipped = function_p.bind(*residuals, *map(_conjugate, inputs), call=self.call)
        return [_conjugate(result) for result in flipped]


def _conjugate(x: Any) -> Any:
    return jax.lax.conj(x) if x.dtype.kind == "c" else x


# The primitive's parameters: `forward` is applied, `transpose` is its transpose, and the first
# `count` inputs are the residuals of both.


def _run(*inputs: Any, forward: Linear, transpose: Linear, count: int) -> list[Any]:
    return forward.apply(inputs[:count], inputs[count:])


def _infer(*inputs: Any, forward: Linear, transpose: Linear, count: int) -> list[Any]:
    return [abstract(shape, Call.dtype(dtype), inputs) for dtype, shape in forward.results]


linear_p.def_impl(_run)
linear_p.def_abstract_eval(_infer)
mlir.register_lowering(linear_p, mlir.lower_fun(_run, multiple_results=True))


def _batch(
    inputs: Sequence[Any],
    axes: Sequence[int | None],
    *,
    forward: Linear,
    transpose: Linear,
    count: int,
) -> Any:
    size = batch_size(inputs, axes)
    residuals, residual_axes = inputs[:count], axes[:count]
    linear = [
        jax.numpy.broadcast_to(x, (size, *x.shape))
        if axis is None
        else jax.numpy.moveaxis(x, axis, 0)
        for x, axis in zip(inputs[count:], axes[count:], strict=True)
    ]

    def extended(one: Linear, inputs: int) -> Linear:
        call = batched(one.call, [*residual_axes, *[0] * inputs], size)
        results = tuple((dtype, (size, *shape)) for dtype, shape in one.results)
        return one._replace(call=call, results=results)

    results = linear_p.bind(
        *residuals,
        *linear,
        forward=extended(forward, len(linear)),
        transpose=extended(transpose, len(forward.results)),
        count=count,
    )
    return results, [0] * len(results)


batching.primitive_batchers[linear_p] = _batch


def _stretched(x: Any, size: int) -> Any:
    return jax.numpy.broadcast_to(x, (size, *x.shape))


def _transpose(
    upstream: Sequence[Any], *inputs: Any, forward: Linear, transpose: Linear, count: int
) -> list[Any]:
    if all(type(one) is ad.Zero for one in upstream):
        return [None] * len(inputs)
    gradients = linear_p.bind(
        *inputs[:count],
        *map(ad.instantiate_zeros, upstream),
        forward=transpose,
        transpose=forward,
        count=count,
    )
    # A linear input may be known. Then nothing flows to it.
    known = [not ad.is_undefined_primal(x) for x in inputs[count:]]
    return [None] * count + [
        None if is_known else one for is_known, one in zip(known, gradients, strict=True)
    ]


ad.primitive_transposes[linear_p] = _transpose


def _differentiate_linear(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    forward: Linear,
    transpose: Linear,
    count: int,
) -> Any:
    def bind(*inputs: Any) -> list[Any]:
        return linear_p.bind(  # type: ignore[no-any-return]
            *inputs, forward=forward, transpose=transpose, count=count
        )

    moving = [k for k, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]
    if all(k >= count for k in moving):
        changes = bind(*primals[:count], *map(ad.instantiate_zeros, tangents[count:]))
        return bind(*primals), changes

    def of_moving(*values: Any) -> list[Any]:
        inputs = list(primals)
        for k, value in zip(moving, values, strict=True):
            inputs[k] = value
        return forward.apply(inputs[:count], inputs[count:])

    return jax.jvp(of_moving, [primals[k] for k in moving], [tangents[k] for k in moving])


ad.primitive_jvps[linear_p] = _differentiate_linear


def _differentiate(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call) -> Any:
    results = function_p.bind(*primals, call=call)
    function, positions = call.function, call.positions()
    may = function.differentiable
    inputs = [spec_of(x) for x in primals]
    outputs = [spec_of(result) for result in results]
    wanted = [False] * function.inputs
    moving, kept = [], []
    for position, tangent, (dtype, _) in zip(positions, tangents, inputs, strict=True):
        if type(tangent) is ad.Zero or not (may[position] and is_inexact(dtype)):
            continue
        wanted[position] = True
        moving.append(tangent)
        kept.append((dtype, tangent.shape))
    if not moving or not all(is_inexact(dtype) for dtype, _ in outputs):
        return results, [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]

    # The inputs of `backward` are those of `function`, its results, and upstream gradients. The
    # inputs of `ahead` are those of `backward`, its results, and tangents.
    backward = function.vjp(tuple(wanted))
    fixed = function.inputs + len(outputs)
    ahead = backward.vjp((False,) * fixed + (True,) * len(outputs))
    fixed_specs = call.all_of(inputs) + outputs
    read = [
        max(needs)
        for needs in zip(
            backward.needs(_listed(fixed_specs + outputs))[:fixed],
            ahead.needs(_listed(fixed_specs + outputs + kept + kept))[:fixed],
            strict=True,
        )
    ]
    values = call.all_of(primals) + list(results)
    missing = {position for position, _ in call.left_out}
    missing |= {k for k, need in enumerate(read) if need < 2}
    left_out = tuple((k, fixed_specs[k]) for k in sorted(missing))
    residuals = [value for k, value in enumerate(values) if k not in missing]
    extra = tuple(enumerate(outputs + kept, start=fixed))
    changes = linear_p.bind(
        *residuals,
        *moving,
        forward=Linear(_sized(ahead.text, left_out + extra, outputs), False, tuple(outputs)),
        transpose=Linear(_sized(backward.text, left_out, kept), True, tuple(kept)),
        count=len(residuals),
    )
    return results, changes


def _listed(specs: Sequence[Spec]) -> list[tuple[str, list[int]]]:
    return [(dtype, list(shape)) for dtype, shape in specs]


def _sized(text: str, left_out: tuple[tuple[int, Spec], ...], results: Sequence[Spec]) -> Call:
    return Call(text, left_out, tuple(shape for _, shape in results))


ad.primitive_jvps[function_p] = _differentiate
