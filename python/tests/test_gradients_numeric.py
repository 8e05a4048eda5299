"""Gradients against central differences.

Every differentiable operation and option is checked to first and second order, in float64 and
complex128. A gradient of a complex tensor is dL/dRe + i dL/dIm for a real loss L, as in PyTorch and
Paddle.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from gradcheck import (
    LAYOUTS,
    Draw,
    Function,
    assert_close,
    by_differences,
    first_order,
    leaf,
    random_like,
    second_order,
    value_of,
)
from gradient_cases import CASES, REAL_ONLY, Case

import inlay


def params(names: Any) -> Any:
    found = [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for name in names
        for dtype in ("float64", "complex128")
        if not (dtype == "complex128" and name in REAL_ONLY)
    ]
    return pytest.mark.parametrize(("name", "dtype"), found)


each_case = params(CASES)
each_twin = params(name for name in CASES if CASES[name](Draw(name, "float64")).twin)


def draws(name: str, dtype: str, count: int) -> list[tuple[Case, Draw]]:
    """Some cases of a kind. In every fourth case, an axis may have size 0."""
    found = []
    for k in range(count):
        draw = Draw((name, dtype, k), dtype, zero_size=k % 4 == 3)
        found.append((CASES[name](draw), draw))
    return found


@each_case
def test_gradients_are_those_of_differences(name: str, dtype: str) -> None:
    layouts = itertools.cycle(LAYOUTS.values())
    for case, draw in draws(name, dtype, 16):
        (y,) = value_of(case.function, case.inputs)
        seed = random_like(y, draw.rng)
        got = first_order(case.function, next(layouts), [*case.inputs, seed])
        expected = by_differences(
            lambda arrays, case=case: value_of(case.function, arrays), case.inputs, [seed], 1e-5
        )
        assert_close(got, expected, name)


@each_case
def test_second_gradients_are_those_of_differences(name: str, dtype: str) -> None:
    layouts = itertools.cycle(LAYOUTS.values())
    for case, draw in draws(name, dtype, 8):
        (y,) = value_of(case.function, case.inputs)
        arrays = [*case.inputs, random_like(y, draw.rng)]
        weights = [random_like(array, draw.rng) for array in case.inputs]
        got = second_order(case.function, next(layouts), arrays, weights)
        expected = by_differences(
            lambda arrays, case=case: first_order(case.function, LAYOUTS["contiguous"], arrays),
            arrays,
            weights,
            1e-5,
        )
        assert_close(got, expected, name)


@each_twin
def test_in_place_twins_have_the_same_gradients(name: str, dtype: str) -> None:
    layouts = itertools.cycle(LAYOUTS.values())
    for case, draw in draws(name, dtype, 8):

        def in_place(x: Any, *rest: Any, twin: Function = case.twin) -> Any:
            target = x * 1.0
            result = twin(target, *rest)
            assert result is target
            assert not result.stop_gradient
            return result

        (y,) = value_of(case.function, case.inputs)
        arrays = [*case.inputs, random_like(y, draw.rng)]
        weights = [random_like(array, draw.rng) for array in case.inputs]
        layout = next(layouts)
        np.testing.assert_array_equal(value_of(in_place_value(case), case.inputs)[0], y)
        got, expected = (first_order(f, layout, arrays) for f in (in_place, case.function))
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        got, expected = (
            second_order(f, layout, arrays, weights) for f in (in_place, case.function)
        )
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def in_place_value(case: Case) -> Function:
    assert case.twin is not None
    return lambda x, *rest, twin=case.twin: twin(x.copy(), *rest)


def test_the_mean_of_nothing_has_a_second_gradient_of_0() -> None:
    """The gradient of an empty tensor is empty, so its gradient does not depend on the seed."""
    x, seed = leaf(np.zeros(0)), leaf(1.0)
    (g,) = inlay.grad(x.mean(), x, grad_outputs=[seed], create_graph=True)
    (h,) = inlay.grad(g, seed, grad_outputs=[np.zeros(0)])
    assert h.item() == 0
