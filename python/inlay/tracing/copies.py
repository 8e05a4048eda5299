"""Copies of arguments, with tensors in place of their arrays. A traced function gets these."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from inlay._inlay import Tensor
from inlay.tracing.arrays import type_name
from inlay.tracing.keys import ARRAY, classify
from inlay.tracing.tree import Node, attributes

__all__ = ["Copies"]


class Copies:
    """Copies of arguments that have other tensors for the arrays in them.

    Lists and dicts are always copied, so that changes stay inside of the function. Other values are
    copied only if they hold an array.
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        self._tensors = iter(tensors)
        self._objects: list[tuple[Any, dict[str, Any]]] = []

    def of(self, value: Any) -> Any:
        """The copy of one argument. The arguments must come in the order of their keys."""
        found = classify(value)
        if found is ARRAY:
            return next(self._tensors)
        if not isinstance(found, Node):
            return value
        parts = [self.of(part) for part in found.parts]
        same = all(new is old for new, old in zip(parts, found.parts, strict=True))
        copy = value if same and not isinstance(value, list | dict) else found.make(parts)
        if found.is_object:
            self._objects.append((copy, attributes(copy)))
        return copy

    def restore(self) -> str | None:
        """Undoes changes of attributes. Returns a text that names one of them, or None."""
        changed = None
        for copy, before in self._objects:
            now = attributes(copy)
            for name in {**before, **now}:
                if name in before and name in now and before[name] is now[name]:
                    continue
                if name in before:
                    object.__setattr__(copy, name, before[name])
                else:
                    object.__delattr__(copy, name)
                # A value that is only kept is no effect of the function.
                kept = isinstance(getattr(type(copy), name, None), cached_property)
                if name in before or not kept:
                    changed = f"the attribute {name!r} of a {type_name(copy)}"
        return changed
