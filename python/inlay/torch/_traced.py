"""What Dynamo traces in place of Inlay's C functions: a call of `torch.ops.inlay`.

This code runs inside of Dynamo, so it is plain Python on plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import inlay

from ._schema import LISTS, TENSORS, Field, Layout, arguments


def traceable(operation: Any, in_place: bool) -> Callable[..., Any]:
    """Returns a function that Dynamo can trace, with the behaviour of an operation."""
    name = operation.twin if in_place else operation.name
    overload = getattr(torch.ops.inlay, name).default
    layout = Layout(operation)
    places = {
        spelling: place
        for place, argument in enumerate(operation.arguments)
        for spelling in (argument.name, *argument.aliases)
    }
    positional = sum(not argument.keyword_only for argument in operation.arguments)
    gathered = places.get(operation.gathers, -1)
    fields, count = layout.fields, layout.count

    def traced(*args: Any, **keywords: Any) -> Any:
        objects = _sorted(places, positional, count, gathered, args, keywords)
        if objects is None or not _convertible(fields, objects):
            return _outside(name, args, keywords)
        values, named = arguments(fields, _converted(fields, objects))
        result = overload(*values, **named)
        return values[0] if in_place else result

    traced.__name__ = name
    return traced


@torch.compiler.disable(  # type: ignore[untyped-decorator]
    reason="the arguments of this call of Inlay are not torch tensors, or do not fit; call it "
    "without torch.compile to see its error"
)
def _outside(name: str, args: Any, keywords: Any) -> Any:
    """Calls the function itself, outside of the graph: it raises, or it is for other tensors."""
    return getattr(inlay, name)(*args, **keywords)


def _sorted(
    places: dict[str, int], positional: int, count: int, gathered: int, args: Any, keywords: Any
) -> list[Any] | None:
    """Returns one object for each declared argument, or None if the call does not fit."""
    given = list(args)
    if gathered >= 0 and len(given) > gathered + 1:
        until = gathered
        while until < len(given) and isinstance(given[until], int):
            until += 1
        if until - gathered > 1:
            given = [*given[:gathered], tuple(given[gathered:until]), *given[until:]]
    if len(given) > positional:
        return None
    objects = given + [None] * (count - len(given))
    for keyword, value in keywords.items():
        place = places.get(keyword, -1)
        if place < 0 or place < len(given):
            return None
        objects[place] = value
    return objects


def _convertible(fields: Sequence[Field], objects: Sequence[Any]) -> bool:
    """Whether the arguments have a torch tensor, and all of them can become arguments of torch."""
    found = False
    for field in fields:
        value = objects[field.place]
        if field.kind in TENSORS:
            if isinstance(value, torch.Tensor):
                found = True
            elif not isinstance(value, np.ndarray) and not _takes(
                field, _beside(fields, objects, field), value
            ):
                return False
        elif field.kind in LISTS:
            if not isinstance(value, (list, tuple)):
                return False
            for item in value:
                if isinstance(item, torch.Tensor):
                    found = True
                elif not isinstance(item, np.ndarray) and not (
                    field.kind == "Indices" and _takes(field, None, item)
                ):
                    return False
        elif field.kind == "DType" and not isinstance(value, (str, torch.dtype, type(None))):
            return False
    return found


def _beside(fields: Sequence[Field], objects: Sequence[Any], field: Field) -> Any:
    """Returns the dtype that a number takes: that of the other operand, or of the first tensor."""
    if field.kind not in ("Like", "Operand"):
        return None
    for other in fields:
        value = objects[other.place]
        if isinstance(value, torch.Tensor) and (field.kind == "Like" or other.kind == "Operand"):
            return value.dtype
    return None


def _takes(field: Field, dtype: Any, value: Any) -> bool:
    """Whether an argument takes a number or a list of numbers without loss."""
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(_takes(field, dtype, item) for item in value)
    if field.kind == "Mask":
        return isinstance(value, bool)
    if field.kind in ("Index", "Indices"):
        return isinstance(value, int) and not isinstance(value, bool)
    if dtype is None:
        return False
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        if dtype == torch.bool:
            return False
        if dtype.is_floating_point or dtype.is_complex:
            return True
        limits = torch.iinfo(dtype)
        return bool(limits.min <= value <= limits.max)
    if isinstance(value, float):
        return bool(dtype.is_floating_point or dtype.is_complex)
    return isinstance(value, complex) and bool(dtype.is_complex)


def _converted(fields: Sequence[Field], objects: Sequence[Any]) -> list[Any]:
    """Returns the arguments with tensors in the places of arrays, lists and numbers."""
    result = list(objects)
    for field in fields:
        value = objects[field.place]
        if field.kind in TENSORS:
            result[field.place] = _tensor(field, _beside(fields, objects, field), value)
        elif field.kind in LISTS:
            result[field.place] = [_tensor(field, None, item) for item in value]
    return result


def _tensor(field: Field, dtype: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, np.ndarray):
        return torch.as_tensor(value)
    if field.kind == "Mask":
        dtype = torch.bool
    elif field.kind in ("Index", "Indices"):
        dtype = torch.int64
    if isinstance(value, (list, tuple)):
        return torch.tensor(value, dtype=dtype)
    return torch.full((), value, dtype=dtype)
