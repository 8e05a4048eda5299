"""`gradcheck` and `gradgradcheck` of every differentiable operation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from gradcheck import Draw
from gradient_cases import CASES, REAL_ONLY, Case
from gradient_cases.registry import written
from torch.autograd import gradcheck, gradgradcheck
from torch_support import to_torch

import inlay


def cast(draw: Draw) -> Case:
    return Case(lambda x: inlay.cast(x, torch.complex128) * 1j, [draw.numbers(2, 3)])


def astype(draw: Draw) -> Case:
    return Case(lambda x: inlay.astype(x, "complex128"), [draw.numbers(2, 3)])


def index_copy(draw: Draw) -> Case:
    x, y = draw.numbers(4, 2), draw.numbers(3, 2)
    index = draw.rng.permutation(4)[:3]
    return written(draw, x, y, "index_copy", source="value", index=index, axis=0)


# Cases of methods and operators of Inlay's own tensors.
OWN = ("getitem", "setitem", "T", "copy", "operators", "a chain of writes", "cast to complex")
FUNCTIONS = {
    name: make
    for name, make in CASES.items()
    if not name.startswith(OWN) and not name.endswith("=")
} | {"cast": cast, "astype": astype, "index_copy": index_copy}
TWINS = [name for name, make in FUNCTIONS.items() if make(Draw(name, "float64")).twin]


def params(names: Any) -> Any:
    found = [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for name in names
        for dtype in ("float64", "complex128")
        if not (dtype == "complex128" and name in REAL_ONLY)
    ]
    return pytest.mark.parametrize(("name", "dtype"), found)


def leaves(arrays: Any) -> list[Any]:
    return [to_torch(array).requires_grad_() for array in arrays]


def test_every_differentiable_operation_is_checked() -> None:
    words = {word.strip(",") for name in FUNCTIONS for word in name.split()}
    missing = [op.name for op in inlay.operations() if op.gradients and op.name not in words]
    assert missing == []


@params(FUNCTIONS)
def test_gradients(name: str, dtype: str) -> None:
    for k in range(2):
        case = FUNCTIONS[name](Draw((name, dtype, k), dtype, zero_size=k == 1))
        inputs = leaves(case.inputs)
        assert gradcheck(
            case.function, inputs, check_batched_grad=k == 0, check_undefined_grad=False
        )


@params(FUNCTIONS)
def test_second_gradients(name: str, dtype: str) -> None:
    case = FUNCTIONS[name](Draw((name, dtype, 0), dtype))
    inputs = leaves(case.inputs)
    assert gradgradcheck(case.function, inputs)


@params(FUNCTIONS)
def test_forward_gradients(name: str, dtype: str) -> None:
    case = FUNCTIONS[name](Draw((name, dtype, 0), dtype))
    inputs = leaves(case.inputs)
    assert gradcheck(
        case.function,
        inputs,
        check_forward_ad=True,
        check_backward_ad=False,
        check_undefined_grad=False,
    )


@params(TWINS)
def test_gradients_in_place(name: str, dtype: str) -> None:
    case = FUNCTIONS[name](Draw((name, dtype, 0), dtype))

    def in_place(x: Any, *rest: Any) -> Any:
        target = x * 1
        assert case.twin(target, *rest) is target
        return target

    inputs = leaves(case.inputs)
    assert torch.equal(in_place(*inputs), case.function(*inputs))
    assert gradcheck(in_place, inputs, check_undefined_grad=False)
    assert gradgradcheck(in_place, inputs, fast_mode=True)


@params(TWINS)
def test_gradients_in_place_into_a_view(name: str, dtype: str) -> None:
    case = FUNCTIONS[name](Draw((name, dtype, 0), dtype))

    def in_place(x: Any, *rest: Any) -> Any:
        base = torch.stack([x, x * 2])
        case.twin(base[0], *rest)
        return base

    inputs = leaves(case.inputs)
    assert gradcheck(in_place, inputs, check_undefined_grad=False)
    assert gradgradcheck(in_place, inputs, fast_mode=True)
