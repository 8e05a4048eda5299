"""Single elements along an axis against PyTorch's gather, scatter and scatter_reduce."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from arguments import any_axis, bits, defined, replaced, shapes
from cases import assert_same
from naive import COMPLEXES, INTEGERS

import inlay

from .support import (
    SHORT_FLOATS,
    UNSIGNED,
    Compare,
    assert_bits,
    assert_near,
    disguised,
    each_dtype,
    each_self,
    small,
    to_torch,
    torch_dtype,
)


def element_arguments(
    rng: np.random.Generator, shape: tuple[int, ...], least: int = 0
) -> tuple[int, torch.Tensor, tuple[int, ...]]:
    """An axis, an index not larger than x on other axes, and a shape not smaller for the values."""
    axis = any_axis(rng, len(shape))
    count = int(rng.integers(least, 2 * shape[axis] + 2)) if shape[axis] else 0
    named = replaced(tuple(int(rng.integers(0, n + 1)) for n in shape), axis, count)
    index = to_torch(rng.integers(0, max(shape[axis], 1), named))
    return axis, index, tuple(n + int(rng.integers(0, 2)) for n in named)


def moved_same(dtype: str) -> Compare:
    """PyTorch's gather and scatter change the bits of 16-bit NaNs. See the test of these."""
    return assert_same if dtype in SHORT_FLOATS else assert_bits


@each_dtype
def test_take_along_axis_as_gather_and_take_along_dim_do(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x = to_torch(bits(rng, dtype, shape))
        axis, index, _ = element_arguments(rng, shape)
        given = [x, disguised(rng, index, shape[axis])]
        theirs, same = torch.gather(x, axis, index), moved_same(dtype)
        agree("take_along_axis", given, theirs, same, axis=axis, broadcast=False)

        thin = replaced(tuple(1 if rng.random() < 0.3 else n for n in shape), axis, 3)
        if 0 not in shape:
            index = to_torch(rng.integers(0, shape[axis], thin))
            given = [x, disguised(rng, index, shape[axis])]
            agree("take_along_axis", given, torch.take_along_dim(x, index, axis), same, axis=axis)


@each_dtype
def test_put_along_axis_assigns_as_scatter_does(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x = to_torch(bits(rng, dtype, shape))
        axis, index, larger = element_arguments(rng, shape)
        # Each place is named only once, because PyTorch does not define which duplicate wins.
        order = to_torch(rng.permuted(np.broadcast_to(
            np.arange(shape[axis]), (*replaced(shape, axis), shape[axis])), axis=-1))  # fmt: skip
        order = torch.movedim(order, -1, axis)[tuple(map(slice, index.shape))]
        larger = tuple(max(*sizes) for sizes in zip(larger, order.shape, strict=True))
        values = to_torch(bits(rng, dtype, larger))
        theirs = torch.scatter(x, axis, order, values)
        given, same = [x, disguised(rng, order, shape[axis]), values], moved_same(dtype)
        agree("put_along_axis", given, theirs, same, twin=True, axis=axis, broadcast=False)


@each_self
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@each_dtype
def test_put_along_axis_reduces_as_scatter_reduce_does(
    rng, agree, dtype, reduce, include_self
) -> None:
    if not defined(dtype, reduce):
        refused_by_both(dtype, reduce)
        return
    if dtype in UNSIGNED and (reduce not in ("sum", "prod") or not include_self):
        one, index = torch.ones(1, dtype=torch_dtype(dtype)), torch.tensor([0])
        with pytest.raises(NotImplementedError, match="not implemented for 'UInt"):
            torch.scatter_reduce(one, 0, index, one, reduce, include_self=include_self)
        x, updates = np.array([5], dtype), np.array([1, 9], dtype)
        ours = inlay.put_along_axis(x, [0, 0], updates, 0, reduce, include_self=include_self)
        expected = {"sum": 10, "prod": 9, "mean": 5, "amax": 9, "amin": 1}
        with_self = {"sum": 15, "prod": 45}
        assert ours.tolist() == [(expected | with_self if include_self else expected)[reduce]]
        return
    same: Compare = assert_same
    if dtype in COMPLEXES and reduce in ("prod", "mean"):
        # By choice: PyTorch may use fused multiply-add in a complex product, and it divides by a
        # complex count. Inlay rounds each real product, and divides both parts by a real count.
        same = assert_near
    if dtype in SHORT_FLOATS and reduce == "mean":
        same = assert_a_rounding_apart
    for shape in shapes(rng, least=1, each=2):
        axis, index, larger = element_arguments(rng, shape)
        if dtype in INTEGERS and reduce == "mean":
            index = index.narrow(axis, 0, min(index.shape[axis], 8))
        x, values = small(rng, dtype, shape), small(rng, dtype, larger)
        if dtype in COMPLEXES and reduce == "prod":
            x, values = (torch.nan_to_num(t / t.abs()) for t in (x, values))
        theirs = torch.scatter_reduce(x, axis, index, values, reduce, include_self=include_self)
        given = [x, disguised(rng, index, shape[axis]), values]
        attrs = {"axis": axis, "reduce": reduce, "include_self": include_self, "broadcast": False}
        agree("put_along_axis", given, theirs, same, twin=True, **attrs)


def assert_a_rounding_apart(actual: np.ndarray, expected: np.ndarray) -> None:
    # By choice: PyTorch rounds the sum to the 16-bit dtype, divides, and rounds again. Inlay rounds
    # once, after the division.
    assert actual.dtype == expected.dtype
    step = 2.0**-10 if actual.dtype == np.float16 else 2.0**-7
    np.testing.assert_allclose(actual.astype("f8"), expected.astype("f8"), rtol=1.01 * step)


def refused_by_both(dtype: str, reduce: str) -> None:
    x = torch.ones(1, dtype=torch_dtype(dtype))
    index = torch.tensor([0])
    with pytest.raises(NotImplementedError):
        torch.scatter_reduce(x, 0, index, x, reduce)
    with pytest.raises(TypeError, match=f"{reduce}.*{dtype}"):
        inlay.put_along_axis(*map(inlay.from_dlpack, (x, index, x)), 0, reduce)
