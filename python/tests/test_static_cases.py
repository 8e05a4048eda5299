"""Runs the cases in `testdata` as programs, with known and with unknown sizes, and with `jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import Case, all_cases, assert_same
from test_cases import FUNCTIONS, IN_PLACE, WITH_TENSORS, call, for_each

import inlay
from inlay import static

CASES = all_cases()


def shape_of(case: Case, name: str, array: np.ndarray, is_open: bool) -> list[int | None]:
    is_open = is_open and not case.needs_sizes(name)
    return [None] * array.ndim if is_open else list(array.shape)


def as_program(case: Case, style: str, is_open: bool) -> Any:
    program = static.Program()
    with static.program_guard(program):
        given = {
            name: static.data(name, shape_of(case, name, array, is_open), array.dtype.name)
            for name, array in case.tensors.items()
        }
        result = call(case, style, given)
    return static.Executor().run(program, case.tensors, [result])[0]


def check(case: Case, style: str, is_open: bool) -> None:
    before = {name: array.copy() for name, array in case.tensors.items()}
    if case.expect is not None:
        assert_same(as_program(case, style, is_open), case.expect)
    else:
        assert case.error is not None
        with pytest.raises(case.error) as raised:
            as_program(case, style, is_open)
        text = str(raised.value)
        assert isinstance(raised.value, inlay.InlayError)
        for word in case.words:
            # At build time a message has `?` for an unknown size, so numbers may be missing.
            told = "?" not in text or not any(letter.isdigit() for letter in word)
            assert not told or word in text
    for name, array in case.tensors.items():
        assert_same(array, before[name])


@for_each(WITH_TENSORS)
def test_sizes_are_known(case: Case) -> None:
    check(case, "function", is_open=False)


@for_each(WITH_TENSORS)
def test_sizes_are_open(case: Case) -> None:
    check(case, "function", is_open=True)


@for_each(IN_PLACE)
def test_in_place(case: Case) -> None:
    check(case, "in place", is_open=False)
    check(case, "in place method", is_open=True)


@for_each(FUNCTIONS)
def test_jit(case: Case) -> None:
    names = list(case.tensors)

    @inlay.jit
    def function(*arrays: Any) -> Any:
        return call(case, "function", dict(zip(names, arrays, strict=True)))

    wraps = (np.asarray, inlay.to_tensor)
    for wrap in wraps:
        given = [wrap(array) for array in case.tensors.values()]
        if not given:
            continue
        if case.expect is None:
            with pytest.raises(case.error):
                function(*given)
            continue
        result = function(*given)
        again = function(*given)
        assert isinstance(result, inlay.Tensor) == (wrap is inlay.to_tensor)
        for one in (result, again):
            assert_same(one.numpy() if isinstance(one, inlay.Tensor) else one, case.expect)
