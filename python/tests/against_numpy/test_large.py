"""Tensors that are large enough for several threads, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from arguments import assert_bits, numbers
from cases import assert_same

import inlay

from .support import reduced


@pytest.fixture(params=[1, 2, 3, 4])
def threads(request) -> Iterator[int]:
    before = inlay.get_num_threads()
    inlay.set_num_threads(request.param)
    yield request.param
    inlay.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64", "complex128"])
def test_large(threads, dtype) -> None:
    rng = np.random.default_rng(7)
    x = numbers(rng, dtype, (300, 1111))
    mask = rng.random(x.shape) < 0.3
    source = numbers(rng, dtype, x.shape)
    expected = x.copy()
    expected[mask] = source.reshape(-1)[: np.count_nonzero(mask)]
    assert_bits(inlay.masked_scatter(x, mask, source), expected)
    assert_bits(inlay.masked_select(x.T, mask.T), x.T[mask.T])

    expected = x.copy()
    expected[:, ::-2] = source[:, ::-2]
    assert_bits(inlay.slice_scatter(x, source[:, ::-2], axis=1, step=-2), expected)

    index = rng.integers(-300, 300, 1000)
    updates = numbers(rng, dtype, (1000, 1111))
    expected = x.copy()
    expected[index] = updates
    assert_bits(inlay.scatter(x, index, updates), expected)
    expected = reduced(x, index % 300, updates, "sum", include_self=True)
    ours = inlay.scatter(x, index, updates, False, include_self=True)
    assert_same(ours, expected)

    index = rng.integers(-1111, 1111, x.shape)
    expected = x.copy()
    np.put_along_axis(expected, index, source, 1)
    assert_bits(inlay.put_along_axis(x, index, source, 1), expected)
    assert_bits(inlay.take_along_axis(x, index, 1), np.take_along_axis(x, index, 1))
    assert_bits(inlay.tril(x, 5), np.tril(x, 5))
    assert_bits(inlay.where(mask, x, source), np.where(mask, x, source))
    assert_same(inlay.add(x.T, source.T), np.add(x.T, source.T))
