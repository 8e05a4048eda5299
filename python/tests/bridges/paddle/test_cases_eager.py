"""Runs the cases in `testdata` on Paddle tensors, with every memory layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
from cases import Case, all_cases, assert_same

import inlay

from .support import LAYOUTS, has_dtypes, to_numpy, to_paddle

CASES = [
    case
    for case in all_cases()
    if case.tensors
    and case.op not in ("getitem", "setitem")
    and has_dtypes(case.tensors.values())
    and (case.expect is None or has_dtypes([case.expect]))
]
IN_PLACE = [case.in_place() for case in CASES if case.inplace]


def for_each(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


def call(case: Case, function: Any, given: dict[str, Any]) -> Any:
    tensors, attrs = case.arguments(given)
    return function(*tensors, **attrs)


@pytest.mark.parametrize("layout", LAYOUTS)
@for_each(CASES)
def test_results_are_paddle_tensors(case: Case, layout: str) -> None:
    given = {name: LAYOUTS[layout](array) for name, array in case.tensors.items()}
    function = getattr(inlay, case.op)
    if case.expect is None:
        check_error(case, function, given)
    else:
        result = call(case, function, given)
        assert type(result) is paddle.Tensor
        assert result.stop_gradient
        assert_same(to_numpy(result), case.expect)
    for name, array in case.tensors.items():
        assert_same(to_numpy(given[name]), array)
        assert given[name].inplace_version == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@for_each(IN_PLACE)
def test_in_place_calls_write_into_the_tensor(case: Case, layout: str) -> None:
    given = {name: LAYOUTS[layout](array) for name, array in case.tensors.items()}
    function = getattr(inlay, f"{case.op}_")
    target = given[case.inputs[0]]
    address, version = target.data_ptr(), target.inplace_version
    if case.expect is None:
        check_error(case, function, given)
        assert target.inplace_version == version
        assert_same(to_numpy(target), case.tensors[case.inputs[0]])
        return
    result = call(case, function, given)
    assert result is target
    assert target.data_ptr() == address
    assert target.inplace_version == version + 1
    assert_same(to_numpy(target), case.expect)


@for_each([case for case in CASES if len(case.tensors) > 1])
def test_one_tensor_is_enough(case: Case) -> None:
    """The other arguments are NumPy arrays, except those of bfloat16, which Paddle has not."""
    first = next(iter(case.tensors))
    given: dict[str, Any] = dict(case.tensors)
    given[first] = to_paddle(case.tensors[first])
    function = getattr(inlay, case.op)
    if case.expect is None:
        check_error(case, function, given)
    else:
        result = call(case, function, given)
        assert type(result) is paddle.Tensor
        assert_same(to_numpy(result), case.expect)


def check_error(case: Case, function: Any, given: dict[str, Any]) -> None:
    assert case.error is not None
    with pytest.raises(case.error) as raised:
        call(case, function, given)
    assert isinstance(raised.value, inlay.InlayError)
    for word in case.words:
        assert word in str(raised.value)


def test_every_operation_with_tensors_has_cases() -> None:
    tested = {case.op for case in CASES}
    takes = {op.name for op in inlay.operations() if any(a.kind in KINDS for a in op.arguments)}
    assert takes - tested == set()


KINDS = {"Tensor", "Like", "Operand", "Index", "Mask", "Tensors", "Indices"}


def test_views_of_paddle_are_read_as_they_are() -> None:
    base = paddle.arange(12, dtype="float32").reshape([3, 4])
    view = base.t()[1:, ::2]
    assert not view.is_contiguous()
    np.testing.assert_array_equal(inlay.negative(view).numpy(), -view.numpy())


@pytest.mark.parametrize(
    "view",
    [
        lambda x: inlay.transpose(x),
        lambda x: inlay.reshape(x, [9]),
        lambda x: inlay.diagonal(x, 1),
        lambda x: inlay.squeeze(x),
        lambda x: inlay.unsqueeze(x, 0),
        lambda x: inlay.flatten(x),
        lambda x: inlay.broadcast_to(x, [2, 3, 3]),
        lambda x: inlay.real(x),
    ],
)
def test_results_share_no_memory(view: Any) -> None:
    """A write to the result would change the argument, and Paddle would not notice."""
    x = paddle.ones([3, 3])
    result = view(x)
    result.fill_(7.0)
    assert (x == 1).all()
    assert x.inplace_version == 0
