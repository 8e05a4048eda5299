"""Functions of Inlay with some inputs left out, as the primitives call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from inlay._bridge import ARGUMENTS
from inlay._inlay import Function, operations
from inlay.errors import InlayTypeError

__all__ = ["Call", "OpenSizeError", "Spec", "dtype_name", "input_kinds", "is_inexact", "spec_of"]

Spec = tuple[str, tuple[int, ...]]
"""The name of a dtype, and a shape."""

_NAMES = {
    np.dtype(dtype): np.dtype(dtype).name
    for dtype in (
        *(np.bool_, np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32, np.int64),
        *(np.uint64, np.float16, jax.numpy.bfloat16, np.float32, np.float64),
        *(np.complex64, np.complex128),
    )
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_TWINS = {operation.name for operation in operations() if operation.twin is not None}


def dtype_name(dtype: Any) -> str | None:
    """The name of a dtype, or `None` if Inlay does not have it."""
    try:
        return _NAMES.get(dtype)
    except TypeError:
        return None


def is_inexact(name: str) -> bool:
    """Whether numbers of this dtype have gradients."""
    return name.startswith(("float", "bfloat", "complex"))


def spec_of(value: Any) -> Spec:
    """The spec of an array, a tracer or an abstract value."""
    return _NAMES[value.dtype], tuple(value.shape)


class Call(NamedTuple):
    """A function, with specs in place of the inputs whose elements it does not read.

    It is hashable and holds nothing of this process, so it can be a parameter of a primitive.
    """

    text: str
    left_out: tuple[tuple[int, Spec], ...] = ()
    sizes: tuple[tuple[int, ...], ...] | None = None
    """The shapes of the results, if they depend on the elements of an input."""

    @property
    def function(self) -> Function:
        """The function."""
        return Function.parse(self.text)

    @property
    def attribute(self) -> str:
        """What the handler is told: the text, and a line for each input that is left out."""
        lines = [
            f"\n{position}:{dtype}:{','.join(map(str, shape))}"
            for position, (dtype, shape) in self.left_out
        ]
        return self.text + "".join(lines)

    @property
    def writes(self) -> bool:
        """Whether the result can take the place of the first input."""
        base, _, rest = self.text.partition("(")
        return base in _TWINS and not self.left_out and rest.endswith(")")

    def all_of(self, given: Sequence[Any]) -> list[Any]:
        """The given values with the specs of the others, one item per input."""
        every: list[Any] = list(given)
        for position, spec in self.left_out:
            every.insert(position, spec)
        return every

    def positions(self) -> list[int]:
        """The positions of the inputs that are given."""
        missing = {position for position, _ in self.left_out}
        return [k for k in range(self.function.inputs) if k not in missing]

    def infer(self, given: Sequence[Any]) -> list[Spec]:
        """The specs of the results."""
        for position, x in zip(self.positions(), given, strict=True):
            if dtype_name(x.dtype) is None:
                what = f"{self.function.name}: {_argument(self.function, position)}"
                raise InlayTypeError(f"{what} has dtype {x.dtype}, which Inlay does not have")
        specs = self.all_of([spec_of(x) for x in given])
        results = self.function.infer([(dtype, list(shape)) for dtype, shape in specs])
        if self.sizes is not None:
            return [(dtype, size) for (dtype, _), size in zip(results, self.sizes, strict=True)]
        return [(dtype, _known(shape)) for dtype, shape in results]

    @staticmethod
    def dtype(name: str) -> Any:
        """The dtype of a name."""
        return _DTYPES[name]


def input_kinds(function: Function) -> list[tuple[str, str]]:
    """The name and the kind of the argument that each input of a call belongs to."""
    arguments = [(name, kind) for _, name, kind in ARGUMENTS[function.name]]
    for k, (name, kind) in enumerate(arguments):
        if kind in ("Tensors", "Indices"):
            # There is at most one list.
            count = function.inputs - len(arguments) + 1
            items = [(f"{name}[{item}]", kind) for item in range(count)]
            return [*arguments[:k], *items, *arguments[k + 1 :]]
    return arguments


def _argument(function: Function, position: int) -> str:
    names = [name for name, _ in input_kinds(function)]
    return names[position] if position < len(names) else f"input {position}"


class OpenSizeError(Exception):
    """The size of a result depends on the elements of an input."""


def _known(shape: Sequence[Any]) -> tuple[int, ...]:
    if not all(isinstance(size, int) for size in shape):
        raise OpenSizeError
    return tuple(shape)
