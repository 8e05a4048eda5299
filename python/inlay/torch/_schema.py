"""The schemas of `torch.ops.inlay.*`, made from the declared arguments of the operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

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


def fields(operation: Any) -> list[Any]:
    """Returns the arguments that a schema has: all but the label, which has no use in torch."""
    return [argument for argument in operation.arguments if argument.kind != "Label"]


def schema(operation: Any, in_place: bool) -> str:
    """Returns the schema of an operation, or of its in-place form, which returns nothing."""
    parts, star = [], False
    for argument in fields(operation):
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
    if default is None or argument.kind == "DType":
        return f"{kind}? {argument.name}=None"
    return f"{kind} {argument.name}={_literal(default)}"


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


class Layout:
    """Converts between the arguments of a `torch.ops.inlay` call and Inlay's arguments."""

    def __init__(self, operation: Any) -> None:
        self.operation = operation
        self.fields = fields(operation)
        self._count = len(operation.arguments)
        self._places = [
            place for place, each in enumerate(operation.arguments) if each.kind != "Label"
        ]
        self.has_tensors = any(each.kind in (*TENSORS, *LISTS) for each in self.fields)

    def objects(self, args: Sequence[Any], keywords: dict[str, Any]) -> list[Any]:
        """Returns Inlay's arguments, one for each declared one."""
        result: list[Any] = [None] * self._count
        for k, (field, place) in enumerate(zip(self.fields, self._places, strict=True)):
            value = args[k] if k < len(args) else keywords.get(field.name, field.default)
            read = _READ.get(field.kind)
            result[place] = read(value) if read and value is not None else value
        return result

    def arguments(self, objects: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments of a `torch.ops.inlay` call from Inlay's arguments."""
        args, keywords = [], {}
        steps = self._steps(objects)
        for field, place in zip(self.fields, self._places, strict=True):
            value = objects[place]
            if value is None:
                value = None if field.kind == "DType" else field.default
            elif field.kind == "BoundList":
                value = _bounds(field.name, value, steps)
            elif field.kind in _WRITE:
                value = _WRITE[field.kind](value)
            if field.keyword_only:
                keywords[field.name] = value
            else:
                args.append(value)
        return args, keywords

    def _steps(self, objects: Sequence[Any]) -> Any:
        for argument, value in zip(self.operation.arguments, objects, strict=True):
            if argument.kind == "BoundList" and argument.name == "step":
                return 1 if value is None else value
        return None

    def split(self, objects: Sequence[Any]) -> list[Any]:
        """Returns all tensors among the arguments, in order."""
        tensors: list[Any] = []
        for argument, value in zip(self.operation.arguments, objects, strict=True):
            if argument.kind in TENSORS:
                tensors.append(value)
            elif argument.kind in LISTS:
                tensors.extend(value)
        return tensors

    def filled(self, objects: Sequence[Any], tensors: Sequence[Any]) -> list[Any]:
        """Returns the arguments with other tensors in the places of those that they have."""
        source = iter(tensors)
        result = list(objects)
        for k, argument in enumerate(self.operation.arguments):
            if argument.kind in TENSORS:
                result[k] = next(source)
            elif argument.kind in LISTS:
                result[k] = [next(source) for _ in objects[k]]
        return result


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
                bounds[k] = (0 if forward else _LAST) if name == "start" else (_LAST if forward else -_LAST)
    return bounds


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _dtype(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return value
    import inlay

    return DTYPES[inlay.dtype(value).name]


def _no_device(value: Any) -> Any:
    if torch.device(value).type != "cpu":
        raise ValueError(f"inlay: device={value} is not supported; results are CPU tensors")


_READ: dict[str, Callable[[Any], Any]] = {"DType": name_of, "Device": _no_device}
_WRITE: dict[str, Callable[[Any], Any]] = {
    "DType": _dtype,
    "AxisList": _listed,
    "Axes": _listed,
    "Ints": _listed,
    "Sizes": _listed,
}
