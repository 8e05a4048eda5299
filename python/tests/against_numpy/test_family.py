"""The rest of the family against NumPy: rows, places, triangles, where, and the shapes of views."""

from __future__ import annotations

import math

import numpy as np
from arguments import (
    any_axis,
    any_index,
    assert_bits,
    bits,
    laid,
    numbers,
    python,
    replaced,
    shapes,
    stretched,
    thinner,
    without_negative_zeros,
)
from cases import assert_same

import inlay

from .support import each_dtype, reduced


@each_dtype
def test_additions_to_rows_and_places(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = without_negative_zeros(numbers(rng, dtype, shape)), any_axis(rng, len(shape))
        size = shape[axis]
        index = any_index(rng, (int(rng.integers(0, 2 * size + 2)) if size else 0,), size)
        value = without_negative_zeros(numbers(rng, dtype, replaced(shape, axis, len(index))))
        rows = index.astype("int64") % max(size, 1)
        expected = reduced(
            np.moveaxis(x, axis, 0), rows, np.moveaxis(value, axis, 0), "sum", include_self=True
        )
        expected = np.ascontiguousarray(np.moveaxis(expected, 0, axis))
        attrs = {"axis": axis, "value": laid(rng, value)}
        agree("index_add", [x, index], expected, assert_same, twin=True, **attrs)

        # Positions on the first axes: as rows of one index, and as one index per axis.
        depth = int(rng.integers(1, len(shape) + 1))
        if 0 in shape[:depth]:
            continue
        count = int(rng.integers(0, 9))
        names = np.stack([rng.integers(-n, n, count) for n in shape[:depth]], axis=-1)
        flat = np.ravel_multi_index(
            tuple(names.T % np.array(shape[:depth])[:, None]), shape[:depth]
        )
        value = without_negative_zeros(numbers(rng, dtype, (count, *shape[depth:])))
        matrix = x.reshape(math.prod(shape[:depth]), *shape[depth:])
        expected = reduced(matrix, flat, value, "sum", include_self=True).reshape(shape)
        agree("scatter_nd_add", [x, names, value], expected, assert_same)
        zeros = np.zeros_like(matrix)
        expected_nd = reduced(zeros, flat, value, "sum", include_self=True).reshape(shape)
        agree("scatter_nd", [names, value], expected_nd, assert_same, shape=list(shape))

        attrs = {"indices": tuple(names.T), "value": laid(rng, value)}
        agree("index_put", [x], expected, assert_same, twin=True, accumulate=True, **attrs)
        expected = x.copy()
        expected[tuple(names.T)] = value
        agree("index_put", [x], expected, twin=True, **attrs)


@each_dtype
def test_concat_and_stack(rng, dtype) -> None:
    for shape in shapes(rng):
        arrays = [bits(rng, dtype, shape) for _ in range(rng.integers(1, 4))]
        for name, numpy_says in (("stack", np.stack), ("concat", np.concatenate)):
            rank = len(shape) + (name == "stack")
            if rank == 0:
                continue
            axis = any_axis(rng, rank)
            if name == "concat":
                arrays = [bits(rng, dtype, replaced(shape, axis, n)) for n in range(len(arrays))]
            expected = numpy_says(arrays, axis)
            others = [laid(rng, array) for array in arrays]
            assert_bits(getattr(inlay, name)(others, axis), expected)
            tensors = [inlay.from_numpy(array) for array in others]
            assert_bits(getattr(inlay, name)(tensors, axis).numpy(), expected)


@each_dtype
def test_rows(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = bits(rng, dtype, shape), any_axis(rng, len(shape))
        size = shape[axis]
        index = any_index(rng, (int(rng.integers(0, 2 * size + 2)) if size else 0,), size)
        expected = np.take(x, index.astype("int64"), axis)
        agree("index_select", [x, index], expected, axis=axis)

        number = numbers(rng, dtype, ())
        expected = x.copy()
        np.moveaxis(expected, axis, 0)[index] = number
        agree("index_fill", [x, index], expected, assert_same, twin=True, axis=axis,
              value=python(number))  # fmt: skip

        if size:
            row = int(rng.integers(-size, size))
            values = stretched(rng, bits, dtype, replaced(shape, axis))
            expected = x.copy()
            np.moveaxis(expected, axis, 0)[row] = values
            agree("select_scatter", [x, values], expected, twin=True, axis=axis, index=row)


@each_dtype
def test_triangles(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=2):
        x = bits(rng, dtype, shape)
        for diagonal in (0, *rng.integers(-9, 10, 2).tolist()):
            for half in ("tril", "triu"):
                expected = getattr(np, half)(x, diagonal)
                agree(half, [x], expected, diagonal=diagonal)


@each_dtype
def test_where(rng, agree, dtype) -> None:
    for shape in shapes(rng):
        x, y = (bits(rng, dtype, thinner(rng, shape)) for _ in range(2))
        condition = rng.random(thinner(rng, shape)) < 0.5
        agree("where", [condition, x, y], np.where(condition, x, y))


@each_dtype
def test_shapes_of_views(rng, agree, dtype) -> None:
    for shape in shapes(rng):
        x = bits(rng, dtype, shape)
        perm = rng.permutation(x.ndim).tolist()
        agree("transpose", [x], np.ascontiguousarray(x.transpose(perm)).reshape(
            [shape[axis] for axis in perm]), perm=perm)  # fmt: skip

        thin = bits(rng, dtype, thinner(rng, shape))
        agree("broadcast_to", [thin], np.array(np.broadcast_to(thin, shape)), shape=list(shape))

        sizes = rng.permutation([*shape, 1, 1]).tolist()
        cut = int(rng.integers(0, len(sizes)))
        sizes[cut : cut + 2] = [math.prod(sizes[cut : cut + 2])]
        if x.size and rng.random() < 0.5:
            sizes[rng.integers(0, len(sizes))] = -1
        agree("reshape", [x], x.reshape(sizes), shape=sizes)
