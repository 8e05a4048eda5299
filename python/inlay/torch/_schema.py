"""The schemas of `torch.ops.inlay.*`, made from the declared arguments of the operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

import inlay

from ._dtypes import DTYPES, name_of

TENSORS = ("Tensor", "Like", "Operand", "Index", "Mask")
LISTS = ("Tensors", "Indices")
_LAST = 2**63 - 1

# The type in a schema of each kind of argument. `?` is added to those that may be left out.
_TYPES = {
    **dict.fromkeys(TENSORS, "Tensor"),
    **dict.fromkeys(LISTS, "Tensor[]"),
    "Int": "int",
    "Bound": "SymInt",
    "Extent": "SymInt",
    "AxisList": "int[1]",
    "BoundList": "SymInt[1]",
    "Axes": "int[]",
    "Ints": "SymInt[]",
    "Sizes": "SymInt[]",
    "Flag": "bool",
    "Reduce": "str",
    "ReduceOrAssign": "str",
    "DType": "ScalarType",
    "Device": "Device",
    "Scalar": "Scalar",
}


def schema(operation: Any, in_place: bool) -> str:
    """Returns the schema of an operation, or of its in-place form, which returns nothing."""
    parts, star = [], False
    for argument in operation.arguments:
        if argument.kind == "Label":
            continue  # it has no use in torch
        if argument.keyword_only and not star:
            star = True
            parts.append("*")
        parts.append(_declared(argument, in_place and not parts))
    name = operation.twin if in_place else operation.name
    return f"{name}({', '.join(parts)}) -> {'()' if in_place else 'Tensor'}"


def _declared(argument: Any, written: bool) -> str:
    kind = _TYPES[argument.kind]
    if written:
        kind = "Tensor(a!)"
    if argument.required:
        return f"{kind} {argument.name}"
    default = argument.default
    if default is None or argument.kind in _LEFT_OUT:
        return f"{kind}? {argument.name}=None"
    return f"{kind} {argument.name}={_literal(default)}"


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


class Field(NamedTuple):
    """An argument of a schema. It is plain data, because Dynamo reads it, too."""

    name: str
    kind: str
    default: Any
    keyword_only: bool
    place: int  # among Inlay's arguments


class Layout:
    """Converts between the arguments of a `torch.ops.inlay` call and Inlay's arguments."""

    def __init__(self, operation: Any) -> None:
        self.name: str = operation.name
        self.fields = tuple(
            Field(each.name, each.kind, each.default, each.keyword_only, place)
            for place, each in enumerate(operation.arguments)
            if each.kind != "Label"
        )
        self.count = len(operation.arguments)
        self.tensors = tuple(
            (field.place, field.kind in LISTS)
            for field in self.fields
            if field.kind in (*TENSORS, *LISTS)
        )

    def objects(self, args: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
        """Returns Inlay's arguments, one for each declared one."""
        result: list[Any] = [None] * self.count
        for k, field in enumerate(self.fields):
            value = args[k] if k < len(args) else keywords.get(field.name)
            if value is not None and field.kind in _READ:
                value = _READ[field.kind](value)
            result[field.place] = value
        return result

    def arguments(self, objects: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments of a `torch.ops.inlay` call from Inlay's arguments."""
        return arguments(self.fields, objects)

    def without_scalars(self, objects: Sequence[Any]) -> list[Any]:
        """Returns the arguments with 0 for symbolic scalars beside tensors.

        The shape of a result does not depend on those, so they need not become numbers.
        """
        result = list(objects)
        for field in self.fields if self.tensors else ():
            if field.kind == "Scalar":
                value = result[field.place]
                if isinstance(value, (torch.SymInt, torch.SymFloat)):
                    result[field.place] = 0 if isinstance(value, torch.SymInt) else 0.0
        return result

    def split(self, objects: Sequence[Any]) -> list[Any]:
        """Returns all tensors among the arguments, in order."""
        tensors: list[Any] = []
        for place, several in self.tensors:
            if several:
                tensors.extend(objects[place])
            else:
                tensors.append(objects[place])
        return tensors

    def filled(self, objects: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
        """Returns the arguments with other tensors in the places of those that they have."""
        source = iter(tensors)
        result = list(objects)
        for place, several in self.tensors:
            result[place] = [next(source) for _ in objects[place]] if several else next(source)
        return result


def arguments(fields: Sequence[Field], objects: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a `torch.ops.inlay` call from Inlay's arguments."""
    args, keywords, steps = [], {}, 1
    for field in fields:
        if field.name == "step" and objects[field.place] is not None:
            steps = objects[field.place]
    for field in fields:
        value = objects[field.place]
        if value is None:
            value = None if field.kind in _LEFT_OUT else field.default
        elif field.kind == "BoundList":
            value = _bounds(field.name, value, steps)
        elif field.kind in _LISTED:
            value = list(value) if isinstance(value, (list, tuple)) else [value]
        elif field.kind == "DType":
            value = _dtype(value)
        if field.keyword_only:
            keywords[field.name] = value
        else:
            args.append(value)
    return args, keywords


def number(value: Any) -> Any:
    """Returns symbolic numbers as numbers, which torch then guards, and the rest as it is."""
    if isinstance(value, torch.SymInt):
        return int(value)
    if isinstance(value, torch.SymFloat):
        return float(value)
    if isinstance(value, torch.SymBool):
        return bool(value)
    if isinstance(value, (list, tuple)):
        return [number(item) for item in value]
    return value


def _bounds(name: str, value: Any, steps: Any) -> list[Any]:
    """Returns bounds as a list of integers. A bound of None is as far as the step goes."""
    several = isinstance(value, (list, tuple))
    bounds = list(value) if several else [value]
    each = list(steps) if isinstance(steps, (list, tuple)) else [steps] * len(bounds)
    for k, bound in enumerate(bounds):
        if bound is None:
            forward = k >= len(each) or each[k] is None or each[k] > 0
            if name == "step":
                bounds[k] = 1
            else:
                bounds[k] = (
                    (0 if forward else _LAST) if name == "start" else (_LAST if forward else -_LAST)
                )
    return bounds


def _name(value: Any) -> str:
    return value if isinstance(value, str) else name_of(value)


def _dtype(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return value
    if isinstance(value, str):
        return DTYPES[value]
    return DTYPES[inlay.dtype(value).name]


def _no_device(value: Any) -> Any:
    if torch.device(value).type != "cpu":
        raise ValueError(f"inlay: device={value} is not supported; results are CPU tensors")


def _one(value: Any) -> Any:
    """Returns a single bound as a number, so that it goes with a single axis."""
    return value[0] if len(value) == 1 else value


# Kinds whose default a schema can't say. None stands for it.
_LEFT_OUT = ("DType", "AxisList", "BoundList")
_LISTED = ("AxisList", "Axes", "Ints", "Sizes")
_READ: dict[str, Callable[[Any], Any]] = {
    "DType": _name,
    "Device": _no_device,
    "AxisList": _one,
    "BoundList": _one,
}
