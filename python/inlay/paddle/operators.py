"""Functions as operators of Paddle's static graph, by `paddle.static.register_op`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import paddle

from inlay.paddle.tensors import dtype_name

if TYPE_CHECKING:
    from inlay._inlay import Function


class Operator:
    """A function as an operator of a static graph.

    Its inputs are those of the function that are used. Stand-ins take the places of the others.
    """

    _made: dict[tuple[str, tuple[bool, ...]], Operator] = {}  # noqa: RUF012

    def __init__(
        self,
        function: Function,
        outputs: list[Any],
        given: tuple[bool, ...],
        like: tuple[int, ...],
    ) -> None:
        self.function = function
        self.outputs = outputs
        self.given = given
        self.like = like
        count = sum(given)
        # The name must not contain "_grad", which Paddle takes for the gradient of another
        # operator. Operators with the same name are the same to Paddle, so it has a number.
        self._call = paddle.static.register_op(
            of_arity(count, self.run),
            name=f"inlay_{len(self._made)}_{function.name}",
            infer_meta=of_arity(count, self.infer),
            input_names=[f"input{k}" for k in range(count)],
            output_names=[f"output{k}" for k in range(function.outputs)],
        )

    @classmethod
    def of(
        cls,
        function: Function,
        outputs: list[Any],
        given: tuple[bool, ...] = (),
        like: tuple[int, ...] = (),
    ) -> Operator:
        """The operator of a function.

        `outputs` are the inferred ones of any of its calls. `given` says which inputs are passed;
        all are by default. If the results are gradients, `like` has the numbers of their inputs.
        """
        given = given or (True,) * function.inputs
        key = (function.text, given)
        made = cls._made.get(key)
        if made is None:
            # Operators are kept for ever, as Paddle keeps them.
            made = cls._made[key] = cls(function, outputs, given, like)
        return made

    def __call__(self, *tensors: Any) -> list[Any]:
        """Adds the operator to the current block. Returns its results."""
        made = self._call(*tensors)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def run(self, *tensors: Any) -> Any:
        """Runs the function on eager tensors. Paddle calls this while a program runs."""
        results = self.function.call(self._fill(tensors, ("float32", [])))
        return results[0] if len(results) == 1 else tuple(results)

    def infer(self, *metas: Any) -> Any:
        """The shapes and dtypes of the results. It never raises, since Paddle aborts then."""
        given = [(dtype_name(meta.dtype), _sizes(meta.shape)) for meta in metas]
        inputs = self._fill(given, ("float32", []))
        try:
            outputs = [inputs[k] for k in self.like] or self.function.infer(inputs)
        except Exception:
            # The call was checked when it was added. Paddle infers again with what its passes
            # found out, and the run itself reports what is wrong with that.
            outputs = [(dtype, [None for _ in sizes]) for dtype, sizes in self.outputs]
        found = tuple(
            paddle.static.MetaTensor(
                shape=[size if isinstance(size, int) else -1 for size in sizes],
                dtype=getattr(paddle, dtype),
            )
            for dtype, sizes in outputs
        )
        return found[0] if len(found) == 1 else found

    def _fill(self, given: Any, stand_in: Any) -> list[Any]:
        """Puts what was given at its places, and a stand-in at the others."""
        items = iter(given)
        return [next(items) if one else stand_in for one in self.given]


def _sizes(shape: Any) -> list[int | None]:
    return [None if size < 0 else size for size in shape]


def of_arity(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with `count` named parameters, which is what Paddle inspects."""
    return _template(count)(function)  # type: ignore[no-any-return]


@cache
def _template(count: int) -> Any:
    names = ", ".join(f"input{k}" for k in range(count))
    # The text consists of numbered names only.
    return eval(f"lambda function: lambda {names}: function({names})")
