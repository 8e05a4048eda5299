"""The keys of arguments: calls with equal keys share a trace."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from types import EllipsisType, FunctionType, ModuleType, NoneType, NotImplementedType
from typing import Any

import numpy as np

from inlay._inlay import Tensor
from inlay.tracing.arrays import is_array_like
from inlay.tracing.tree import Node, opened, opened_object

__all__ = [
    "ARRAY",
    "ByIdentity",
    "RefusedError",
    "classify",
    "compares_by_value",
    "key_of",
    "paths_to",
]

ARRAY = None
"""The key of an array. Its dtype and rank are keys elsewhere."""

_ATOMS = frozenset([NoneType, bool, int, str, bytes, EllipsisType, NotImplementedType, object])


class ByIdentity:
    """A base class of objects that are constants, each equal only to itself, as functions are."""


class RefusedError(Exception):
    """A value can't be an argument or a result of a traced function."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def classify(value: Any) -> Node | tuple[Any, ...] | None:
    """The parts of a value that consists of others, `ARRAY`, or the key of a constant.

    The keys of two constants differ if the constants do, even if `==` holds, as for 1 and True.
    """
    cls = type(value)
    if cls in _ATOMS:
        return cls, value
    if cls is Tensor or isinstance(value, np.ndarray):
        return ARRAY
    if cls is float or cls is complex:
        # Unlike `==`, `repr` shows the sign of 0.0.
        return cls, repr(value)
    node = opened(value)
    if node is not None:
        return node
    if isinstance(value, np.generic):
        if value.dtype.hasobject:
            raise RefusedError(value)
        return cls, value.dtype, value.tobytes()
    if isinstance(value, Enum | type | FunctionType | ModuleType | ByIdentity):
        return cls, value
    if isinstance(value, set | frozenset):
        return _key_of_set(value)
    if is_array_like(value):
        return ARRAY
    node = opened_object(value)
    if node is not None:
        return node
    if callable(value):
        return cls, value
    if not compares_by_value(cls):
        raise RefusedError(value)
    # A class of C whose instances have values, such as `Decimal`. Two of them may be equal and
    # look different, as 1 and 1.0 do.
    return cls, value, repr(value)


def compares_by_value(cls: type) -> bool:
    """Whether the class defines when its instances are equal, and they can be hashed."""
    return getattr(cls, "__hash__", None) not in (None, object.__hash__)


def key_of(value: Any, arrays: list[Any]) -> Any:
    """The key of a value. Appends its arrays to `arrays`."""
    found = classify(value)
    if found is ARRAY:
        arrays.append(value)
    elif isinstance(found, Node):
        return (found.head, *[key_of(part, arrays) for part in found.parts])
    return found


def paths_to(inner: Any, outer: Any, name: str) -> Iterator[str]:
    """The expressions that lead from `outer`, called `name`, to a part of it."""
    if outer is inner:
        yield name
        return
    try:
        found = classify(outer)
    except RefusedError:
        return
    if isinstance(found, Node):
        for part, label in zip(found.parts, found.labels(), strict=True):
            yield from paths_to(inner, part, name + label)


def _key_of_set(value: Any) -> tuple[Any, ...]:
    arrays: list[Any] = []
    keys = frozenset([key_of(item, arrays) for item in value])
    if arrays:
        raise RefusedError(value)
    return type(value), keys
