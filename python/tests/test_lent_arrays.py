"""Small calls on NumPy arrays borrow their memory for the time of the call."""

import gc
import sys

import numpy as np
import pytest

import inlay

CALLS = {
    "scatter": lambda x, i, u: inlay.scatter(x, i, u),
    "scatter_sum": lambda x, i, u: inlay.scatter(x, i, u, False),
    "slice_scatter": lambda x, i, u: inlay.slice_scatter(x, u, 0, 0, 2),
    "index_select": lambda x, i, u: inlay.index_select(x, i),
    "masked_scatter": lambda x, i, u: inlay.masked_scatter(x, x > 0, x),
    "add": lambda x, i, u: inlay.add(x, x),
    "cast": lambda x, i, u: inlay.cast(x, "float32"),
}


def arguments():
    return np.ones((4, 3), np.float32), np.array([1, 3]), np.full((2, 3), 7, np.float32)


@pytest.mark.parametrize("name", CALLS)
def test_nothing_refers_to_the_arguments_after_a_call(name):
    args = arguments()
    before = [sys.getrefcount(array) for array in args]
    result = CALLS[name](*args)
    gc.collect()
    assert [sys.getrefcount(array) for array in args] == before
    assert not any(np.shares_memory(result, array) for array in args)


@pytest.mark.parametrize("name", CALLS)
def test_a_result_does_not_change_with_the_arguments(name):
    args = arguments()
    result = CALLS[name](*args)
    copy = result.copy()
    args[0][:], args[2][:] = -1, -2
    assert np.array_equal(result, copy)


def test_memory_of_an_earlier_call_is_not_read():
    """The kept tensors get the memory, shape and dtype of each call."""
    for n in range(1, 40):
        x = np.arange(n * 3, dtype=[np.float32, np.int64, np.uint8][n % 3]).reshape(n, 3)
        index = np.arange(n)[::-1].astype([np.int64, np.int32][n % 2])
        assert np.array_equal(inlay.index_select(x, index), x[::-1])


def test_a_failed_call_gives_the_arrays_back():
    x, index, updates = arguments()
    before = sys.getrefcount(x)
    for _ in range(20):
        with pytest.raises(IndexError):
            inlay.scatter(x, index + 9, updates)
    assert sys.getrefcount(x) == before
    assert inlay.scatter(x, index, updates)[1, 0] == 7


def test_an_argument_that_runs_code_makes_the_call_keep_the_arrays():
    """The memory of `x` is replaced while another argument is converted."""
    x = np.ones((4, 3), np.float32)

    class Resizing:
        def __array__(self, dtype=None, copy=None):
            with pytest.raises(ValueError, match="cannot resize"):
                x.resize((400, 3))
            return np.full((2, 3), 7, np.float32)

    result = inlay.scatter(x, np.array([1, 3]), Resizing())
    assert result.tolist() == [[1, 1, 1], [7, 7, 7], [1, 1, 1], [7, 7, 7]]
