"""Cases in which Inlay differs from NumPy by design, and cases that both reject."""

from __future__ import annotations

import numpy as np
import pytest
from naive import DTYPES

import inlay

from .support import each_dtype


def test_a_short_source_is_refused() -> None:
    # By choice: np.place repeats its values, which hides that the mask selects too many places.
    x, mask, source = np.zeros(5), np.ones(5, bool), np.array([1.0, 2.0])
    theirs = x.copy()
    np.place(theirs, mask, source)
    assert theirs.tolist() == [1, 2, 1, 2, 1]
    with pytest.raises(ValueError, match="source has 2 elements, mask selects 5"):
        inlay.masked_scatter_(x, mask, source)
    assert x.tolist() == [0] * 5
    # NumPy's boolean assignment rejects a source that is too short or too long. Inlay ignores the
    # rest of a longer one.
    for wrong in (source, np.arange(9.0)):
        with pytest.raises(ValueError, match="cannot assign"):
            theirs[mask] = wrong
    assert inlay.masked_scatter(x, mask, np.arange(9.0)).tolist() == [0, 1, 2, 3, 4]


def test_values_are_neither_stretched_nor_cast_without_being_told() -> None:
    # By choice: NumPy's assignment broadcasts and casts any value.
    x, row = np.zeros((2, 3), "i4"), np.array([1.9, 2.9, 3.9])
    theirs = x.copy()
    theirs[:] = row
    assert theirs.tolist() == [[1, 2, 3]] * 2
    with pytest.raises(ValueError, match=r"slice_scatter: y has shape \[3\]"):
        inlay.slice_scatter(x, row.astype("i4"))
    with pytest.raises(TypeError, match=r"slice_scatter: y .*float64.*int32"):
        inlay.slice_scatter(x, np.array([row, row]))


def test_a_triangle_needs_a_matrix() -> None:
    # By choice: NumPy first repeats a vector to make a matrix.
    x = np.array([1, 2, 3])
    assert np.tril(x).tolist() == [[1, 0, 0], [1, 2, 0], [1, 2, 3]]
    with pytest.raises(ValueError, match="tril: x has 1 dimensions, expected at least 2"):
        inlay.tril(x)


def test_offsets_at_the_ends_of_int64() -> None:
    # By choice: NumPy's offset of a diagonal is a C int, and that of a triangle overflows below.
    x = np.zeros((3, 3))
    for offset in (2**63 - 1, -(2**63)):
        with pytest.raises(OverflowError):
            np.diagonal(x, offset)
        assert inlay.diagonal(x, offset).shape == (0,)
        assert inlay.diagonal_scatter(x, np.zeros(0), offset).tolist() == x.tolist()
    assert np.array(np.tril_indices(3, 2**63 - 1)).shape == (2, 9)
    assert inlay.tril_indices(3, offset=2**63 - 1).shape == [2, 9]
    with pytest.raises(OverflowError):
        np.tril_indices(3, -(2**63))
    assert inlay.tril_indices(3, offset=-(2**63)).shape == [2, 0]


@each_dtype
def test_an_index_out_of_range_is_refused_by_both(dtype) -> None:
    x, updates = np.zeros(3, DTYPES[dtype]), np.ones(3, DTYPES[dtype])
    for bad in (3, -4, 2**62, -(2**62)):
        index = np.array([0, 1, bad])
        for numpy_says in (
            lambda index=index: np.take(x, index),
            lambda index=index: np.add.at(x.copy(), index, updates),
            lambda index=index: np.put_along_axis(x.copy(), index, updates, 0),
            lambda index=index: x.copy().__setitem__(index, updates),
        ):
            with pytest.raises(IndexError):
                numpy_says()
        for inlay_says in (
            lambda index=index: inlay.index_select(x, index),
            lambda index=index: inlay.scatter_(x, index, updates),
            lambda index=index: inlay.scatter_(x, index, updates, False),
            lambda index=index: inlay.put_along_axis_(x, index, updates, 0),
            lambda index=index: inlay.index_fill_(x, index, 0, updates[0, ...]),
            lambda index=index: inlay.from_numpy(x).__setitem__(index, updates),
        ):
            with pytest.raises(IndexError, match=rf"index\[2\] is {bad}, .*axis 0 of size 3"):
                inlay_says()
            assert not x.any()
