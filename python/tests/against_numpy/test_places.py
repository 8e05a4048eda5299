"""Reductions into places against `ufunc.at`, and single elements along an axis."""

from __future__ import annotations

import numpy as np
import pytest
from arguments import (
    any_axis,
    any_index,
    assert_bits,
    bits,
    defined,
    numbers,
    replaced,
    shapes,
    stretched,
    thinner,
    without_negative_zeros,
)
from cases import assert_same
from naive import COMPLEXES, FLOATS

import inlay

from .support import AT, REDUCES, SHORT_FLOATS, each_dtype, each_self, reduced

# Reductions into places, by `ufunc.at`.


@each_self
@each_dtype
def test_scatter_reduces_as_ufunc_at_does(rng, agree, dtype, include_self) -> None:
    for reduce in REDUCES:
        for shape in shapes(rng, least=1, each=1):
            if not defined(dtype, reduce):
                continue
            axis = any_axis(rng, len(shape))
            size = shape[axis]
            count = int(rng.integers(0, 3 * size + 2)) if size else 0
            index = any_index(rng, (count,), size)
            x = without_negative_zeros(numbers(rng, dtype, shape))
            rows = replaced(shape, axis, count)
            updates = without_negative_zeros(stretched(rng, numbers, dtype, rows))
            expected = reduced(
                np.moveaxis(x, axis, 0),
                index.astype("int64") % max(size, 1),
                np.moveaxis(updates, axis, 0),
                reduce,
                include_self,
            )
            agree(
                "scatter",
                [x, index, updates],
                np.ascontiguousarray(np.moveaxis(expected, 0, axis)),
                assert_same,
                twin=True,
                overwrite=False,
                axis=axis,
                reduce=reduce,
                include_self=include_self,
            )


@pytest.mark.parametrize("dtype", SHORT_FLOATS)
def test_short_floats_are_summed_in_float32(dtype) -> None:
    # By choice: `np.add.at` rounds after each step, so its sum stops growing when 1 is half a unit
    # in the last place. Inlay accumulates in float32 and rounds once.
    stuck = {"float16": 2048, "bfloat16": 256}[dtype]
    x, index, ones = (np.zeros(1, dtype), np.zeros(4096, "i8"), np.ones(4096, dtype))
    theirs = x.copy()
    np.add.at(theirs, index, ones)
    assert theirs == stuck
    assert inlay.scatter(x, index, ones, overwrite=False) == 4096
    assert inlay.put_along_axis(x, index, ones, 0, "add") == 4096


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_among_equal_zeros_the_first_stays(dtype, reduce) -> None:
    # By choice: 0.0 and -0.0 are equal, and Inlay keeps the first one. Which one NumPy keeps
    # depends on the dtype and on the processor's vector instructions.
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        x, updates = np.array([first], dtype), np.array([second], dtype)
        theirs = x.copy()
        AT[reduce].at(theirs, [0], updates)
        assert theirs == 0
        ours = inlay.scatter(x, [0], updates, False, reduce=reduce, include_self=True)
        assert_bits(ours, x)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEXES])
def test_a_sum_of_negative_zeros_keeps_its_sign(dtype) -> None:
    # By choice: without the old value, Inlay starts with the first update. `np.add.at` starts with
    # 0.0, and 0.0 + -0.0 is 0.0.
    zeros = np.full(2, complex(-0.0, -0.0) if dtype in COMPLEXES else -0.0, dtype)
    theirs = np.zeros(1, dtype)
    np.add.at(theirs, [0, 0], zeros)
    assert_bits(theirs, np.zeros(1, dtype))
    assert_bits(inlay.scatter(np.ones(1, dtype), [0, 0], zeros, overwrite=False), zeros[:1])
    assert_bits(inlay.sum(zeros), zeros[0, ...])
    assert np.sum(zeros) == 0  # the sign depends on the version of NumPy


# Single elements along an axis.


def element_arguments(
    rng: np.random.Generator, shape: tuple[int, ...], broadcast: bool
) -> tuple[int, np.ndarray, tuple[int, ...]]:
    """An axis, an index of x's rank, and the shape of the elements that it names."""
    axis = any_axis(rng, len(shape))
    count = int(rng.integers(0, 2 * shape[axis] + 2)) if shape[axis] else 0
    named = replaced(shape, axis, count)
    if broadcast:
        thin = (1 if rng.random() < 0.3 else n for n in named)
        return axis, any_index(rng, replaced(tuple(thin), axis, count), shape[axis]), named
    named = replaced(tuple(int(rng.integers(0, n + 1)) for n in named), axis, count)
    return axis, any_index(rng, named, shape[axis]), named


def grid(index: np.ndarray, named: tuple[int, ...], axis: int, size: int) -> tuple[np.ndarray, ...]:
    """The position in x of every element that the index names."""
    positions = list(np.indices(named))
    positions[axis] = np.broadcast_to(index, named).astype("int64") % max(size, 1)
    return tuple(positions)


@each_dtype
def test_take_along_axis(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x = bits(rng, dtype, shape)
        axis, index, _ = element_arguments(rng, shape, broadcast=True)
        expected = np.take_along_axis(x, index.astype("int64"), axis)
        agree("take_along_axis", [x, index], expected, axis=axis)

        axis, index, named = element_arguments(rng, shape, broadcast=False)
        expected = x[grid(index, named, axis, shape[axis])]
        agree("take_along_axis", [x, index], expected, axis=axis, broadcast=False)


@each_dtype
def test_put_along_axis_assigns(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x = bits(rng, dtype, shape)
        axis, index, named = element_arguments(rng, shape, broadcast=True)
        values = bits(rng, dtype, thinner(rng, named))
        expected = x.copy()
        np.put_along_axis(expected, index.astype("int64"), values, axis)
        agree("put_along_axis", [x, index, values], expected, twin=True, axis=axis)

        axis, index, named = element_arguments(rng, shape, broadcast=False)
        larger = tuple(n + int(rng.integers(0, 2)) for n in named)
        values = stretched(rng, bits, dtype, larger)
        expected = x.copy()
        positions = grid(index, named, axis, shape[axis])
        expected[positions] = values[tuple(map(slice, named))]
        attrs = {"axis": axis, "broadcast": False}
        agree("put_along_axis", [x, index, values], expected, twin=True, **attrs)


@each_self
@each_dtype
def test_put_along_axis_reduces_as_ufunc_at_does(rng, agree, dtype, include_self) -> None:
    for reduce in REDUCES:
        for shape in shapes(rng, least=1, each=1):
            if not defined(dtype, reduce):
                continue
            broadcast = bool(rng.random() < 0.5)
            axis, index, named = element_arguments(rng, shape, broadcast)
            x = without_negative_zeros(numbers(rng, dtype, shape))
            values = without_negative_zeros(numbers(rng, dtype, named))
            flat = np.ravel_multi_index(grid(index, named, axis, shape[axis]), shape)
            expected = reduced(x.ravel(), flat.ravel(), values.ravel(), reduce, include_self)
            agree(
                "put_along_axis",
                [x, index, values],
                expected.reshape(shape),
                assert_same,
                twin=True,
                axis=axis,
                reduce=reduce,
                include_self=include_self,
                broadcast=broadcast,
            )
