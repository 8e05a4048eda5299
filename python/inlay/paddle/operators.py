"""Functions as operators of Paddle's static graph, by `paddle.static.register_op`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import paddle

from inlay.paddle.tensors import dtype_name

if TYPE_CHECKING:
    from inlay._inlay import Function


#: An input: `None` if it is passed, else the dtype and the shape of its stand-in.
Place = tuple[str, tuple[int | None, ...]] | None


class Operator:
    """A function as an operator of a static graph.

    Its inputs are those of the function that are used. Stand-ins take the places of the others.
    """

    _made: dict[tuple[str, tuple[Place, ...]], Operator] = {}  # noqa: RUF012

    def __init__(
        self,
        function: Function,
        outputs: list[Any],
        places: tuple[Place, ...],
        like: tuple[int, ...],
    ) -> None:
        self.function = function
        self.outputs = outputs
        self.places = places
        self.like = like
        count = places.count(None)
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
        places: tuple[Place, ...] = (),
        like: tuple[int, ...] = (),
    ) -> Operator:
        """The operator of a function.

        `outputs` are the inferred ones of any of its calls. By default all inputs are passed. If
        the results are gradients, `like` has the numbers of their inputs.
        """
        places = places or (None,) * function.inputs
        key = (function.text, places)
        made = cls._made.get(key)
        if made is None:
            # Operators are kept for ever, as Paddle keeps them.
            made = cls._made[key] = cls(function, outputs, places, like)
        return made

    def __call__(self, *tensors: Any) -> list[Any]:
        """Adds the operator to the current block. Returns its results."""
        made = self._call(*tensors)
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def run(self, *tensors: Any) -> Any:
        """Runs the function on eager tensors. Paddle calls this while a program runs."""
        results = self.function.call(self._fill(tensors))
        return results[0] if len(results) == 1 else tuple(results)

    def infer(self, *metas: Any) -> Any:
        """The shapes and dtypes of the results. It never raises, since Paddle aborts then."""
        given = [(dtype_name(meta.dtype), _sizes(meta.shape)) for meta in metas]
        inputs = self._fill(given)
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

    def _fill(self, given: Any) -> list[Any]:
        """Puts what was given at its places, and stand-ins at the others."""
        items = iter(given)
        return [next(items) if place is None else place for place in self.places]


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
