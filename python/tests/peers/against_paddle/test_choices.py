"""Cases in which Inlay differs from Paddle by design."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import paddle
import pytest
from arguments import assert_bits
from naive import INTEGERS

import inlay

from .support import KNOWN, TAKES, shared, to_numpy, to_paddle


def test_a_sum_of_negative_zeros_keeps_its_sign() -> None:
    # Paddle's scatter starts with 0.0, and 0.0 + -0.0 is 0.0. Its put_along_axis starts with the
    # first update, like Inlay.
    x, index, zero = to_paddle([1.0]), to_paddle([0]), to_paddle([-0.0])
    theirs = paddle.scatter(x, index, zero, overwrite=False)
    assert math.copysign(1, theirs.item()) == 1
    theirs = paddle.put_along_axis(x, index, zero, 0, "add", include_self=False)
    assert math.copysign(1, theirs.item()) == -1
    for ours in (
        inlay.scatter(*shared(x, index, zero), overwrite=False),
        inlay.put_along_axis(*shared(x, index, zero), 0, "add", include_self=False),
    ):
        assert math.copysign(1, ours.item()) == -1


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_among_equal_zeros_the_first_stays_in_both(reduce) -> None:
    index = to_paddle([0])
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        x, value = to_paddle([first]), to_paddle([second])
        theirs = paddle.put_along_axis(x, index, value, 0, reduce)
        ours = inlay.put_along_axis(*shared(x, index, value), 0, reduce)
        assert math.copysign(1, theirs.item()) == math.copysign(1, first)
        assert math.copysign(1, ours.item()) == math.copysign(1, first)


def test_x_is_stretched_to_the_mask_in_masked_scatter_only() -> None:
    # Paddle broadcasts x to a larger mask, like PyTorch. By choice, masked_fill and masked_select
    # broadcast only the mask.
    x, mask, source = paddle.zeros([3]), paddle.ones([2, 3], "bool"), paddle.arange(6.0)
    assert paddle.masked_scatter(x, mask, source).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert paddle.masked_fill(x, mask, 1.0).tolist() == [[1] * 3] * 2
    assert paddle.masked_select(x, mask).tolist() == [0] * 6
    ours, our_mask, our_source = shared(x, mask, source)
    expected = [[0, 1, 2], [3, 4, 5]]
    assert inlay.masked_scatter(ours, our_mask, our_source).tolist() == expected
    for call in (
        lambda: inlay.masked_scatter_(ours, our_mask, our_source),
        lambda: inlay.masked_fill(ours, our_mask, 1.0),
        lambda: inlay.masked_select(ours, our_mask),
    ):
        with pytest.raises(ValueError, match=r"mask has shape \[2, 3\]"):
            call()


def test_values_are_not_stretched_to_the_slice() -> None:
    # Paddle broadcasts the values that are written into a slice, like an assignment.
    x, one, row = paddle.zeros([2, 3]), paddle.ones([1, 1]), paddle.ones([3])
    for values in (one, row):
        assert paddle.slice_scatter(x, values, [0], [0], [2], [1]).tolist() == [[1] * 3] * 2
        with pytest.raises(ValueError, match="slice_scatter: y has shape"):
            inlay.slice_scatter(*shared(x, values), 0, 0, 2)


def test_numbers_that_the_dtype_can_not_hold_are_refused() -> None:
    # Paddle truncates fractions and wraps numbers that are out of range, without a warning.
    x, mask, index = paddle.zeros([2], "int8"), to_paddle([True, False]), to_paddle([0])
    assert paddle.masked_fill(x, mask, 1.5).tolist() == [1, 0]
    assert paddle.masked_fill(x, mask, 300).tolist() == [44, 0]
    assert paddle.index_fill(x, index, 0, 1.5).tolist() == [1, 0]
    ours, our_mask, our_index = shared(x, mask, index)
    for number in (1.5, 300):
        with pytest.raises((TypeError, ValueError), match="masked_fill: value"):
            inlay.masked_fill(ours, our_mask, number)
        with pytest.raises((TypeError, ValueError), match="index_fill: value"):
            inlay.index_fill(ours, our_index, 0, number)


@pytest.mark.parametrize("dtype", INTEGERS[:4])
def test_every_integer_dtype_is_an_index(dtype) -> None:
    # Paddle accepts only int32 and int64. It interprets a uint16 array from NumPy as bfloat16.
    index = to_paddle([1], dtype)
    x, one = paddle.zeros([3]), paddle.ones([1])
    for call in (
        lambda: paddle.scatter(x, index, one),
        lambda: paddle.put_along_axis(x, index, one, 0),
        lambda: paddle.index_select(x, index, 0),
    ):
        with pytest.raises((ValueError, TypeError), match=r"int32.*int64"):
            call()
    ours, our_one = shared(x, one)
    our_index = inlay.ones([1], dtype)
    assert inlay.scatter(ours, our_index, our_one).tolist() == [0, 1, 0]
    assert inlay.put_along_axis(ours, our_index, our_one, 0).tolist() == [0, 1, 0]
    assert inlay.index_select(ours, our_index).tolist() == [0]


def test_dtypes_of_results() -> None:
    # Paddle sums uint8 in uint8, which wraps, and divides integers in float32.
    x, y = paddle.ones([300], "uint8"), to_paddle([1])
    assert (paddle.sum(x).dtype, paddle.sum(x).item()) == (paddle.uint8, 44)
    assert (y / y).dtype == paddle.float32
    ours, our_y = shared(x, y)
    assert (inlay.sum(ours).dtype, inlay.sum(ours).item()) == (inlay.uint64, 300)
    assert inlay.divide(our_y, our_y).dtype == "float64"


def refusals(x: paddle.Tensor) -> dict[str, Callable[[], Any]]:
    index, mask = to_paddle([1, 0]), to_paddle([[True, False], [False, True]])
    pairs = to_paddle([[1, 0], [1, 0]])
    return {
        "slice_scatter": lambda: paddle.slice_scatter(x, x, [0], [0], [2], [1]),
        "select_scatter": lambda: paddle.select_scatter(x, x[0], 0, 1),
        "diagonal_scatter": lambda: paddle.diagonal_scatter(x, x[0]),
        "masked_scatter": lambda: paddle.masked_scatter(x, mask, x),
        "masked_fill": lambda: paddle.masked_fill(x, mask, x[0, 0]),
        "masked_select": lambda: paddle.masked_select(x, mask),
        "index_fill": lambda: paddle.index_fill(x, index, 0, x[0, 0]),
        "index_select": lambda: paddle.index_select(x, index, 0),
        "scatter": lambda: paddle.scatter(x, index, x),
        "put_along_axis": lambda: paddle.put_along_axis(x, pairs, x, 1),
        "take_along_axis": lambda: paddle.take_along_axis(x, pairs, 1),
        "where": lambda: paddle.where(mask, x, x),
        "tril": lambda: paddle.tril(x),
    }


@pytest.mark.parametrize("dtype", KNOWN)
def test_every_operation_takes_every_dtype(dtype) -> None:
    # Paddle lacks many operations for these dtypes on the CPU.
    x = to_paddle([[1, 0], [0, 1]], dtype)
    for name, call in refusals(x).items():
        if dtype in TAKES[name]:
            call()
        else:
            with pytest.raises(RuntimeError, match="not registered"):
                call()
    ours = inlay.from_dlpack(x)
    row, mask, zero = ours[1], [[True, False], [False, True]], inlay.zeros([], dtype)
    pairs = [[1, 0], [1, 0]]
    for result, expected in (
        (inlay.slice_scatter(ours, ours[::-1]), [[0, 1], [1, 0]]),
        (inlay.select_scatter(ours, row, 0, 0), [[0, 1], [0, 1]]),
        (inlay.diagonal_scatter(ours, row), [[0, 0], [0, 1]]),
        (inlay.masked_scatter(ours, mask, row), [[0, 0], [0, 1]]),
        (inlay.masked_fill(ours, mask, zero), [[0, 0], [0, 0]]),
        (inlay.masked_select(ours, mask), [1, 1]),
        (inlay.index_fill(ours, [0], 0, zero), [[0, 0], [0, 1]]),
        (inlay.index_select(ours, [1, 0]), [[0, 1], [1, 0]]),
        (inlay.scatter(ours, [1, 0], ours), [[0, 1], [1, 0]]),
        (inlay.put_along_axis(ours, pairs, ours, 1), [[0, 1], [1, 0]]),
        (inlay.take_along_axis(ours, pairs, 1), [[0, 1], [1, 0]]),
        (inlay.where(mask, ours, ours), [[1, 0], [0, 1]]),
        (inlay.tril(ours), [[1, 0], [0, 1]]),
    ):
        assert result.dtype == dtype
        assert result.tolist() == expected


def test_zero_size_dimensions() -> None:
    x, rows, none = paddle.zeros([3, 0]), paddle.zeros([1, 0]), paddle.zeros([0])
    index, no_index = to_paddle([1]), to_paddle([], "int64")
    line, mask = paddle.zeros([3]), paddle.zeros([3, 0], "bool")
    for theirs, ours in (
        (paddle.scatter(x, index, rows), inlay.scatter(*shared(x, index, rows))),
        (paddle.scatter(line, no_index, none), inlay.scatter(*shared(line, no_index, none))),
        (
            paddle.put_along_axis(line, no_index, none, 0),
            inlay.put_along_axis(*shared(line, no_index, none), 0),
        ),
        (
            paddle.take_along_axis(line, no_index, 0),
            inlay.take_along_axis(*shared(line, no_index), 0),
        ),
        (paddle.index_select(line, no_index, 0), inlay.index_select(*shared(line, no_index))),
        (
            paddle.index_fill(line, no_index, 0, 1.0),
            inlay.index_fill(*shared(line, no_index), 0, 1.0),
        ),
        (paddle.masked_scatter(x, mask, none), inlay.masked_scatter(*shared(x, mask, none))),
        (paddle.select_scatter(x, none, 0, 1), inlay.select_scatter(*shared(x, none), 0, 1)),
        (
            paddle.slice_scatter(x, rows, [0], [0], [1], [1]),
            inlay.slice_scatter(*shared(x, rows), 0, 0, 1),
        ),
    ):
        assert_bits(ours.numpy(), to_numpy(theirs))


def test_rank_0() -> None:
    # Both need an axis to write along, and both accept a mask of rank 0.
    x, index, one = paddle.zeros([]), to_paddle([0]), paddle.ones([1])
    with pytest.raises(ValueError, match="shape"):
        paddle.scatter(x, index, one)
    with pytest.raises(ValueError, match="scatter: x"):
        inlay.scatter(*shared(x, index, one))
    mask, source = to_paddle(True), to_paddle([5.0, 6.0])
    assert paddle.masked_scatter(x, mask, source).item() == 5
    assert inlay.masked_scatter(*shared(x, mask, source)).item() == 5
