"""Cases in which Paddle is wrong."""

from __future__ import annotations

import math
import signal
import subprocess
import sys

import numpy as np
import paddle
import pytest
from arguments import assert_bits

import inlay

from .support import shared, to_paddle


def in_a_larger_array(values: list[float]) -> tuple[np.ndarray, paddle.Tensor, inlay.Tensor]:
    """An array of zeros, and its middle part with the values, as a Paddle and an Inlay tensor."""
    array = np.zeros(len(values) + 8, "f4")
    array[4:-4] = values
    ours = inlay.from_numpy(array[4:-4])
    theirs = paddle.from_dlpack(ours)
    assert theirs.data_ptr() == ours.data_ptr() == array[4:].__array_interface__["data"][0]
    return array, theirs, ours


def test_masked_scatter_does_not_read_past_a_short_source() -> None:
    # Paddle compares the number of true places minus one with the size of the source. So it accepts
    # a source that is one element too short, and reads past its memory.
    array, source, our_source = in_a_larger_array([1.0, 2.0, 3.0])
    array[-4] = 777
    x, mask = paddle.zeros([4]), to_paddle([True] * 4)
    assert paddle.masked_scatter(x, mask, source).tolist() == [1, 2, 3, 777]
    with pytest.raises(ValueError, match="source has 3 elements, mask selects 4"):
        inlay.masked_scatter(*shared(x, mask), our_source)
    # Both reject a source that is two elements too short.
    with pytest.raises(AssertionError, match="mask true nums is 3, value size is 2"):
        paddle.masked_scatter(x, mask, to_paddle([1.0, 2.0]))


@pytest.mark.parametrize("bad", [5, -6])
@pytest.mark.parametrize("name", ["index_fill_", "index_put_", "setitem"])
def test_nothing_is_written_outside_of_x(name, bad) -> None:
    # Paddle does not check the index of these operations, and writes to any address.
    array, x, ours = in_a_larger_array([0.0] * 4)
    index, two = to_paddle([0, bad]), to_paddle([9.0, 9.0])
    their_calls = {
        "index_fill_": lambda: paddle.index_fill_(x, index, 0, 9.0),
        "index_put_": lambda: paddle.index_put_(x, (index,), two),
        "setitem": lambda: x.__setitem__(index, two),
    }
    their_calls[name]()
    assert array.nonzero()[0].tolist() == sorted([4, 4 + bad if bad > 0 else 8 + bad])
    array[:] = 0
    our_index, our_two = shared(index, two)
    our_calls = {
        "index_fill_": lambda: inlay.index_fill_(ours, our_index, 0, 9.0),
        "index_put_": lambda: inlay.scatter_(ours, our_index, our_two),
        "setitem": lambda: ours.__setitem__(our_index, our_two),
    }
    with pytest.raises(IndexError, match=rf"index\[1\] is {bad}, .*axis 0 of size 4"):
        our_calls[name]()
    assert not array.any()


def test_nothing_is_read_outside_of_x() -> None:
    array, x, ours = in_a_larger_array([1.0, 2.0, 3.0, 4.0])
    array[-3] = 777
    assert x[to_paddle([0, 5])].tolist() == [1, 777]
    with pytest.raises(IndexError, match=r"index\[1\] is 5"):
        ours[[0, 5]]


CRASHES = {
    # Even if the mask selects nothing, Paddle reads the first element of an empty source.
    "empty source": (
        'paddle.masked_scatter(paddle.zeros([3]), paddle.zeros([3], "bool"), paddle.zeros([0]))',
        lambda: inlay.masked_scatter(inlay.zeros([3]), [False] * 3, inlay.zeros([0])),
        [0, 0, 0],
    ),
    # Paddle computes the position in a matrix from the number of matrices, which is 0.
    "no matrices": (
        "paddle.diagonal_scatter(paddle.zeros([2, 0, 3, 3]), paddle.zeros([2, 0, 3]), 0, 2, 3)",
        lambda: inlay.diagonal_scatter(inlay.zeros([2, 0, 3, 3]), inlay.zeros([2, 0, 3]), 0, 2, 3),
        [[], []],
    ),
    # Paddle does not count a negative axis from the end, but reads before the beginning.
    "negative axis": (
        "paddle.slice_scatter(paddle.zeros([1, 2]), paddle.ones([1, 1]), [-1], [0], [1], [1])",
        lambda: inlay.slice_scatter(inlay.zeros([1, 2]), inlay.ones([1, 1]), -1, 0, 1),
        [[1, 0]],
    ),
}


@pytest.mark.parametrize("name", CRASHES)
def test_nothing_crashes(name) -> None:
    theirs, ours, expected = CRASHES[name]
    code = "import resource, paddle; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"
    command = [sys.executable, "-c", f"{code}; {theirs}"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == -signal.SIGSEGV, process.stderr
    assert ours().tolist() == expected


def test_values_of_another_dtype_are_refused() -> None:
    # Paddle's diagonal_scatter interprets the bits of other dtypes as x's dtype, and reads past the
    # memory if the elements are smaller. slice_scatter and select_scatter cast. The others raise.
    x, integers = paddle.zeros([2, 2]), to_paddle([1, 2], "int32")
    theirs = paddle.diagonal_scatter(x, integers)
    as_floats = np.array([1, 2], "i4").view("f4")
    assert_bits(np.diagonal(theirs.numpy()).copy(), as_floats)
    row, matrix = integers.unsqueeze(0), paddle.ones([2, 2], "int32")
    assert paddle.slice_scatter(x, row, [0], [0], [1], [1]).tolist() == [[1, 2], [0, 0]]
    assert paddle.select_scatter(x, integers, 0, 0).tolist() == [[1, 2], [0, 0]]
    mask, index = paddle.ones([2, 2], "bool"), to_paddle([0, 1])
    for refused in (
        lambda: paddle.masked_scatter(x, mask, matrix),
        lambda: paddle.scatter(x, index, matrix),
        lambda: paddle.put_along_axis(x, index.unsqueeze(0), matrix[:1], 0),
    ):
        with pytest.raises((AssertionError, ValueError), match="type"):
            refused()
    ours, our_integers, our_row, our_matrix, our_mask, our_index = shared(
        x, integers, row, matrix, mask, index
    )
    for call in (
        lambda: inlay.diagonal_scatter(ours, our_integers),
        lambda: inlay.slice_scatter(ours, our_row, stop=1),
        lambda: inlay.select_scatter(ours, our_integers, 0, 0),
        lambda: inlay.masked_scatter(ours, our_mask, our_matrix),
        lambda: inlay.scatter(ours, our_index, our_matrix),
        lambda: inlay.put_along_axis(ours, our_matrix, our_matrix, 0),
    ):
        with pytest.raises(TypeError, match=r"int32.*float32"):
            call()


def test_nan_is_the_maximum_and_the_minimum() -> None:
    # Paddle compares, and every comparison with NaN is false, so NaN is lost unless x has it.
    index = to_paddle([0, 0])
    for old, updates, theirs in (
        (0.0, [math.nan, 1.0], {"amax": 1.0, "amin": 0.0}),
        (0.0, [1.0, math.nan], {"amax": 1.0, "amin": 0.0}),
        (math.nan, [1.0, 2.0], {"amax": math.nan, "amin": math.nan}),
    ):
        for reduce, expected in theirs.items():
            x, values = to_paddle([old]), to_paddle(updates)
            args = (x, index, values, 0, reduce, True, False)
            np.testing.assert_equal(paddle.put_along_axis(*args).item(), expected)
            ours = inlay.put_along_axis(*shared(x, index, values), 0, reduce, broadcast=False)
            assert math.isnan(ours.item())


@pytest.mark.parametrize(
    ("dtype", "number", "wrapped"), [("uint8", 100, 14), ("int16", 20000, -1846)]
)
def test_integer_means_do_not_overflow(dtype, number, wrapped) -> None:
    # Paddle wraps the sum of the three before it divides. It has no int8 here.
    x, three = to_paddle([0], dtype), to_paddle([number] * 3, dtype)
    index = to_paddle([0, 0, 0])
    args = {"include_self": False, "broadcast": False}
    assert paddle.put_along_axis(x, index, three, 0, "mean", **args).item() == wrapped
    assert inlay.put_along_axis(*shared(x, index, three), 0, "mean", **args).item() == number


def test_integer_means_round_down_in_both() -> None:
    x, index, values = to_paddle([0]), to_paddle([0, 0]), to_paddle([-1, -2])
    args = {"include_self": False, "broadcast": False}
    assert paddle.put_along_axis(x, index, values, 0, "mean", **args).item() == -2
    assert inlay.put_along_axis(*shared(x, index, values), 0, "mean", **args).item() == -2


def test_a_long_index_is_stretched_too() -> None:
    # If the index is longer than x along the axis, Paddle silently does not broadcast, and writes
    # only to the first row.
    x, index, values = paddle.zeros([2, 3]), to_paddle([[0, 1, 2, 0]]), to_paddle([[1.0, 2, 3, 4]])
    theirs = paddle.put_along_axis(x, index, values, 1, "add")
    assert theirs.tolist() == [[5, 2, 3], [0, 0, 0]]
    ours = inlay.put_along_axis(*shared(x, index, values), 1, "add")
    assert ours.tolist() == [[5, 2, 3], [5, 2, 3]]
    x = np.zeros((2, 3))
    np.put_along_axis(x, np.array([[0, 1, 2, 0]]), np.array([[1.0, 2, 3, 4]]), 1)
    assert x.tolist() == [[4, 2, 3], [4, 2, 3]]


def test_a_matrix_without_rows_has_no_triangle() -> None:
    # Paddle counts a row that is not there.
    assert paddle.tril_indices(0, 3, 5).tolist() == [[0, 0, 0], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="PreconditionNotMet"):
        paddle.triu_indices(0, 3, 5)
    assert inlay.tril_indices(0, 3, 5).shape == [2, 0]
    assert inlay.triu_indices(0, 3, 5).shape == [2, 0]


def test_offsets_past_the_edge() -> None:
    # In Paddle, such a diagonal has a negative length, so that no source fits. Its triangles accept
    # only offsets of 32 bits and the dtypes int32 and int64.
    x, none = paddle.zeros([2, 3]), paddle.zeros([0])
    for offset, length in ((7, -4), (-7, -5)):
        with pytest.raises(AssertionError, match=rf"\[{length}\]"):
            paddle.diagonal_scatter(x, none, offset)
        assert inlay.diagonal_scatter(*shared(x, none), offset).tolist() == [[0] * 3] * 2
    for offset in (2**63 - 1, -(2**63)):
        with pytest.raises((IndexError, ValueError)):
            paddle.tril_indices(2, 2, offset)
        assert inlay.tril_indices(2, 2, offset).shape == [2, 4 if offset > 0 else 0]
    with pytest.raises(RuntimeError, match="not registered"):
        paddle.tril_indices(2, 2, 0, "int8")
    assert inlay.tril_indices(2, 2, 0, "int8").tolist() == [[0, 1, 1], [0, 0, 1]]


def test_an_empty_slice_takes_an_empty_source() -> None:
    # In Paddle, the empty slice has one element, so an empty source does not broadcast to it.
    x, none = paddle.zeros([4]), paddle.zeros([0])
    with pytest.raises(ValueError, match="expand"):
        paddle.slice_scatter(x, none, [0], [2], [2], [1])
    assert inlay.slice_scatter(*shared(x, none), 0, 2, 2).tolist() == [0] * 4


def test_a_row_out_of_range_is_refused() -> None:
    # For an empty slice, Paddle writes nothing and raises no error.
    x, row = paddle.zeros([2, 3]), paddle.ones([3])
    assert paddle.select_scatter(x, row, 0, 5).tolist() == [[0] * 3] * 2
    with pytest.raises(IndexError, match=r"index is 5, .*axis 0 of size 2"):
        inlay.select_scatter(*shared(x, row), 0, 5)


def test_a_call_that_fails_has_written_nothing() -> None:
    # Paddle checks each index just before it is used, so the first two writes are done when the
    # third one fails. Only index_add_ checks all of them first.
    bad, updates = to_paddle([0, 1, 7]), to_paddle([5.0, 6.0, 7.0])
    for their_call, our_call, left in (
        (
            lambda x: paddle.scatter_(x, bad, updates),
            lambda x: inlay.scatter_(x, *shared(bad, updates)),
            [5, 6, 1],
        ),
        (
            lambda x: paddle.scatter_(x, bad, updates, overwrite=False),
            lambda x: inlay.scatter_(x, *shared(bad, updates), False),
            [0, 0, 1],
        ),
        (
            lambda x: x.put_along_axis_(bad, updates, 0),
            lambda x: inlay.put_along_axis_(x, *shared(bad, updates), 0),
            [5, 6, 1],
        ),
        (
            lambda x: x.put_along_axis_(bad, updates, 0, "add"),
            lambda x: inlay.put_along_axis_(x, *shared(bad, updates), 0, "add"),
            [6, 7, 1],
        ),
    ):
        x = paddle.ones([3])
        with pytest.raises(IndexError):
            their_call(x)
        assert x.tolist() == left
        x = paddle.ones([3])
        with pytest.raises(IndexError, match=r"index\[2\] is 7"):
            our_call(inlay.from_dlpack(x))
        assert x.tolist() == [1, 1, 1]
    x = paddle.ones([3])
    with pytest.raises(ValueError, match="index_add"):
        paddle.index_add_(x, bad, 0, updates)
    assert x.tolist() == [1, 1, 1]


def test_overlapping_sources_are_read_as_if_copied() -> None:
    # Paddle's scatter_ reads elements that it has already overwritten.
    later = to_paddle([1, 2, 3, 4])
    x = paddle.arange(5.0)
    assert paddle.scatter_(x, later, x[:-1]).tolist() == [0, 0, 0, 0, 0]
    x = paddle.arange(5.0)
    inlay.scatter_(*shared(x, later, x[:-1]))
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_float16_is_summed_in_float32() -> None:
    # Paddle's index_add rounds after each step, so its sum stops growing when 1 is half a unit in
    # the last place. Its scatter and put_along_axis have no 16-bit floats.
    x, ones = paddle.zeros([1], "float16"), paddle.ones([4096], "float16")
    index = paddle.zeros([4096], "int64")
    assert paddle.index_add(x, index, 0, ones).item() == 2048
    assert inlay.scatter(*shared(x, index, ones), overwrite=False).item() == 4096
