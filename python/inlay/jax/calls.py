"""Calls of operations with JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import concrete_or_error

from inlay import _bridge
from inlay._inlay import Function, Operation, operations
from inlay.errors import InlayTypeError
from inlay.jax import derivatives  # noqa: F401  (registers the rules)
from inlay.jax.arrays import JaxArrays, canonical
from inlay.jax.failures import RAISED, translated
from inlay.jax.functions import Call, OpenSizeError, input_kinds
from inlay.jax.primitive import compiled

__all__ = ["call", "run"]

_JAX = JaxArrays()
_OPERATIONS = {operation.name: operation for operation in operations()}
_KINDS = {op.name: [argument.kind for argument in op.arguments] for op in operations()}
# The places of the tensors in calls without lists.
_PLACES = {
    name: [place for place, _, _ in arguments]
    for name, arguments in _bridge.ARGUMENTS.items()
    if not {"Tensors", "Indices"} & {kind for _, _, kind in arguments}
}
# The first call, which imports this module, may be inside of `jax.jit`, where `zeros` is a tracer.
with jax.ensure_compile_time_eval():
    _ARRAY = type(jax.numpy.zeros(()))
# The operations that check elements, so that a call may fail after it was dispatched.
_CHECKING = {name for name, kinds in _KINDS.items() if {"Index", "Indices", "Mask"} & {*kinds}}
_WITH_DTYPE = {name: kinds.index("DType") for name, kinds in _KINDS.items() if "DType" in kinds}
# The texts of functions whose results may have sizes that depend on a mask.
_open: set[str] = set()
# The compiled functions by text, which are found sooner than in the cache of `compiled`.
_ready: dict[str, Callable[..., list[Any]]] = {}
_KEPT = 4096


def call(name: str, in_place: bool, objects: tuple[Any, ...]) -> Any:
    """Calls an operation with a value for each of its arguments, `None` for those left out."""
    operation = _OPERATIONS[name]
    if in_place:
        raise InlayTypeError(
            f"{name}_: {operation.arguments[0].name} is a JAX array, which can't be written: "
            f"use inlay.{name}, which returns a new array (jax.jit with donate_argnums lets it "
            "take the memory of the old one)"
        )
    place = _WITH_DTYPE.get(name)
    if place is not None and objects[place] is not None:
        objects = (*objects[:place], _narrowed(objects[place]), *objects[place + 1 :])
    try:
        return _call(operation, objects)
    except InlayTypeError:
        stronger = _strengthened(operation, objects)
        if stronger is None:
            raise
        return _call(operation, stronger)


def _call(operation: Operation, objects: tuple[Any, ...]) -> Any:
    name = operation.name
    places = _PLACES.get(name)
    # Most calls have nothing to convert.
    if places is not None and all(type(objects[place]) is _ARRAY for place in places):
        return run(Function(name, objects), [objects[place] for place in places])[0]
    function, tensors = _bridge.bind(name, objects, _JAX)
    return run(function, tensors)[0]


def run(function: Function, tensors: Sequence[Any]) -> list[Any]:
    """Calls a function with arrays or tracers.

    An error in the elements of an array is raised here, not when a result is used, unless the call
    is traced.
    """
    text = function.text
    ready = _ready.get(text)
    if ready is None:
        if len(_ready) >= _KEPT:
            _ready.clear()
        ready = _ready[text] = compiled(Call(text))
    try:
        if text in _open:
            ready = compiled(_sized(function, tensors))
        results = ready(*tensors)
        if function.name in _CHECKING:
            result = results[0]
            if type(result) is _ARRAY:
                result.block_until_ready()
    except OpenSizeError:
        _open.add(text)
        return run(function, tensors)
    except RAISED as error:
        ours = translated(error, function.name)
        if ours is None:
            raise
        raise ours from error
    return results


def _sized(function: Function, tensors: Sequence[Any]) -> Call:
    """Returns the call with the sizes of its results, which masks among the inputs determine."""
    kinds = [kind for _, kind in input_kinds(function)]
    chosen = [kind in ("Mask", "Indices") for kind in kinds]
    if not any(x.dtype == bool for x, is_chosen in zip(tensors, chosen, strict=True) if is_chosen):
        return Call(function.text)
    inputs: list[Any] = []
    for x, is_chosen in zip(tensors, chosen, strict=True):
        if is_chosen:
            inputs.append(concrete_or_error(np.asarray, x, _advice(function.name)))
        else:
            # Only the number of elements counts, so each may have one byte.
            inputs.append(("bool", list(x.shape)))
    sizes = tuple(tuple(result.shape) for result in function.call(inputs))
    return Call(function.text, sizes=sizes)


def _advice(name: str) -> str:
    return (
        f"{name}: the size of the result depends on the mask, which has no elements while JAX "
        "traces. Call it outside of jax.jit, or use a result of a fixed size: "
        "jnp.where(mask, x, value), or x[jnp.nonzero(mask, size=n)]."
    )


def _strengthened(operation: Operation, objects: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Gives arrays of a weak type, such as Python numbers under `jax.jit`, the dtype of the others.

    Returns `None` if there are no such arrays, or none that would change.
    """
    kinds = _KINDS[operation.name]
    places = [
        k
        for k, (kind, value) in enumerate(zip(kinds, objects, strict=False))
        if kind in ("Tensor", "Like", "Operand") and isinstance(value, jax.Array)
    ]
    weak = [k for k in places if getattr(objects[k], "weak_type", False)]
    if not weak or len(weak) == len(places):
        return None
    dtype = jax.numpy.result_type(*(objects[k] for k in places))
    changed = list(objects)
    for k in weak:
        changed[k] = objects[k].astype(dtype)
    same = all(objects[k].dtype == dtype for k in weak)
    return None if same else tuple(changed)


def _narrowed(dtype: Any) -> Any:
    """Returns the dtype that JAX would use for an argument. Inlay refuses what is none."""
    try:
        known = dtype.name if type(dtype).__module__.startswith("inlay") else dtype
        return str(canonical(known))
    except TypeError:
        return dtype
