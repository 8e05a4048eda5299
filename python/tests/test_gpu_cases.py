"""Runs the cases in `testdata` on the GPU: functions, methods, in-place forms, views, programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import Case, assert_same
from test_cases import (
    IN_PLACE,
    METHODS,
    WITH_TENSORS,
    WITHOUT_TENSORS,
    assert_raises,
    call,
    for_each,
)
from test_static_cases import shape_of

import inlay
from inlay import static


def on_gpu(array: np.ndarray) -> inlay.Tensor:
    return inlay.to_tensor(array, device="gpu")


def transposed(array: np.ndarray) -> inlay.Tensor:
    return on_gpu(array.T).transpose(list(range(array.ndim))[::-1])


def every_other(array: np.ndarray) -> inlay.Tensor:
    wider = np.zeros([2 * size + 1 for size in array.shape], array.dtype)
    odd = (..., *[slice(1, None, 2)] * array.ndim)
    wider[odd] = array
    return on_gpu(wider)[odd]


WAYS: dict[str, Callable[[np.ndarray], inlay.Tensor]] = {
    "plain": on_gpu,
    "transposed": transposed,
    "every_other": every_other,
}
each_way = pytest.mark.parametrize("way", WAYS)


def numbers(x: Any) -> np.ndarray:
    assert x.device == "gpu"
    return x.cpu().numpy()


def check(case: Case, style: str, way: str) -> None:
    given = {name: WAYS[way](array) for name, array in case.tensors.items()}
    in_place = style.startswith("in place") or case.op == "setitem"
    if case.expect is None:
        assert_raises(case, lambda: call(case, style, given))
    else:
        result = call(case, style, given)
        assert_same(numbers(result), case.expect)
        assert not in_place or result is given[case.inputs[0]]
    for name, array in case.tensors.items():
        if case.expect is None or not in_place or name != case.inputs[0]:
            assert_same(numbers(given[name]), array)


@for_each(WITHOUT_TENSORS)
def test_without_tensors(case: Case) -> None:
    function = getattr(inlay, case.op)
    if case.expect is None:
        assert_raises(case, lambda: function(**case.attrs, device="gpu"))
    else:
        assert_same(numbers(function(**case.attrs, device="gpu")), case.expect)


@each_way
@for_each(WITH_TENSORS)
def test_function(case: Case, way: str) -> None:
    check(case, "function", way)


@for_each(METHODS)
def test_method(case: Case) -> None:
    check(case, "method", "plain")


@each_way
@for_each(IN_PLACE)
def test_in_place(case: Case, way: str) -> None:
    check(case, "in place", way)


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@for_each(WITH_TENSORS)
def test_program(case: Case, is_open: bool) -> None:
    def run() -> Any:
        program = static.Program()
        with static.program_guard(program):
            given = {
                name: static.data(name, shape_of(case, name, array, is_open), array.dtype.name)
                for name, array in case.tensors.items()
            }
            result = call(case, "function", given)
        executor = static.Executor("gpu")
        return executor.run(program, case.tensors, [result], return_numpy=False)[0]

    if case.expect is not None:
        assert_same(numbers(run()), case.expect)
        return
    assert case.error is not None
    with pytest.raises(case.error):
        run()
