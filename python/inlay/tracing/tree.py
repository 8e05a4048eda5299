"""Values that consist of others, such as lists and dataclasses: how they are taken apart."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import MemberDescriptorType, MethodType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

__all__ = ["Node", "attributes", "opened", "opened_object"]


class Node(NamedTuple):
    """A value that consists of parts."""

    head: Any
    """What is known without the parts: the class, and the names of attributes. It can be hashed."""
    parts: list[Any]
    make: Callable[[list[Any]], Any]
    """Makes an equal value from equal parts."""
    labels: Callable[[], Sequence[str]]
    """Returns the texts that lead from the value to its parts, such as ``[0]`` or ``.name``."""
    is_object: bool = False
    """Whether the parts are the attributes of an object."""
    may_return: bool = True
    """Whether a traced function may return it."""


def opened(value: Any) -> Node | None:
    """The parts of a list, tuple, dict, slice, range, method or partial; else None."""
    cls = type(value)
    if issubclass(cls, tuple | list | dict):
        # Attributes of an instance of a derived class would be lost.
        return None if getattr(value, "__dict__", None) else _opened_container(value)
    if cls is slice or cls is range:
        parts = [value.start, value.stop, value.step]
        return Node(cls, parts, lambda parts: cls(*parts), lambda: (".start", ".stop", ".step"))
    if cls is MethodType:
        function = value.__func__
        make = partial(_make_method, function)
        head, parts = (cls, function), [value.__self__]
        return Node(head, parts, make, lambda: (".__self__",), may_return=False)
    if cls is partial:
        parts = [value.func, value.args, value.keywords]
        return Node(
            cls, parts, _make_partial, lambda: (".func", ".args", ".keywords"), may_return=False
        )
    return None


def opened_object(value: Any) -> Node | None:
    """The attributes of a dataclass or of another object of a Python class; else None."""
    cls = type(value)
    if not _is_open(cls):
        return None
    found = attributes(value)
    names = tuple(found)

    def make(parts: list[Any]) -> Any:
        # `__init__` is not called: it may need other arguments, or compute the attributes anew.
        copy = object.__new__(cls)
        for name, part in zip(names, parts, strict=True):
            # Unlike `setattr`, this also works for frozen dataclasses.
            object.__setattr__(copy, name, part)
        return copy

    # The key of a trace must not keep the class alive: the class may own the traced function.
    head, parts = (ref(cls), names), list(found.values())
    return Node(head, parts, make, lambda: _dotted(names), True, dataclasses.is_dataclass(cls))


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object of a Python class, with those in slots."""
    found = dict(getattr(value, "__dict__", ()))
    for name in _slots_of(type(value)):
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return found


_slots: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()


def _opened_container(value: Any) -> Node:
    cls = type(value)
    if issubclass(cls, dict):
        # Keys are parts, too, because 1 and 1.0 are equal keys. Their order counts, because a
        # function may see it.
        parts = [part for pair in value.items() for part in pair]
        labels = partial(_labels_of_dict, value)
        if cls is defaultdict:
            parts.append(value.default_factory)
            return Node(cls, parts, _make_defaultdict, labels)
        return Node(cls, parts, lambda parts: cls(_pairs(parts)), labels)
    parts = list(value)
    fields = getattr(cls, "_fields", None)
    if fields is not None and hasattr(cls, "_make"):
        return Node(cls, parts, cls._make, lambda: _dotted(fields))
    return Node(cls, parts, cls, lambda: [f"[{at}]" for at in range(len(parts))])


def _dotted(names: Iterable[str]) -> list[str]:
    return [f".{name}" for name in names]


def _labels_of_dict(value: dict[Any, Any]) -> list[str]:
    labels = [f"[{key!r}]" for key in value for _ in range(2)]
    return [*labels, ".default_factory"] if type(value) is defaultdict else labels


def _make_defaultdict(parts: list[Any]) -> defaultdict[Any, Any]:
    return defaultdict(parts[-1], _pairs(parts[:-1]))


def _make_method(function: Any, parts: list[Any]) -> MethodType:
    return MethodType(function, parts[0])


def _make_partial(parts: list[Any]) -> partial[Any]:
    function, args, keywords = parts
    return partial(function, *args, **keywords)


def _pairs(parts: list[Any]) -> dict[Any, Any]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _is_open(cls: type) -> bool:
    """Whether all state of the instances is in attributes, and a copy has no side effect."""
    if hasattr(cls, "__del__"):
        return False
    try:
        # Fails for a class that is, or is derived from, a class of C with hidden state.
        object.__new__(cls)
    except TypeError:
        return False
    return True


def _slots_of(cls: type) -> tuple[str, ...]:
    names = _slots.get(cls)
    if names is None:
        entries = [entry for base in cls.__mro__ for entry in vars(base).items()]
        names = tuple(name for name, what in entries if isinstance(what, MemberDescriptorType))
        _slots[cls] = names
    return names
