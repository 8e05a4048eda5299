"""Calls in a static graph of Paddle: `paddle.static.Program`, and `paddle.jit.to_static`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import paddle
from paddle.base.dygraph.base import in_to_static_mode
from paddle.jit.dy2static.convert_operators import convert_load
from paddle.jit.dy2static.py_layer import StaticPyLayerContext

from inlay._bridge import bind
from inlay.errors import InlayTypeError
from inlay.paddle import constants
from inlay.paddle.layer import wanted
from inlay.paddle.operators import Operator
from inlay.paddle.tensors import OPERATIONS, differentiable, dtype_name

if TYPE_CHECKING:
    from inlay._inlay import Function

    Spec = tuple[str, list[int | None]]


def call(name: str, in_place: bool, objects: tuple[Any, ...]) -> Any:
    """Adds a call to the current program. `objects` are as for `inlay.paddle.call`."""
    if in_place:
        raise InlayTypeError(
            f"{name}: the values of a static graph can't be written; call inlay.{name}, and use "
            "its result"
        )
    given = tuple(_symbolic(name, place, value) for place, value in enumerate(objects))
    function, tensors = bind(name, given, constants)
    # Paddle aborts the process if the rule for shapes raises, so shapes are checked here.
    outputs = function.infer([_spec(tensor) for tensor in tensors])
    needs = _wanted(function, tensors, outputs)
    if any(needs):
        results = _recorded(function, tensors, needs, outputs)
    else:
        results = Operator.of(function, outputs)(*tensors)
        for result in results:
            result.stop_gradient = True
    return results[0] if function.outputs == 1 else results


def _wanted(function: Function, tensors: list[Any], outputs: list[Any]) -> tuple[bool, ...]:
    """Which inputs need a gradient.

    One without elements needs none: Paddle forgets the shape and the dtype of a tensor without
    elements that leaves the block of a recorded call, and reads memory that is not there.
    """
    needs = wanted(function, tensors) or ()
    if any(not differentiable(dtype) or 0 in sizes for dtype, sizes in outputs):
        return ()
    return tuple(need and 0 not in t.shape for need, t in zip(needs, tensors, strict=False))


def _symbolic(name: str, place: int, value: Any) -> Any:
    """An argument in which eager tensors are replaced by values of the program."""
    if isinstance(value, (list, tuple)) and any(_is_symbolic(item) for item in value):
        return [_symbolic(name, place, item) for item in value]
    if not _is_symbolic(value):
        return value
    if isinstance(value, paddle.Tensor):
        # `to_static` gives the program an input for each eager tensor that a function uses. It
        # does so where the function's own code reads the tensor, but not inside of other code.
        value = convert_load(value)
    argument = OPERATIONS[name].arguments[place].name
    if not isinstance(value, paddle.pir.Value):
        kind = "an eager tensor" if isinstance(value, paddle.Tensor) else "a Variable"
        way = (
            "pass a NumPy array, or call paddle.disable_static() first"
            if isinstance(value, paddle.Tensor)
            else "build the program with FLAGS_enable_pir_api=1, which is the default"
        )
        raise InlayTypeError(f"{name}: {argument} is {kind} in a static graph; {way}")
    if not value.is_dense_tensor_type() or value.is_dist():
        raise InlayTypeError(
            f"{name}: {argument} is {value.type()}, expected a dense tensor; pass a dense tensor"
        )
    return value


def _is_symbolic(value: object) -> bool:
    return isinstance(value, (paddle.Tensor, paddle.pir.Value, paddle.static.Variable))


def _spec(tensor: Any) -> Spec:
    """The dtype and the shape of a value of the program. An unknown size is `None`."""
    return dtype_name(tensor.dtype), [None if size < 0 else size for size in tensor.shape]


def _recorded(
    function: Function, tensors: list[Any], needs: tuple[bool, ...], outputs: list[Any]
) -> list[Any]:
    """Adds a call with its gradient, which Paddle asks for when it builds the backward pass."""
    vjp = function.vjp(needs)
    inputs = [_spec(tensor) for tensor in tensors]
    results = [_plain(output) for output in outputs]
    specs = [*inputs, *results, *results]
    # What the gradient does not use is not kept for it. A stand-in needs all sizes, so without them
    # everything is kept.
    is_known = all(None not in sizes for _, sizes in specs)
    used = [use > 0 for use in vjp.needs(specs)] if is_known else [True] * len(specs)
    # Paddle asserts that a gradient has the shape of its input, unknown sizes included, so the
    # gradient is given the inputs that it belongs to.
    like = tuple(k for k, need in enumerate(needs) if need)
    for k in like:
        used[k] = True
    used[-len(results) :] = [True] * len(results)
    places = tuple(
        None if use else (dtype, tuple(size for size in sizes if size is not None))
        for use, (dtype, sizes) in zip(used, specs, strict=True)
    )
    operator = Operator.of(function, outputs)
    gradient = Operator.of(vjp, outputs, places, like)
    tensors = _separate(tensors, needs)
    # `to_static` runs the backward pass as another program. Values get there only through this
    # context. In one program it must not be used: nothing tells the executor to run the forward
    # pass first, which fills it. There the backward pass uses the values themselves.
    context, outer = StaticPyLayerContext(), list[Any]()
    piped = in_to_static_mode()

    def saved(tensors: Any, results: Any) -> list[Any]:
        return [value for value, use in zip([*tensors, *results], used, strict=False) if use]

    def forward(context: Any, *tensors: Any) -> Any:
        results = operator(*tensors)
        if piped:
            context.save_for_backward(*saved(tensors, results))
        return results if len(results) > 1 else results[0]

    def backward(context: Any, *upstream: Any) -> Any:
        values = context.saved_tensor() if piped else outer
        found = iter(gradient(*values, *upstream))
        return tuple(next(found) if need else None for need in needs)

    made = paddle.static.nn.static_pylayer(
        partial(forward, context), tensors, partial(backward, context)
    )
    results = list(made) if isinstance(made, (list, tuple)) else [made]
    outer += saved(tensors, results)
    return results


def _separate(tensors: list[Any], needs: tuple[bool, ...]) -> list[Any]:
    """The values as inputs of a recorded call.

    Paddle mixes up equal inputs, so a value that occurs again is copied. It takes a gradient that
    is not returned for one that is not initialized, so a value that gets none is replaced, too.
    """
    separate: list[Any] = []
    for tensor, need in zip(tensors, needs, strict=True):
        excess = not need and not tensor.stop_gradient
        if excess or any(tensor.is_same(other) for other in separate):
            tensor = paddle.assign(tensor)
        if excess:
            # Not `detach`, which Paddle can't run for complex numbers.
            tensor.stop_gradient = True
        separate.append(tensor)
    return separate


def _plain(output: Any) -> Spec:
    """An inferred output as the description of an input: a size that is not known is `None`."""
    dtype, sizes = output
    return dtype, [size if isinstance(size, int) else None for size in sizes]
