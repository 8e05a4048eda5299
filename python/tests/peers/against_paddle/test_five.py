"""The five main operations against Paddle."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from arguments import assert_bits, bits, numbers, thinner, without_negative_zeros
from cases import assert_same

import inlay

from .support import each_dtype_of, full_shapes, shared, some_rows, to_numpy, to_paddle


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("half", ["tril_indices", "triu_indices"])
def test_triangle_indices(rng, half, dtype) -> None:
    for _ in range(60):
        rows, columns = rng.integers(1, 9, 2).tolist()
        offset = int(rng.integers(-11, 12))
        theirs = getattr(paddle, half)(rows, columns, offset, dtype)
        assert_bits(getattr(inlay, half)(rows, columns, offset, dtype).numpy(), to_numpy(theirs))


@each_dtype_of("slice_scatter")
def test_slice_scatter(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1, each=4):
        x = bits(rng, dtype, shape)
        axes = rng.permutation(x.ndim)[: rng.integers(1, x.ndim + 1)].tolist()
        key = [slice(None)] * x.ndim
        for axis in axes:
            start, stop = rng.integers(-shape[axis] - 3, shape[axis] + 4, 2).tolist()
            key[axis] = slice(start, stop, int(rng.choice([-3, -2, -1, 1, 2, 3])))
        taken = x[tuple(key)].shape
        if 0 in taken:
            continue  # see the test of empty slices
        y = bits(rng, dtype, taken)
        starts, stops = [key[axis].start for axis in axes], [key[axis].stop for axis in axes]
        steps = [key[axis].step for axis in axes]
        theirs = paddle.slice_scatter(to_paddle(x), to_paddle(y), axes, starts, stops, steps)
        attrs = {"axis": axes, "start": starts, "stop": stops, "step": steps}
        agree("slice_scatter", [x, y], theirs, twin=True, **attrs)


@each_dtype_of("diagonal_scatter")
def test_diagonals(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=2):
        x = bits(rng, dtype, shape)
        axis1, axis2 = rng.permutation(x.ndim)[:2].tolist()
        # For a diagonal outside of the matrix, Paddle expects a negative length. This has a
        # separate test.
        offset = int(rng.integers(-shape[axis1], shape[axis2] + 1))
        attrs = {"offset": offset, "axis1": axis1 - x.ndim, "axis2": axis2}
        theirs = paddle.diagonal(to_paddle(x), offset, axis1, axis2)
        agree("diagonal", [x], theirs, **attrs)
        src = bits(rng, dtype, tuple(theirs.shape))
        theirs = paddle.diagonal_scatter(to_paddle(x), to_paddle(src), offset, axis1, axis2)
        agree("diagonal_scatter", [x, src], theirs, twin=True, **attrs)


@each_dtype_of("masked_scatter")
def test_masked_scatter(rng, agree, dtype) -> None:
    for shape in full_shapes(rng):
        x = bits(rng, dtype, shape)
        mask = np.array(rng.random(thinner(rng, shape)) < rng.choice([0.0, 0.3, 0.7, 1.0]))
        count = np.count_nonzero(np.broadcast_to(mask, shape))
        # The source is never empty. An empty source has a separate test.
        source = bits(rng, dtype, (max(count, 1) + int(rng.integers(0, 3)),))
        theirs = paddle.masked_scatter(*map(to_paddle, (x, mask, source)))
        agree("masked_scatter", [x, mask, source], theirs, twin=True)


@each_dtype_of("masked_fill")
def test_masked_fill_and_select(rng, agree, dtype) -> None:
    for shape in full_shapes(rng):
        x, number = bits(rng, dtype, shape), numbers(rng, dtype, ())
        mask = np.array(rng.random(thinner(rng, shape)) < rng.choice([0.0, 0.3, 0.7, 1.0]))
        theirs = paddle.masked_fill(*map(to_paddle, (x, mask, number)))
        agree("masked_fill", [x, mask, number], theirs, assert_same, twin=True)
        theirs = paddle.masked_select(to_paddle(x), to_paddle(mask))
        agree("masked_select", [x, mask], theirs)


@each_dtype_of("scatter")
def test_scatter(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x, index = without_negative_zeros(numbers(rng, dtype, shape)), some_rows(rng, shape[0])
        further = int(rng.integers(0, 3))
        updates = numbers(rng, dtype, (len(index) + further, *shape[1:]))
        updates = without_negative_zeros(updates)  # see the test of -0.0
        for overwrite in (True, False):
            theirs = paddle.scatter(*map(to_paddle, (x, index, updates)), overwrite=overwrite)
            given = [x, index, updates]
            agree("scatter", given, theirs, assert_same, twin=True, overwrite=overwrite)
        index = np.array(rng.integers(-shape[0], shape[0]))
        updates = numbers(rng, dtype, shape[1:])
        theirs = paddle.scatter(*map(to_paddle, (x, index, updates)))
        agree("scatter", [x, index, updates], theirs, assert_same, twin=True)


def test_scatter_sums_the_updates_alone_by_default_in_both() -> None:
    # Paddle sets the rows that the index names to zero, and adds. This is include_self=False.
    x, index, updates = to_paddle([100.0, 100.0]), to_paddle([0, 0]), to_paddle([1.0, 2.0])
    theirs = paddle.scatter(x, index, updates, overwrite=False)
    assert theirs.tolist() == [3, 100]
    ours = inlay.scatter(*shared(x, index, updates), overwrite=False)
    assert ours.tolist() == [3, 100]
