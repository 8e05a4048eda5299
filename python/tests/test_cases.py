"""Runs the cases in `testdata` with Inlay: every way to call, with every memory layout.

The same cases are run against the naive implementations in `test_naive.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases import OPERATIONS, SYNTAX, Case, all_cases, assert_same

import inlay

CASES = all_cases()
OPERATORS = tuple(SYNTAX)
METHOD_NAMES = {name for name, op in OPERATIONS.items() if op.is_method}

WITHOUT_TENSORS = [case for case in CASES if not case.inputs]
WITH_TENSORS = [case for case in CASES if case.inputs]
FUNCTIONS = [case for case in WITH_TENSORS if case.op not in OPERATORS]
METHODS = [case for case in WITH_TENSORS if case.op in METHOD_NAMES]
IN_PLACE = [case.in_place() for case in CASES if case.inplace]
MIXED = [case for case in FUNCTIONS if len(case.tensors) > 1]


def for_each(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


# Memory: the same elements with another layout.

JUNK = 0xA5  # the bytes between and around the elements


@dataclass(frozen=True)
class Laid:
    """An array, all bytes of its memory, and copies of both."""

    array: np.ndarray
    memory: np.ndarray
    elements: np.ndarray
    before: bytes

    def assert_unchanged(self) -> None:
        assert self.memory.tobytes() == self.before

    def assert_only_elements_changed(self) -> None:
        changed = np.array(self.array)
        self.array[...] = self.elements
        self.assert_unchanged()
        self.array[...] = changed


def plain(memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return memory[: dtype.itemsize * int(np.prod(shape))].view(dtype).reshape(shape)


def transposed(memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return plain(memory, shape[::-1], dtype).T


def backwards(memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return plain(memory, shape, dtype)[(..., *[slice(None, None, -1)] * len(shape))]


def every_other(memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    wider = plain(memory, tuple(2 * size + 1 for size in shape), dtype)
    return wider[(..., *[slice(1, None, 2)] * len(shape))]


def unaligned(memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return plain(memory[1:], shape, dtype)


def packed_field(memory: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    record = np.dtype([("before", "u1"), ("value", dtype)])
    return plain(memory, shape, record)["value"]


LAYOUTS = {
    "transposed": transposed,
    "backwards": backwards,
    "every_other": every_other,
    "unaligned": unaligned,
    "packed_field": packed_field,
}


def lay(array: np.ndarray, layout: Callable[..., np.ndarray]) -> Laid:
    room = (array.dtype.itemsize + 1) * int(np.prod([2 * size + 1 for size in array.shape]))
    memory = np.full(room + 1, JUNK, np.uint8)
    view = layout(memory, array.shape, array.dtype)
    view[...] = array
    return Laid(view, memory, np.array(array), memory.tobytes())


def test_layouts_are_what_they_say() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    laid = {name: lay(array, layout).array for name, layout in LAYOUTS.items()}
    for view in laid.values():
        np.testing.assert_array_equal(view, array)
        assert view.base is not None
    assert laid["transposed"].strides == (4, 8)
    assert laid["backwards"].strides == (-12, -4)
    assert laid["every_other"].strides == (56, 8)
    assert not laid["unaligned"].flags.aligned
    assert laid["packed_field"].strides == (15, 5)


# Calls.


def call(case: Case, style: str, given: dict[str, Any]) -> Any:
    (first, *rest), attrs = case.arguments(given)
    if case.op in OPERATORS:
        key = case.key(given)
        key = key[0] if len(key) == 1 else key
        if case.op == "getitem":
            return first[key]
        first[key] = rest[0]
        return first
    name = case.op + "_" * style.startswith("in place")
    if style.endswith("method"):
        return getattr(first, name)(*rest, **attrs)
    return getattr(inlay, name)(first, *rest, **attrs)


def numbers(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, inlay.Tensor) else np.asarray(x)


def assert_raises(case: Case, function: Callable[[], Any]) -> None:
    assert case.error is not None
    with pytest.raises(case.error) as raised:
        function()
    text = str(raised.value)
    assert isinstance(raised.value, inlay.InlayError)
    for word in case.words:
        assert word in text
    if case.op in case.words:
        assert text.startswith(case.op)


def check(
    case: Case,
    style: str,
    wrap: dict[str, Callable[[np.ndarray], Any]],
    layout: Callable[..., np.ndarray] = plain,
) -> Any:
    """Makes the call of a case with a memory layout and wrapped tensors. Checks the outcome.

    Returns the result, or None if an error was expected.
    """
    laid = {name: lay(array, layout) for name, array in case.tensors.items()}
    given = {name: wrap[name](laid[name].array) for name in laid}
    if case.expect is None:
        assert_raises(case, lambda: call(case, style, given))
        for name, array in case.tensors.items():
            laid[name].assert_unchanged()
            assert_same(numbers(given[name]), array)
        return None

    result = call(case, style, given)
    assert_same(numbers(result), case.expect)
    target = case.inputs[0] if style.startswith("in place") or case.op == "setitem" else None
    for name, array in case.tensors.items():
        if name != target:
            laid[name].assert_unchanged()
            assert_same(numbers(given[name]), array)
    if target is not None:
        assert result is given[target]
        if wrap[target] is not inlay.to_tensor:
            assert_same(laid[target].array, case.expect)
        laid[target].assert_only_elements_changed()
    elif case.inplace:
        fresh = numbers(result)
        assert fresh.flags.c_contiguous
        assert not any(np.may_share_memory(fresh, one.memory) for one in laid.values())
    return result


def all_as(case: Case, wrap: Callable[[np.ndarray], Any]) -> dict[str, Callable[..., Any]]:
    """A function that wraps all tensors of a case. The target of `x[...]` must be a Tensor."""
    wraps = dict.fromkeys(case.tensors, wrap)
    if case.op in OPERATORS and wrap is as_array:
        wraps["x"] = inlay.from_numpy
    return wraps


def as_array(array: np.ndarray) -> np.ndarray:
    return array


# Tests.


@for_each(WITHOUT_TENSORS)
def test_without_tensors(case: Case) -> None:
    function = getattr(inlay, case.op)
    if case.expect is None:
        assert_raises(case, lambda: function(**case.attrs))
        return
    result = function(**case.attrs)
    assert isinstance(result, inlay.Tensor)
    assert_same(result.numpy(), case.expect)


@for_each(WITH_TENSORS)
def test_tensors_give_a_tensor(case: Case) -> None:
    result = check(case, "function", all_as(case, inlay.to_tensor))
    assert result is None or isinstance(result, inlay.Tensor)


@for_each(FUNCTIONS)
def test_arrays_give_an_array(case: Case) -> None:
    result = check(case, "function", all_as(case, as_array))
    assert result is None or isinstance(result, (np.ndarray, np.generic))


@for_each(MIXED)
def test_one_tensor_among_arrays_gives_a_tensor(case: Case) -> None:
    for name in case.tensors:
        result = check(case, "function", {**all_as(case, as_array), name: inlay.to_tensor})
        assert result is None or isinstance(result, inlay.Tensor)


@for_each(METHODS)
def test_method(case: Case) -> None:
    result = check(case, "method", all_as(case, inlay.to_tensor))
    assert result is None or isinstance(result, inlay.Tensor)


@for_each(IN_PLACE)
def test_in_place(case: Case) -> None:
    check(case, "in place", all_as(case, inlay.to_tensor))
    check(case, "in place", all_as(case, inlay.from_numpy))
    check(case, "in place", all_as(case, as_array))
    check(case, "in place method", all_as(case, inlay.to_tensor))
    check(case, "in place method", all_as(case, inlay.from_numpy))


@for_each(WITH_TENSORS)
def test_any_memory(case: Case) -> None:
    for layout in LAYOUTS.values():
        for wrap in (inlay.from_numpy, as_array):
            check(case, "function", all_as(case, wrap), layout)
            if case.inplace:
                check(case.in_place(), "in place", all_as(case, wrap), layout)


@for_each(IN_PLACE)
def test_any_memory_in_the_target_alone(case: Case) -> None:
    wraps = {**all_as(case, inlay.to_tensor), case.inputs[0]: inlay.from_numpy}
    for layout in LAYOUTS.values():
        check(case, "in place", wraps, layout)
