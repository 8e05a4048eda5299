"""Casts and constructors against NumPy."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest
from arguments import assert_bits, numbers, python, shapes
from cases import assert_same
from naive import COMPLEXES, DTYPES, FLOATS, INTEGERS

import inlay

from .support import each_dtype

# Casts.


def castable(rng: np.random.Generator, dtype: str, to: str, shape: Any) -> np.ndarray:
    """Numbers whose cast is defined in C: a float that is cast to an integer must be in range."""
    x = numbers(rng, dtype, shape)
    if to in INTEGERS and dtype in FLOATS:
        low = max(float(np.iinfo(to).min), -60000.0)
        high = min(float(np.iinfo(to).max), 60000.0)
        x = rng.uniform(low, high * 0.99, shape).astype(DTYPES[dtype])
    if to == "bfloat16" and dtype in ("int32", "uint32", "int64", "uint64", "float64"):
        # ml_dtypes converts through float32. See the test of double rounding.
        x = x.astype("f4").clip(-(2.0**30), 2.0**30).astype(DTYPES[dtype])
        x = x.astype("f4").astype(DTYPES[dtype]) if dtype == "float64" else x & ~x.dtype.type(0xFF)
    return x


@pytest.mark.parametrize("to", DTYPES)
@each_dtype
def test_cast(rng, agree, dtype, to) -> None:
    if dtype in COMPLEXES and to not in ("bool", *COMPLEXES):
        # By choice: NumPy drops the imaginary part with a warning, and ml_dtypes drops it without
        # one. In Inlay it is an error.
        ignored = pytest.warns(np.exceptions.ComplexWarning)
        with contextlib.nullcontext() if to == "bfloat16" else ignored:
            assert np.array([1 + 2j], dtype).astype(DTYPES[to]) == 1
        with pytest.raises(TypeError, match=f"cast: .*{to}.*{dtype}"):
            inlay.cast(np.array([1 + 2j], dtype), to)
        return
    for shape in shapes(rng, each=2):
        x = castable(rng, dtype, to, shape)
        agree("cast", [x], x.astype(DTYPES[to]), assert_same, dtype=to)


def test_a_cast_to_bfloat16_rounds_once() -> None:
    # A bug in ml_dtypes: it rounds to float32 first. The number is above a tie, becomes the tie,
    # and the second rounding then rounds it down.
    for number in (np.array([1 + 2**-8 + 2**-40]), np.array([2**40 + 2**32 + 1])):
        step = 2.0 ** (math.frexp(number[0])[1] - 8)
        below = math.floor(number[0] / step) * step
        assert number[0] - below > step / 2
        assert number.astype(DTYPES["bfloat16"]) == below
        assert inlay.cast(number, "bfloat16") == below + step


@pytest.mark.parametrize("to", INTEGERS)
def test_floats_past_the_ends_of_an_integer_are_cast_to_the_ends(to) -> None:
    # By choice: C leaves this undefined, so NumPy warns and returns what the processor returns.
    ends = np.iinfo(to)
    x = np.array([math.inf, -math.inf, 1e30, -1e30, math.nan])
    with np.errstate(invalid="warn"), pytest.warns(RuntimeWarning, match="invalid value"):
        x.astype(to)
    assert inlay.cast(x, to).tolist() == [ends.max, ends.min, ends.max, ends.min, 0]


# Constructors.


@each_dtype
def test_constructors(rng, dtype) -> None:
    for shape in shapes(rng, each=1):
        want = DTYPES[dtype]
        assert_bits(inlay.zeros(list(shape), dtype).numpy(), np.zeros(shape, want))
        assert_bits(inlay.ones(list(shape), dtype).numpy(), np.ones(shape, want))
        number = numbers(rng, dtype, ())
        full = inlay.full(list(shape), python(number), dtype)
        assert_same(full.numpy(), np.full(shape, number, want))
        x = numbers(rng, dtype, shape)
        if 0 not in shape:
            assert_same(inlay.to_tensor(x.tolist(), dtype).numpy(), np.array(x.tolist(), want))


def test_lists_keep_every_integer() -> None:
    integers = [2**63 - 1, 2**64 - 2]
    assert np.array(integers, "u8").tolist() == integers
    assert inlay.scatter(np.zeros(2, "u8"), [0, 1], integers).tolist() == integers
    assert inlay.to_tensor(integers, dtype="uint64").tolist() == integers


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_arange(rng, dtype) -> None:
    want = DTYPES[dtype]
    for _ in range(40):
        start, end, step = rng.integers(0, 100, 3).tolist()
        if want.kind != "u":
            start, end, step = (value - 50 for value in (start, end, step))
        step = step or 1
        if want.kind == "u" and rng.random() < 0.5 and start > end:
            step = -step
        expected = np.array(range(start, end, step), want)
        assert_bits(inlay.arange(start, end, step, dtype=dtype).numpy(), expected)
        assert_bits(np.arange(start, end, step).astype(want), expected)
        if dtype in FLOATS:
            # All numbers are multiples of 1/16, so every intermediate result is exact.
            fractions = [value / 16 for value in (start, end, step)]
            expected = np.arange(*fractions).astype(want)
            assert_bits(inlay.arange(*fractions, dtype=dtype).numpy(), expected)
    assert_bits(inlay.arange(5).numpy(), np.arange(5))


def test_arange_rounds_each_number_once() -> None:
    # By choice: NumPy's step is `(start + step) - start`, and its rounding error grows with i.
    # Inlay computes `start + i * step`.
    exact = np.array([1.0 + i * 0.1 for i in range(10)])
    assert_bits(inlay.arange(1.0, 2.0, 0.1, dtype="float64").numpy(), exact)
    theirs = np.arange(1.0, 2.0, 0.1)
    assert np.abs(theirs - exact).max() > 0
    np.testing.assert_allclose(theirs, exact)
