"""Runs the cases in `testdata` with torch tensors: every way to call, with several layouts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cases import Case, assert_same
from torch_support import (
    IN_PLACE,
    LAYOUTS,
    WITH_TENSORS,
    call,
    ops_arguments,
    tensors_of,
    to_numpy,
    wants_gradient,
)

import inlay.torch

MIXED = [case for case in WITH_TENSORS if len(case.tensors) > 1]


def for_each(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.id)


def outcome(case: Case, run: Any) -> Any:
    """Runs a call. Asserts the result or the error that the case expects."""
    if case.error is None:
        result = run()
        assert type(result) is torch.Tensor
        assert_same(to_numpy(result), case.expect)
        return result
    with pytest.raises(case.error) as caught:
        run()
    for word in case.words:
        assert word in str(caught.value)
    return None


@for_each(WITH_TENSORS)
def test_function(case: Case) -> None:
    tensors = tensors_of(case)
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    result = outcome(case, lambda: call(case, tensors))
    for name, tensor in tensors.items():
        assert_same(to_numpy(tensor), to_numpy(before[name]))
        assert tensor._version == 0
        if result is not None and result.numel():
            assert result.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()
    if result is not None:
        assert not result.requires_grad


@for_each(WITH_TENSORS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(case: Case, layout: str) -> None:
    tensors = tensors_of(case, LAYOUTS[layout])
    outcome(case, lambda: call(case, tensors))


@for_each([case for case in WITH_TENSORS if case.error is None])
def test_recorded(case: Case) -> None:
    """The same results if a gradient is recorded, and if it is not needed in the end."""
    tensors = tensors_of(case)
    for tensor in tensors.values():
        tensor.requires_grad_(wants_gradient(tensor))
    result = outcome(case, lambda: call(case, tensors))
    with torch.no_grad():
        assert not outcome(case, lambda: call(case, tensors)).requires_grad
    names = [name.rstrip("*") for name in case.inputs]
    operation = next(op for op in inlay.operations() if op.name == case.op)
    if wants_gradient(result) and any(
        tensor.requires_grad and name.rstrip("0123456789") in operation.gradients
        for name, tensor in tensors.items()
    ):
        assert result.requires_grad, names


@for_each(MIXED)
def test_one_tensor_beside_arrays(case: Case) -> None:
    for name, tensor in tensors_of(case).items():
        given = {**case.tensors, name: tensor}
        outcome(case, lambda given=given: call(case, given))


@for_each(IN_PLACE)
def test_in_place(case: Case) -> None:
    tensors = tensors_of(case)
    first = case.inputs[0]
    target, before = tensors[first], tensors[first].clone()
    result = outcome(case, lambda: call(case, tensors, in_place=True))
    if case.error is None:
        assert result is target
        assert target._version == 1
    else:
        assert_same(to_numpy(target), to_numpy(before))
        assert target._version == 0


@for_each([case for case in IN_PLACE if case.error is None])
@pytest.mark.parametrize("layout", ["transposed", "every_other"])
def test_in_place_into_a_layout(case: Case, layout: str) -> None:
    tensors = tensors_of(case)
    first = case.inputs[0]
    tensors[first] = LAYOUTS[layout](tensors[first])
    outcome(case, lambda: call(case, tensors, in_place=True))


@for_each([case for case in WITH_TENSORS if case.error is None])
def test_torch_ops(case: Case) -> None:
    args, keywords = ops_arguments(case, tensors_of(case))
    outcome(case, lambda: getattr(torch.ops.inlay, case.op)(*args, **keywords))


@for_each([case for case in IN_PLACE if case.error is None])
def test_torch_ops_in_place(case: Case) -> None:
    args, keywords = ops_arguments(case, tensors_of(case))
    assert getattr(torch.ops.inlay, f"{case.op}_")(*args, **keywords) is None
    assert_same(to_numpy(args[0]), case.expect)
    assert args[0]._version == 1
