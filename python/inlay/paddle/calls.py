"""The entry of the bridge: `call` is what an operation does with Paddle tensors."""

from __future__ import annotations

from typing import Any

import paddle

from inlay._bridge import bind
from inlay.paddle import tensors as eager
from inlay.paddle.layer import apply
from inlay.paddle.writes import write


@paddle.jit.not_to_static  # type: ignore[untyped-decorator]
def call(name: str, in_place: bool, objects: tuple[Any, ...]) -> Any:
    """Calls an operation on the tensors of Paddle among its arguments, eager or symbolic.

    `objects` has one item for each declared argument, `None` for one that was left out.
    """
    if not paddle.in_dynamic_mode():
        # Most programs never need the static graph, so its module is imported on its first use.
        from inlay.paddle import static

        return static.call(name, in_place, objects)
    eager.check_all(name, objects)
    function, tensors = bind(name, objects, eager)
    if in_place:
        return write(function, tensors)
    results = apply(function, tensors)
    return results[0] if function.outputs == 1 else results
