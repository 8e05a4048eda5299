"""The five main operations against PyTorch."""

from __future__ import annotations

import pytest
import torch
from arguments import any_axis, any_bound, bits, numbers, replaced, shapes, thinner
from cases import assert_same

import inlay

from .support import (
    WELL_SUMMED,
    assert_bits,
    disguised,
    each_dtype,
    each_other_dtype,
    each_self,
    finite,
    ignores_beta,
    small,
    some_rows,
    to_numpy,
    to_torch,
    torch_dtype,
)

pytestmark = ignores_beta


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("half", ["tril_indices", "triu_indices"])
def test_triangle_indices(rng, half, dtype) -> None:
    for _ in range(60):
        rows, columns = rng.integers(0, 9, 2).tolist()
        offset = int(rng.integers(-11, 12))
        theirs = getattr(torch, half)(rows, columns, offset, dtype=torch_dtype(dtype))
        ours = getattr(inlay, half)(rows, columns, offset, dtype)
        assert_bits(ours.numpy(), to_numpy(theirs))


@each_dtype
def test_slice_scatter(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = to_torch(bits(rng, dtype, shape)), any_axis(rng, len(shape))
        start, stop = any_bound(rng, shape[axis]), any_bound(rng, shape[axis])
        step = int(rng.integers(1, 4))
        length = len(range(*slice(start, stop, step).indices(shape[axis])))
        y = to_torch(bits(rng, dtype, replaced(shape, axis, length)))
        theirs = torch.slice_scatter(x, y, axis, start, stop, step)
        attrs = {"axis": axis, "start": start, "stop": stop, "step": step}
        agree("slice_scatter", [x, y], theirs, twin=True, **attrs)


@each_dtype
def test_diagonals(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=2):
        x = to_torch(bits(rng, dtype, shape))
        axis1, axis2 = rng.permutation(x.ndim)[:2].tolist()
        offset = int(rng.integers(-shape[axis1] - 1, shape[axis2] + 2))
        attrs = {"offset": offset, "axis1": axis1 - x.ndim, "axis2": axis2}
        theirs = torch.diagonal(x, offset, axis1, axis2)
        agree("diagonal", [x], theirs, **attrs)
        src = to_torch(bits(rng, dtype, tuple(theirs.shape)))
        theirs = torch.diagonal_scatter(x, src, offset, axis1, axis2)
        agree("diagonal_scatter", [x, src], theirs, twin=True, **attrs)


@each_other_dtype
def test_masks(rng, agree, dtype) -> None:
    for shape in shapes(rng):
        x = to_torch(bits(rng, dtype, shape))
        mask = to_torch(rng.random(thinner(rng, shape)) < rng.choice([0.0, 0.3, 0.7, 1.0]))
        count = int(torch.broadcast_to(mask, shape).sum())
        source = to_torch(bits(rng, dtype, (count + int(rng.integers(0, 3)),)))
        theirs = torch.masked_scatter(x, mask, source)
        agree("masked_scatter", [x, mask, source], theirs, twin=True)
        agree("masked_select", [x, mask], torch.masked_select(x, mask))
        number = to_torch(numbers(rng, dtype, ()))
        theirs = torch.masked_fill(x, mask, number)
        agree("masked_fill", [x, mask, number], theirs, assert_same, twin=True)


@each_other_dtype
def test_scatter_overwrites_as_index_copy_does(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = to_torch(bits(rng, dtype, shape)), any_axis(rng, len(shape))
        # Each place is named once, because PyTorch may keep either of two rows for one place.
        index = to_torch(rng.permutation(shape[axis])[: int(rng.integers(0, shape[axis] + 1))])
        updates = to_torch(bits(rng, dtype, replaced(shape, axis, len(index))))
        theirs = torch.index_copy(x, axis, index, updates)
        given = [x, disguised(rng, index, shape[axis]), updates]
        agree("scatter", given, theirs, twin=True, axis=axis)


@pytest.mark.parametrize("dtype", WELL_SUMMED)
def test_scatter_adds_as_index_add_does(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = to_torch(finite(numbers(rng, dtype, shape))), any_axis(rng, len(shape))
        index = some_rows(rng, shape[axis])
        updates = to_torch(finite(numbers(rng, dtype, replaced(shape, axis, len(index)))))
        theirs = torch.index_add(x, axis, index, updates)
        given = [x, disguised(rng, index, shape[axis]), updates]
        attrs = {"overwrite": False, "axis": axis, "include_self": True}
        agree("scatter", given, theirs, assert_same, twin=True, **attrs)
        attrs = {"axis": axis, "value": inlay.from_dlpack(updates)}
        agree("index_add", given[:2], theirs, assert_same, twin=True, **attrs)


@each_self
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "int32", "int64", "float32", "float64"]
)
def test_scatter_reduces_as_index_reduce_does(rng, agree, dtype, reduce, include_self) -> None:
    for shape in shapes(rng, least=1, each=2):
        x, axis = small(rng, dtype, shape), any_axis(rng, len(shape))
        index = some_rows(rng, shape[axis])[: 8 if reduce == "mean" else None]
        updates = small(rng, dtype, replaced(shape, axis, len(index)))
        theirs = torch.index_reduce(x, axis, index, updates, reduce, include_self=include_self)
        given = [x, disguised(rng, index, shape[axis]), updates]
        attrs = {"overwrite": False, "axis": axis, "reduce": reduce, "include_self": include_self}
        agree("scatter", given, theirs, assert_same, twin=True, **attrs)
