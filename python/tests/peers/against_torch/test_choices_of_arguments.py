"""Arguments that PyTorch treats differently by design: shapes, dtypes, steps, offsets, casts."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest
import torch

import inlay

from .support import UNSIGNED, t, to_torch, torch_dtype


def test_x_is_stretched_to_the_mask_in_masked_scatter_only() -> None:
    # As in PyTorch, masked_scatter broadcasts x to a larger mask, but not in place. By choice, in
    # masked_fill and masked_select only the mask is broadcast.
    x, mask, source = torch.zeros(3), torch.ones(2, 3, dtype=torch.bool), torch.arange(6.0)
    expected = torch.masked_scatter(x, mask, source).tolist()
    assert expected == [[0, 1, 2], [3, 4, 5]]
    assert torch.masked_fill(x, mask, 1).tolist() == [[1] * 3] * 2
    assert torch.masked_select(x, mask).tolist() == [0] * 6
    with pytest.raises(RuntimeError, match="expand"):
        x.masked_scatter_(mask, source)
    x, mask, source = map(inlay.from_dlpack, (x, mask, source))
    assert inlay.masked_scatter(x, mask, source).tolist() == expected
    for call in (
        lambda: inlay.masked_scatter_(x, mask, source),
        lambda: inlay.masked_fill(x, mask, 1.0),
        lambda: inlay.masked_select(x, mask),
    ):
        with pytest.raises(ValueError, match=r"mask has shape \[2, 3\]"):
            call()


def test_values_of_another_dtype_are_refused() -> None:
    # By choice: PyTorch casts values that it copies into a view. Elsewhere, another dtype is an
    # error.
    x, integers = torch.zeros(3, 3), t([1, 2, 3])
    ours, our_integers = inlay.from_dlpack(x), inlay.from_dlpack(integers)
    row, matrix = integers.expand(3, 3), inlay.from_dlpack(integers.expand(3, 3))
    mask, index = torch.ones(3, 3, dtype=torch.bool), t([0, 1, 2])
    assert torch.diagonal_scatter(x, integers).diagonal().tolist() == [1, 2, 3]
    assert torch.select_scatter(x, integers, 0, 0)[0].tolist() == [1, 2, 3]
    assert torch.slice_scatter(x, row).tolist() == [[1, 2, 3]] * 3
    for refused in (
        lambda: torch.masked_scatter(x, mask, row),
        lambda: torch.index_add(x, 0, index, row),
        lambda: torch.index_copy(x, 0, index, row),
        lambda: torch.scatter(x, 0, index.expand(3, 3), row),
    ):
        with pytest.raises((RuntimeError, IndexError), match=r"(?i)dtype|scalar type"):
            refused()
    for call in (
        lambda: inlay.diagonal_scatter(ours, our_integers),
        lambda: inlay.select_scatter(ours, our_integers, 0, 0),
        lambda: inlay.slice_scatter(ours, matrix),
        lambda: inlay.masked_scatter(ours, inlay.from_dlpack(mask), matrix),
        lambda: inlay.scatter(ours, inlay.from_dlpack(index), matrix),
    ):
        with pytest.raises(TypeError, match=r"int64.*float32"):
            call()


def test_numbers_that_the_dtype_can_not_hold_are_refused() -> None:
    # By choice: PyTorch truncates fractions without a warning. Both reject numbers out of range.
    x, mask, index = torch.zeros(2, dtype=torch.int8), t([True, False]), t([0])
    assert torch.masked_fill(x, mask, 1.5).tolist() == [1, 0]
    assert torch.index_fill(x, 0, index, 1.5).tolist() == [1, 0]
    for number in (1.5, 300):
        if number == 300:
            with pytest.raises(RuntimeError, match="overflow"):
                torch.masked_fill(x, mask, number)
        for call in (
            lambda number=number: inlay.masked_fill(inlay.from_dlpack(x), mask.numpy(), number),
            lambda number=number: inlay.index_fill(inlay.from_dlpack(x), [0], 0, number),
        ):
            with pytest.raises((TypeError, ValueError), match="value"):
                call()


def test_slices_may_go_backwards() -> None:
    # By choice: PyTorch has no negative strides, so it has no negative steps.
    x, y = torch.zeros(3), t([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="step must be positive"):
        torch.slice_scatter(x, y, step=-1)
    ours = inlay.slice_scatter(inlay.from_dlpack(x), inlay.from_dlpack(y), step=-1)
    assert ours.tolist() == [3, 2, 1]


def test_rank_0() -> None:
    # By choice: PyTorch treats a 0-D x as one row. Inlay needs an axis to write along.
    x, index, one = t(1.0), t([0]), t([5.0])
    assert torch.index_copy(x, 0, index, one).item() == 5
    assert torch.scatter_reduce(x, 0, index, one, "sum").item() == 6
    assert torch.index_select(x, 0, index).item() == 1
    ours, our_index, our_one = map(inlay.from_dlpack, (x, index, one))
    for call in (
        lambda: inlay.scatter(ours, our_index, our_one),
        lambda: inlay.put_along_axis(ours, our_index, our_one, 0, "sum"),
        lambda: inlay.index_select(ours, our_index),
    ):
        with pytest.raises((ValueError, IndexError)):
            call()
    # By choice: with a 0-D index, PyTorch expects a matrix of one row, and Inlay expects the row.
    x, index, row = torch.zeros(2, 2), t(1), t([5.0, 6.0])
    with pytest.raises(IndexError):
        torch.index_copy(x, 0, index, row)
    assert torch.index_copy(x, 0, index, row[None]).tolist() == [[0, 0], [5, 6]]
    ours, our_index, our_row = map(inlay.from_dlpack, (x, index, row))
    assert inlay.scatter(ours, our_index, our_row).tolist() == [[0, 0], [5, 6]]
    with pytest.raises(ValueError, match=r"updates has shape \[1, 2\]"):
        inlay.scatter(ours, our_index, inlay.from_dlpack(row[None]))


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_every_operation_takes_every_dtype(dtype) -> None:
    # PyTorch can store the wider unsigned integers, but lacks these operations for them.
    top = np.iinfo(dtype).max
    array = np.array([[top, 1], [2, 3]], dtype)
    x, mask, index = to_torch(array), t([[True, False], [False, True]]), t([1, 0])
    for call in (
        lambda: torch.masked_scatter(x, mask, x),
        lambda: torch.masked_fill(x, mask, 7),
        lambda: torch.masked_select(x, mask),
        lambda: torch.index_copy(x, 0, index, x),
        lambda: torch.index_fill(x, 0, index, 7),
        lambda: torch.index_put(x, (index,), x),
        lambda: torch.index_add(x[0], 0, index, x[0]),
        lambda: torch.tril(x),
        lambda: torch.add(x, x),
        lambda: torch.lt(x, x),
    ):
        with pytest.raises(NotImplementedError, match="not implemented for 'UInt"):
            call()
    ours, our_mask = inlay.from_dlpack(x), inlay.from_dlpack(mask)
    source = inlay.from_dlpack(x.flip(0))
    assert inlay.masked_scatter(ours, our_mask, source).tolist() == [[2, 1], [2, 3]]
    assert inlay.masked_fill(ours, our_mask, 7).tolist() == [[7, 1], [2, 7]]
    assert inlay.masked_select(ours, our_mask).tolist() == [top, 3]
    assert inlay.scatter(ours, [1, 0], ours).tolist() == [[2, 3], [top, 1]]
    assert inlay.index_fill(ours, [1], 0, 7).tolist() == [[top, 1], [7, 7]]
    assert inlay.tril(ours).tolist() == [[top, 0], [2, 3]]
    assert inlay.add(ours, ours).tolist() == [[top - 1, 2], [4, 6]]
    assert inlay.less_than(ours, source).tolist() == [[False, True], [True, False]]


def test_triangles_of_every_dtype_and_offset() -> None:
    # PyTorch has only int32 and int64, and its count overflows near the limits of int64.
    for dtype in ("uint8", "int8", "int16", *UNSIGNED):
        with pytest.raises(NotImplementedError):
            torch.tril_indices(2, 2, dtype=torch_dtype(dtype))
        assert inlay.tril_indices(2, 2, dtype=dtype).tolist() == [[0, 1, 1], [0, 0, 1]]
    top, bottom = 2**63 - 1, -(2**63)
    for half, offset in (("tril", top), ("triu", top), ("triu", bottom)):
        with pytest.raises(RuntimeError, match="negative dimension"):
            getattr(torch, f"{half}_indices")(3, 3, offset)
    assert torch.tril_indices(3, 3, bottom).shape == (2, 0)
    assert inlay.tril_indices(3, 3, top).shape == [2, 9]
    assert inlay.triu_indices(3, 3, top).shape == [2, 0]
    assert inlay.tril_indices(3, 3, bottom).shape == [2, 0]
    assert inlay.triu_indices(3, 3, bottom).shape == [2, 9]


def test_dtypes_of_results() -> None:
    # By choice: a quotient of integers is float32 in PyTorch (its default dtype), and float64 in
    # Inlay and NumPy. A sum of uint8 is int64 in PyTorch, and uint64 in Inlay and NumPy.
    x, small = t([1, 2]), torch.ones(2, dtype=torch.uint8)
    assert (x / x).dtype == torch.float32
    assert torch.sum(small).dtype == torch.int64
    assert inlay.divide(inlay.from_dlpack(x), inlay.from_dlpack(x)).dtype == "float64"
    assert inlay.sum(inlay.from_dlpack(small)).dtype == "uint64"


def test_casts() -> None:
    # A bug in PyTorch: it converts float64 and int64 to bfloat16 through float32, and rounds twice.
    for number in (t([1 + 2**-8 + 2**-40], torch.float64), t([2**40 + 2**32 + 1])):
        step = 2.0 ** (math.frexp(number.item())[1] - 8)
        below = math.floor(number.item() / step) * step
        assert number.to(torch.bfloat16).item() == below
        assert inlay.cast(inlay.from_dlpack(number), "bfloat16").item() == below + step
    # By choice: for a value out of the integer's range, PyTorch returns what the processor returns.
    number = t([300.0, -1.0, math.nan])
    if platform.machine() in ("x86_64", "AMD64"):
        assert number.to(torch.uint8).tolist()[:2] == [44, 255]
    assert inlay.cast(inlay.from_dlpack(number), "uint8").tolist() == [255, 0, 0]
    # By choice: PyTorch drops the imaginary part with a warning.
    number = t([1 + 2j])
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert number.to(torch.float32).item() == 1
    with pytest.raises(TypeError, match="imaginary"):
        inlay.cast(inlay.from_dlpack(number), "float32")
