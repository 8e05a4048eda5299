"""Arithmetic, comparisons and whole reductions against NumPy."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from arguments import assert_bits, bits, laid, numbers, shapes, thinner, without_negative_zeros
from cases import assert_same
from naive import COMPLEXES, DTYPES, FLOATS, INTEGERS

import inlay

from .support import REALS, SHORT_FLOATS, each_dtype, product

ARITHMETIC = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_equal": operator.le,
    "greater_than": operator.gt,
    "greater_equal": operator.ge,
}
UNORDERED = {"equal", "not_equal"}


def check_operator(
    rng: np.random.Generator, agree: Any, name: str, operation: Any, dtype: str, numpy_says: Any
) -> None:
    for shape in shapes(rng):
        x, y = (numbers(rng, dtype, thinner(rng, shape)) for _ in range(2))
        expected = np.asarray(numpy_says(x, y))
        agree(name, [x, y], expected, assert_same)
        ours, theirs = inlay.from_numpy(laid(rng, x)), laid(rng, y)
        assert_same(operation(ours, inlay.from_numpy(theirs)).numpy(), expected)
        assert_same(operation(ours, theirs).numpy(), expected)


@pytest.mark.parametrize("name", ARITHMETIC)
@each_dtype
def test_arithmetic(rng, agree, dtype, name) -> None:
    if (dtype, name) == ("bool", "subtract"):
        flags = np.array([True])
        with pytest.raises(TypeError, match="boolean subtract"):
            np.subtract(flags, flags)
        with pytest.raises(TypeError, match=r"subtract: .*bool"):
            inlay.subtract(flags, flags)
        return
    numpy_says = product if name == "multiply" else getattr(np, name)
    check_operator(rng, agree, name, ARITHMETIC[name], dtype, numpy_says)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(d, name) for d in DTYPES for name in COMPARISONS if d in REALS or name in UNORDERED],
)
def test_comparisons(rng, agree, dtype, name) -> None:
    check_operator(rng, agree, name, COMPARISONS[name], dtype, COMPARISONS[name])


@pytest.mark.parametrize("name", COMPARISONS.keys() - UNORDERED)
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_numbers_have_no_order(dtype, name) -> None:
    # By choice: NumPy compares the real parts, and if they are equal the imaginary parts.
    x, y = np.array([1 + 2j], dtype), np.array([1 + 3j], dtype)
    assert COMPARISONS[name](x, y) == COMPARISONS[name](2, 3)
    with pytest.raises(TypeError, match=f"{name}: .*{dtype}"):
        getattr(inlay, name)(x, y)


@pytest.mark.parametrize("keepdim", [True, False], ids=["keepdim", "dropped"])
@each_dtype
def test_sum(rng, agree, dtype, keepdim) -> None:
    for shape in shapes(rng):
        if dtype in ("bool", *INTEGERS):
            x = bits(rng, dtype, shape)
        else:
            # Every dtype can represent the sum of these integers, so the order does not matter.
            x = rng.random(shape) < min(1, 200 / math.prod([*shape, 1]) if 0 not in shape else 1)
            x = x.astype(DTYPES[dtype])
        axes = rng.permutation(x.ndim)[: rng.integers(0, x.ndim + 1)].tolist()
        for axis in (None, axes, *axes[:1]):
            numpy_axis = tuple(axis) if isinstance(axis, list) else axis
            expected = np.asarray(np.sum(x, axis=numpy_axis, keepdims=keepdim))
            agree("sum", [x], expected, axis=axis, keepdim=keepdim)


@pytest.mark.parametrize("keepdim", [True, False], ids=["keepdim", "dropped"])
@each_dtype
def test_other_reductions(rng, agree, dtype, keepdim) -> None:
    for shape in shapes(rng):
        axes = rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)].tolist()
        for axis in (None, axes, *axes[:1]):
            numpy_axis = tuple(axis) if isinstance(axis, list) else axis
            args, attrs = {"axis": numpy_axis, "keepdims": keepdim}, {"axis": axis}
            attrs["keepdim"] = keepdim
            x = without_negative_zeros(numbers(rng, dtype, shape))
            if dtype not in COMPLEXES and x.size:
                agree("amax", [x], np.asarray(np.max(x, **args)), assert_same, **attrs)
                agree("amin", [x], np.asarray(np.min(x, **args)), assert_same, **attrs)
            if dtype not in ("bool", *INTEGERS):
                # These powers of 2 stay in range, so the order does not matter.
                x = np.where(rng.random(shape) < 5 / max(x.size, 1), -2, 1).astype(DTYPES[dtype])
            same = assert_equal if dtype in COMPLEXES else assert_bits
            agree("prod", [x], np.asarray(np.prod(x, **args)), same, **attrs)
            if dtype != "bool" and x.size:
                agree("mean", [x], mean_of(x, args), assert_same, **attrs)


def assert_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    """Ignores the sign of 0: in a complex product it depends on the order of the factors."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert (actual == expected).all()


def mean_of(x: np.ndarray, args: dict[str, Any]) -> np.ndarray:
    """The exact sum divided by the count.

    By choice: NumPy's mean of integers is a float64. Inlay's has their dtype and is rounded down.
    """
    count = np.asarray(np.sum(np.ones(x.shape, int), **args))
    if x.dtype.kind in "iu":
        assert np.mean(x).dtype == np.float64
        total = np.asarray(np.sum(x.astype(object), **args), object)
        return np.asarray(total // count.astype(object), x.dtype)
    if x.dtype.kind == "c":
        parts = [mean_of(part, args) for part in (x.real, x.imag)]
        return np.stack(parts, axis=-1).view(x.dtype)[..., 0]
    work = np.dtype("f4") if str(x.dtype) in SHORT_FLOATS else x.dtype
    return np.asarray(np.sum(x.astype(work), **args) / count.astype(work)).astype(x.dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEXES])
def test_float_sums_are_near_the_exact_one(rng, dtype) -> None:
    # By choice: both add along a tree, but not the same one, so the last bits differ. NumPy's tree
    # depends on the strides, and Inlay's only on the shape.
    for size in (1, 7, 100, 1000, 30_000):
        x = rng.normal(size=size).astype(DTYPES[dtype])
        parts = [x.real, x.imag] if dtype in COMPLEXES else [x]
        exact = complex(*(math.fsum(part.astype("f8")) for part in parts))
        ours = complex(inlay.to_tensor(x).sum().item())
        step = 2.0 ** -{"float16": 10, "bfloat16": 7, "float32": 22, "complex64": 22}.get(dtype, 51)
        assert abs(ours - exact) <= step * 16 * math.sqrt(size)
        assert abs(complex(np.sum(x.astype("c16"))) - exact) <= 1e-9 * size
        assert inlay.to_tensor(x[::-1])[::-1].sum().item() == inlay.to_tensor(x).sum().item()
