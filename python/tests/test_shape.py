"""`Tensor.shape`: a tuple that also equals a list."""

from __future__ import annotations

import operator
import pickle

import numpy as np
import pytest

import inlay
from inlay import Shape, static

SHAPE = inlay.zeros([2, 3, 4]).shape


def test_it_is_a_tuple_of_integers() -> None:
    assert type(SHAPE) is Shape
    assert isinstance(SHAPE, tuple)
    assert all(type(size) is int for size in SHAPE)
    assert repr(SHAPE) == "(2, 3, 4)"
    rows, *rest = SHAPE
    assert (rows, rest) == (2, [3, 4])
    assert SHAPE[0] == 2
    assert SHAPE[-1] == 4
    assert np.zeros(SHAPE).shape == SHAPE
    assert inlay.ones(SHAPE).shape == SHAPE
    assert inlay.to_tensor(1.0).shape == ()
    with pytest.raises(TypeError):
        SHAPE[0] = 5
    with pytest.raises(IndexError):
        SHAPE[3]


def test_it_equals_lists_and_tuples_of_the_same_sizes() -> None:
    for same in ([2, 3, 4], (2, 3, 4), Shape([2, 3, 4])):
        for x, y in ((SHAPE, same), (same, SHAPE)):
            assert operator.eq(x, y) is True
            assert operator.ne(x, y) is False
    for other in ([2, 3], [2, 3, 5], (2, 3), None, "234", 24, {2, 3, 4}):
        for x, y in ((SHAPE, other), (other, SHAPE)):
            assert operator.eq(x, y) is False
            assert operator.ne(x, y) is True


def test_it_is_a_key_as_the_equal_tuple_is() -> None:
    assert {(2, 3, 4): "found"}[SHAPE] == "found"
    assert len({SHAPE, (2, 3, 4), inlay.ones(SHAPE).shape}) == 1


def test_parts_and_sums_are_shapes() -> None:
    for made, sizes in (
        (SHAPE[1:], [3, 4]),
        (SHAPE[:0], []),
        *((operator.add(SHAPE, end), [2, 3, 4, 5]) for end in ([5], (5,))),
        *((operator.add(front, SHAPE), [5, 2, 3, 4]) for front in ([5], (5,))),
        (SHAPE[1:] + SHAPE[:1], [3, 4, 2]),
        (SHAPE[1:] * 2, [3, 4, 3, 4]),
        (2 * SHAPE[1:], [3, 4, 3, 4]),
        (pickle.loads(pickle.dumps(SHAPE)), [2, 3, 4]),
    ):
        assert type(made) is Shape
        assert made == sizes
    with pytest.raises(TypeError):
        SHAPE + 5
    with pytest.raises(TypeError):
        "a" + SHAPE
    assert (SHAPE + np.array(1)).tolist() == [3, 4, 5]


def test_an_open_size_is_minus_one() -> None:
    with static.program_guard(static.Program()):
        assert static.data("x", [None, 2]).shape == (-1, 2)
