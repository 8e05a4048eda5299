"""The rest of the family against Paddle: single elements, rows, places, triangles, where."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
from arguments import any_axis, bits, numbers, replaced, without_negative_zeros
from cases import assert_same
from naive import INTEGERS

import inlay

from .support import LARGE, TAKES, each_dtype_of, full_shapes, some_rows, to_paddle

# Single elements.


def small(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Numbers whose sums do not overflow. NaN and -0.0 have separate tests."""
    if dtype in INTEGERS:
        return rng.integers(0 if dtype.startswith("u") else -5, 6, shape).astype(dtype)
    x = without_negative_zeros(numbers(rng, dtype, shape))
    return np.where(np.isnan(x), x.dtype.type(1), x)


def broadcast_arguments(
    rng: np.random.Generator, shape: tuple[int, ...]
) -> tuple[int, np.ndarray, tuple[int, ...]]:
    """An axis, an index that broadcasts to x on other axes, and a shape that broadcasts to it."""
    axis = any_axis(rng, len(shape))
    # The index is not longer than x. See the test of a long index.
    count = int(rng.integers(1, shape[axis] + 1))
    thin = replaced(tuple(1 if rng.random() < 0.3 else n for n in shape), axis, count)
    index = rng.integers(-shape[axis], shape[axis], thin)
    values = tuple(1 if rng.random() < 0.2 else n for n in replaced(shape, axis, count))
    return axis, index, values


def exact_arguments(
    rng: np.random.Generator, shape: tuple[int, ...]
) -> tuple[int, np.ndarray, tuple[int, ...]]:
    """An axis, an index not larger than x on other axes, and a shape not smaller than the index."""
    axis = any_axis(rng, len(shape))
    named = tuple(int(rng.integers(1, n + 1)) for n in shape)
    named = replaced(named, axis, rng.integers(1, min(2 * shape[axis], 8) + 1))
    index = rng.integers(-shape[axis], shape[axis], named)
    return axis, index, tuple(n + int(rng.integers(0, 2)) for n in named)


@each_dtype_of("take_along_axis")
def test_take_along_axis(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x = bits(rng, dtype, shape)
        for arguments, broadcast in ((broadcast_arguments, True), (exact_arguments, False)):
            axis, index, _ = arguments(rng, shape)
            theirs = paddle.take_along_axis(to_paddle(x), to_paddle(index), axis, broadcast)
            agree("take_along_axis", [x, index], theirs, axis=axis, broadcast=broadcast)


@pytest.mark.parametrize("broadcast", [True, False], ids=["broadcast", "exact"])
@pytest.mark.parametrize("include_self", [True, False], ids=["with self", "without"])
@pytest.mark.parametrize("reduce", ["assign", "add", "mul", "multiply", "mean", "amax", "amin"])
@each_dtype_of("put_along_axis")
def test_put_along_axis(rng, agree, dtype, reduce, include_self, broadcast) -> None:
    for shape in full_shapes(rng, least=1, each=2):
        arguments = broadcast_arguments if broadcast else exact_arguments
        axis, index, values_shape = arguments(rng, shape)
        x, values = small(rng, dtype, shape), small(rng, dtype, values_shape)
        theirs = paddle.put_along_axis(
            *map(to_paddle, (x, index, values)), axis, reduce, include_self, broadcast
        )
        attrs = {"axis": axis, "reduce": reduce, "include_self": include_self}
        given = [x, index, values]
        agree("put_along_axis", given, theirs, assert_same, twin=True, broadcast=broadcast, **attrs)


# The rest of the family.


@pytest.mark.parametrize("dtype", LARGE)
def test_additions_to_rows_and_places(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x, axis = small(rng, dtype, shape), any_axis(rng, len(shape))
        index = np.append(some_rows(rng, shape[axis]), 0)
        value = small(rng, dtype, replaced(shape, axis, len(index)))
        theirs = paddle.index_add(to_paddle(x), to_paddle(index), axis, to_paddle(value))
        attrs = {"axis": axis, "value": inlay.to_tensor(value)}
        agree("index_add", [x, index], theirs, assert_same, twin=True, **attrs)

        depth = int(rng.integers(1, len(shape) + 1))
        count = int(rng.integers(1, 9))
        index = np.stack([rng.integers(0, n, count) for n in shape[:depth]], axis=-1)
        value = small(rng, dtype, (count, *shape[depth:]))
        theirs = paddle.scatter_nd_add(*map(to_paddle, (x, index, value)))
        agree("scatter_nd_add", [x, index, value], theirs, assert_same)
        theirs = paddle.scatter_nd(to_paddle(index), to_paddle(value), list(shape))
        agree("scatter_nd", [index, value], theirs, assert_same, shape=list(shape))


@each_dtype_of("index_fill")
def test_rows(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x, axis = bits(rng, dtype, shape), any_axis(rng, len(shape))
        index = some_rows(rng, shape[axis])
        number = numbers(rng, dtype, ())
        theirs = paddle.index_fill(to_paddle(x), to_paddle(index), axis, to_paddle(number))
        attrs = {"axis": axis, "value": inlay.to_tensor(number)}
        agree("index_fill", [x, index], theirs, assert_same, twin=True, **attrs)
        if dtype in TAKES["index_select"]:
            theirs = paddle.index_select(to_paddle(x), to_paddle(index), axis)
            agree("index_select", [x, index], theirs, axis=axis)
        row = int(rng.integers(-shape[axis], shape[axis]))
        values = bits(rng, dtype, replaced(shape, axis))
        theirs = paddle.select_scatter(to_paddle(x), to_paddle(values), axis, row)
        agree("select_scatter", [x, values], theirs, twin=True, axis=axis, index=row)


@each_dtype_of("tril")
def test_triangles_and_where(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=2):
        x, y = (bits(rng, dtype, shape) for _ in range(2))
        diagonal = int(rng.integers(-9, 10))
        agree("tril", [x], paddle.tril(to_paddle(x), diagonal), diagonal=diagonal)
        agree("triu", [x], paddle.triu(to_paddle(x), diagonal), diagonal=diagonal)
        if dtype in TAKES["where"]:
            condition = rng.random(shape) < 0.5
            theirs = paddle.where(*map(to_paddle, (condition, x, y)))
            agree("where", [condition, x, y], theirs)
