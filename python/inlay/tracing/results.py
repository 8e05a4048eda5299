"""The results of traced functions: their tensors, and how a result is built again from values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inlay._inlay import Tensor, to_tensor
from inlay.errors import InlayTypeError
from inlay.tracing.arrays import bring_in, type_name
from inlay.tracing.keys import ARRAY, RefusedError, classify, compares_by_value, paths_to
from inlay.tracing.tree import Node

__all__ = ["Rebuild", "flatten"]

Rebuild = Callable[[list[Any]], Any]


def flatten(result: Any, found: list[Tensor]) -> Rebuild:
    """Appends the tensors of a result to `found`. Returns a callable that rebuilds the result."""
    try:
        return _flatten(result, found)
    except RefusedError as error:
        where = next(paths_to(error.value, result, "the result"), "the result")
        raise InlayTypeError(
            f"jit: {where} is a {type_name(error.value)}: return tensors, constants, and lists, "
            "tuples, dicts and dataclasses of them"
        ) from None
    except RecursionError:
        raise InlayTypeError("jit: the result contains itself") from None


def _flatten(value: Any, found: list[Tensor]) -> Rebuild:
    kind = classify(value)
    if kind is ARRAY:
        at = len(found)
        found.append(
            value if isinstance(value, Tensor) else to_tensor(bring_in(value, "the result"))
        )
        return lambda values: values[at]
    if isinstance(kind, Node):
        before = len(found)
        parts = [_flatten(part, found) for part in kind.parts]
        make = kind.make
        if kind.may_return:
            return lambda values: make([part(values) for part in parts])
        # It may hold symbolic tensors. But one that compares by value, as a `Fraction` does, is a
        # constant.
        if len(found) > before or not compares_by_value(type(value)):
            raise RefusedError(value)
    elif callable(value) and not isinstance(value, type):
        # A closure may hold symbolic tensors.
        raise RefusedError(value)
    return lambda values: value
