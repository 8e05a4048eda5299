"""Test cases as data: reads `testdata/<op>.toml`, which the Rust tests also read.

A file:

    op = "scatter"                       # what its cases call; a case may name another

    [[case]]
    name = "last_duplicate_wins"         # the behaviour; unique in the file
    dtypes = "all"                       # one run for each dtype, which replaces "T"
    x = { dtype = "T", shape = [2], data = [0, 0] }
    index = { dtype = "int64", shape = [2], data = [1, 1] }
    updates = { dtype = "T", shape = [2], data = [1, 0] }
    attrs = { axis = 0 }                 # keyword arguments; the others have their defaults
    expect = { dtype = "T", shape = [2], data = [0, 0] }

or, instead of `expect`, the error and words that its message contains:

    error = { kind = "IndexError", contains = ["scatter", "7", "axis 0", "size 3"] }

An in-place call of an operation gives the same, unless the case has `error_in_place`, which is like
`error`.

- `dtypes`: "all", "integer", "float", "complex", "number" (all but bool), "real" (number without
  complex), or a list of names.
- `data`: row-major. `{ fill = 1 }` repeats a number, `{ arange = true }` is 0, 1, 2, ...
- A number: as in TOML. "nan", "inf", "-inf" and "-0.0" are strings, integers that exceed int64 are
  decimal strings, and a complex number is [re, im]. A bool is true or false, or 0 or 1 if the dtype
  is "T".
- `attrs`: an argument that is None is left out; within a list, None is "none". A dtype is its name
  or "T". `value` and `fill_value` are written like a number of `data`.
- `attrs.key` of getitem and setitem: a list of ints, slices ("1:5:2"), "...", "none", and "@name",
  a tensor of the case.
- A list of tensors, as `concat` takes it, is written as the tensors x0, x1, ... of the case.
- `python_only = "reason"`: a call that Rust's types rule out.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from naive import COMPLEXES, DTYPES, FLOATS, INTEGERS

import inlay

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"

GROUPS = {
    "all": list(DTYPES),
    "integer": INTEGERS,
    "float": FLOATS,
    "complex": COMPLEXES,
    "number": [*INTEGERS, *FLOATS, *COMPLEXES],
    "real": [*INTEGERS, *FLOATS],
}
ERRORS = {"IndexError": IndexError, "TypeError": TypeError, "ValueError": ValueError}
OWN_KEYS = {"op", "name", "dtypes", "attrs", "expect", "error", "error_in_place", "python_only"}


OPERATIONS = {op.name: op for op in inlay.operations()}
SYNTAX = {"getitem": ["x"], "setitem": ["x", "value"]}  # syntax, not functions


def inputs_of(op: str) -> list[str]:
    """The arguments up to the last tensor, in order. "x*" is the list of tensors x0, x1, ..."""
    if op in SYNTAX:
        return SYNTAX[op]
    found, upto = [], 0
    for argument in OPERATIONS[op].arguments:
        if argument.kind in ("Tensors", "Indices"):
            found.append(f"{argument.name}*")
        else:
            found.append(argument.name)
        if argument.kind in ("Tensor", "Like", "Operand", "Index", "Mask", "Tensors", "Indices"):
            upto = len(found)
    return found[:upto]


@dataclass(frozen=True)
class Case:
    """One call and its expected outcome: `expect`, or `error` with `words`."""

    file: str
    op: str
    name: str
    dtype: str  # the dtype that replaces "T"; empty if the case has no "T"
    inplace: bool
    inputs: list[str]
    tensors: dict[str, np.ndarray]  # the inputs, and the tensors of a key
    attrs: dict[str, Any]
    expect: np.ndarray | None
    error: type[Exception] | None
    words: list[str]
    error_in_place: dict[str, Any] | None = None

    def in_place(self) -> Case:
        """The case of the in-place call."""
        if self.error_in_place is None:
            return self
        error, words = ERRORS[self.error_in_place["kind"]], self.error_in_place["contains"]
        return replace(self, expect=None, error=error, words=words)

    def needs_sizes(self, name: str) -> bool:
        """Whether the call needs to know the sizes of a tensor, also in a program."""
        if self.op == "squeeze":
            return "axis" not in self.attrs
        return self.op.endswith(("_nd", "_nd_add")) and name == "index"

    @property
    def id(self) -> str:
        return f"{self.file}-{self.name}" + (f"-{self.dtype}" if self.dtype else "")

    def arguments(self, tensors: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The inputs in order, with tensors taken from `tensors`, and the other attributes."""
        attrs = dict(self.attrs)
        inputs = []
        for name in self.inputs:
            if name.endswith("*"):
                inputs.append([tensors[one] for one in listed(name, tensors)])
            else:
                inputs.append(attrs.pop(name) if name in attrs else tensors[name])
        return inputs, attrs

    def key(self, tensors: dict[str, Any]) -> tuple:
        """The key of getitem and setitem, with its tensors taken from `tensors`."""
        return tuple(key_item(item, tensors) for item in self.attrs["key"])


def listed(name: str, tensors: dict[str, Any]) -> list[str]:
    """The names x0, x1, ... for "x*", up to the first one that is missing."""
    numbered = (f"{name[:-1]}{k}" for k in itertools.count())
    return list(itertools.takewhile(tensors.__contains__, numbered))


def key_item(item: Any, tensors: dict[str, Any]) -> Any:
    if item == "none":
        return None
    if item == "...":
        return Ellipsis
    if isinstance(item, str) and item.startswith("@"):
        return tensors[item[1:]]
    if isinstance(item, str):
        return slice(*(int(part) if part else None for part in item.split(":")))
    return item


def number(value: Any, kind: str) -> Any:
    """One number of `data`, in a form that NumPy converts to a dtype of this kind."""
    if isinstance(value, list):
        real, imag = value
        return complex(number(real, "f"), number(imag, "f"))
    if isinstance(value, str):
        return int(value) if kind in "iu" else float(value)
    return value


def tensor(table: dict[str, Any], dtype: str) -> np.ndarray:
    unknown = table.keys() - {"dtype", "shape", "data"}
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    want = DTYPES[dtype if table["dtype"] == "T" else table["dtype"]]
    size = math.prod(table["shape"])
    match table["data"]:
        case {"fill": value}:
            data = [value] * size
        case {"arange": True}:
            data = list(range(size))
        case data:
            pass
    numbers = [number(value, want.kind) for value in data]
    bad = want.kind == "b" and any(value not in (0, 1) for value in numbers)
    if bad or (want.kind in "iu" and any(type(value) is not int for value in numbers)):
        raise ValueError(f"{data} is not {want}")
    return np.array(numbers, want).reshape(table["shape"])


def attribute(name: str, value: Any, dtype: str) -> Any:
    if name in ("value", "fill_value", "start", "end", "step") and value in ("nan", "inf", "-inf"):
        return float(value)
    if name in ("value", "fill_value") and isinstance(value, (list, str)):
        return complex(*value) if isinstance(value, list) else number(value, "f")
    if name == "dtype" and value == "T":
        return dtype
    if name != "key" and isinstance(value, list):
        return [None if item == "none" else item for item in value]
    return value


def expanded(file: str, head: dict[str, Any], case: dict[str, Any]) -> Iterator[Case]:
    tables = {name: case[name] for name in case.keys() - OWN_KEYS}
    attrs = case.get("attrs", {})
    wanted = {item[1:] for item in attrs.get("key", []) if str(item).startswith("@")}
    op = case.get("op", head.get("op"))
    inputs = inputs_of(op)
    for name in inputs:
        wanted.update(listed(name, tables) if name.endswith("*") else {name} - attrs.keys())
    if tables.keys() != wanted:
        raise ValueError(f"tensors are {sorted(tables)}")
    if ("expect" in case) == ("error" in case):
        raise ValueError("one of expect and error is needed")
    error = case.get("error", {"kind": None, "contains": []})
    dtypes = case.get("dtypes", [""])
    for dtype in GROUPS[dtypes] if isinstance(dtypes, str) else dtypes:
        yield Case(
            file=file,
            op=op,
            name=case["name"],
            dtype=dtype,
            inplace=op in OPERATIONS and OPERATIONS[op].twin is not None,
            inputs=inputs,
            tensors={name: tensor(table, dtype) for name, table in tables.items()},
            attrs={name: attribute(name, value, dtype) for name, value in attrs.items()},
            expect=tensor(case["expect"], dtype) if "expect" in case else None,
            error=ERRORS[error["kind"]] if error["kind"] else None,
            words=error["contains"],
            error_in_place=case.get("error_in_place"),
        )


def load(path: Path) -> Iterator[Case]:
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    names = set()
    for case in text["case"]:
        try:
            if case["name"] in names:
                raise ValueError("the name is taken")
            names.add(case["name"])
            yield from expanded(path.stem, text, case)
        except Exception as problem:
            raise ValueError(f"{path.name}, case {case.get('name')}: {problem}") from problem


def all_cases() -> list[Case]:
    return [case for path in sorted(TESTDATA.glob("*.toml")) for case in load(path)]


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Asserts equal dtypes, shapes and bits. All NaNs count as equal."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    ours, theirs = real_parts(actual), real_parts(expected)
    bits = f"uint{8 * ours.dtype.itemsize}"
    same = ours.view(bits) == theirs.view(bits)
    if expected.dtype.kind not in "biu":
        same |= np.isnan(ours) & np.isnan(theirs)
    assert same.all(), f"got\n{actual}\nexpected\n{expected}"


def real_parts(x: np.ndarray) -> np.ndarray:
    """All numbers in row-major order. A complex number becomes two."""
    flat = np.array(x, order="C").reshape(-1)
    return flat.view(f"float{4 * x.dtype.itemsize}") if x.dtype.kind == "c" else flat
