"""The five main operations against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arguments import (
    any_axis,
    any_bound,
    any_index,
    any_step,
    assert_bits,
    bits,
    numbers,
    python,
    replaced,
    shapes,
    stretched,
    thinner,
)
from cases import assert_same
from naive import INTEGERS

import inlay

from .support import each_dtype


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("half", ["tril_indices", "triu_indices"])
def test_triangle_indices(rng, half, dtype) -> None:
    for _ in range(40):
        rows, columns = rng.integers(0, 9, 2).tolist()
        offset = int(rng.integers(-11, 12))
        expected = np.array(getattr(np, half)(rows, offset, columns))
        for attrs in ({}, {"dtype": dtype}):
            result = getattr(inlay, half)(rows, columns, offset, **attrs)
            assert_bits(result.numpy(), expected.astype(attrs.get("dtype", "int64")))
        square = np.array(getattr(np, half)(rows, offset))
        assert_bits(getattr(inlay, half)(rows, offset=offset).numpy(), square)


@each_dtype
def test_slice_scatter(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1, each=4):
        x = bits(rng, dtype, shape)
        axes = rng.permutation(x.ndim)[: rng.integers(1, x.ndim + 1)].tolist()
        key = [slice(None)] * x.ndim
        for axis in axes:
            start, stop = any_bound(rng, shape[axis]), any_bound(rng, shape[axis])
            key[axis] = slice(start, stop, any_step(rng))
        expected = x.copy()
        y = stretched(rng, bits, dtype, x[tuple(key)].shape)
        expected[tuple(key)] = y
        attrs: dict[str, Any] = {
            "axis": [axis - rng.choice([0, x.ndim]) for axis in axes],
            "start": [key[axis].start for axis in axes],
            "stop": [key[axis].stop for axis in axes],
            "step": [key[axis].step for axis in axes],
        }
        if len(axes) == 1:
            attrs = {name: value[0] for name, value in attrs.items()}
        agree("slice_scatter", [x, y], expected, twin=True, **attrs)


@each_dtype
def test_diagonal_and_diagonal_scatter(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=2, each=4):
        x = bits(rng, dtype, shape)
        axis1, axis2 = rng.permutation(x.ndim)[:2].tolist()
        offset = int(rng.integers(-shape[axis1] - 1, shape[axis2] + 2))
        attrs = {"offset": offset, "axis1": axis1 - x.ndim, "axis2": axis2}
        expected = np.diagonal(x, offset, axis1, axis2)
        agree("diagonal", [x], np.array(expected, order="C"), **attrs)

        # NumPy's diagonal is read-only, so the test uses its positions.
        src = stretched(rng, bits, dtype, expected.shape)
        expected = x.copy()
        matrices = np.moveaxis(expected, (axis1, axis2), (-2, -1))
        positions = np.arange(shape[axis1] * shape[axis2]).reshape(shape[axis1], shape[axis2])
        rows, columns = np.divmod(np.diagonal(positions, offset), max(shape[axis2], 1))
        matrices[..., rows, columns] = src
        agree("diagonal_scatter", [x, src], expected, twin=True, **attrs)


@each_dtype
def test_diagonal_scatter_against_fill_diagonal(rng, agree, dtype) -> None:
    for shape in ((1, 1), (3, 3), (2, 5), (5, 2), (9, 9)):
        x, src = bits(rng, dtype, shape), bits(rng, dtype, (min(shape),))
        expected = x.copy()
        np.fill_diagonal(expected, src)
        agree("diagonal_scatter", [x, src], expected, twin=True)


@each_dtype
def test_masks(rng, agree, dtype) -> None:
    for shape in shapes(rng):
        x = bits(rng, dtype, shape)
        mask = rng.random(thinner(rng, shape)) < rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        full = np.broadcast_to(mask, shape)
        count = np.count_nonzero(full)
        extra = int(rng.integers(0, 3))
        source = stretched(rng, bits, dtype, (count + extra,))
        if (count + extra) % 2 == 0 and rng.random() < 0.5:
            source = source.reshape(2, -1)

        expected = x.copy()
        expected[full] = source.reshape(-1)[:count]
        agree("masked_scatter", [x, mask, source], expected, twin=True)
        if source.size:
            placed = x.copy()
            np.place(placed, full, source)
            assert_bits(placed, expected)

        agree("masked_select", [x, mask], x[full])
        assert_bits(np.extract(full, x), x[full])

        number = numbers(rng, dtype, ())
        expected = x.copy()
        np.copyto(expected, number, where=full)
        agree("masked_fill", [x, mask, number], expected, twin=True)
        agree("masked_fill", [x, mask], expected, assert_same, twin=True, value=python(number))


@each_dtype
def test_scatter_overwrites_as_assignment_does(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1, each=5):
        x, axis = bits(rng, dtype, shape), any_axis(rng, len(shape))
        size = shape[axis]
        count = int(rng.integers(0, 2 * size + 2)) if size else 0
        index = any_index(rng, (count,), size)
        updates = stretched(rng, bits, dtype, replaced(shape, axis, count + rng.integers(0, 3)))
        expected = x.copy()
        np.moveaxis(expected, axis, 0)[index] = np.moveaxis(updates, axis, 0)[:count]
        agree("scatter", [x, index, updates], expected, twin=True, axis=axis)
        agree("scatter", [x, index, updates], expected, axis=axis, overwrite=True, reduce="mul")

        if size:
            index = any_index(rng, (), size)
            updates = stretched(rng, bits, dtype, replaced(shape, axis))
            expected = x.copy()
            np.moveaxis(expected, axis, 0)[int(index)] = updates
            agree("scatter", [x, index, updates], expected, twin=True, axis=axis)
