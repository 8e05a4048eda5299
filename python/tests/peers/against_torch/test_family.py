"""The rest of the family against PyTorch: places, rows, triangles, arithmetic, sums."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from arguments import any_axis, bits, numbers, replaced, shapes, thinner, without_negative_zeros
from cases import assert_same
from naive import COMPLEXES, FLOATS

import inlay

from .support import (
    UNSIGNED,
    WELL_SUMMED,
    Compare,
    assert_bits,
    assert_near,
    disguised,
    each_dtype,
    each_other_dtype,
    finite,
    laid,
    some_rows,
    to_numpy,
    to_torch,
)


@pytest.mark.parametrize("dtype", WELL_SUMMED)
def test_index_put(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        if 0 in shape:
            continue
        x = to_torch(finite(numbers(rng, dtype, shape)))
        depth = int(rng.integers(1, x.ndim + 1))
        # Each place is named once, because PyTorch does not define which duplicate wins. With
        # accumulate, duplicates are added in order.
        places = rng.permutation(math.prod(shape[:depth]))[: rng.integers(0, 9)]
        for accumulate in (False, True):
            names = np.unravel_index(places, shape[:depth])
            value = to_torch(finite(numbers(rng, dtype, (len(places), *shape[depth:]))))
            theirs = torch.index_put(x, tuple(map(to_torch, names)), value, accumulate)
            attrs = {"indices": names, "value": inlay.from_dlpack(value), "accumulate": accumulate}
            agree("index_put", [x], theirs, assert_same, twin=True, **attrs)
            places = np.repeat(places, 2)


@each_dtype
def test_concat_and_stack(rng, dtype) -> None:
    for shape in shapes(rng, least=1):
        tensors = [to_torch(bits(rng, dtype, shape)) for _ in range(3)]
        ours = [inlay.from_dlpack(laid(rng, tensor)) for tensor in tensors]
        axis = any_axis(rng, len(shape))
        assert_bits(inlay.concat(ours, axis).numpy(), to_numpy(torch.concat(tensors, axis)))
        assert_bits(inlay.stack(ours, axis).numpy(), to_numpy(torch.stack(tensors, axis)))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", *FLOATS])
def test_amax_and_amin(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = (
            to_torch(without_negative_zeros(numbers(rng, dtype, shape))),
            any_axis(rng, len(shape)),
        )
        if x.numel():
            agree("amax", [x], torch.amax(x, axis), assert_same, axis=axis)
            agree("amin", [x], torch.amin(x, axis), assert_same, axis=axis)


@each_dtype
def test_rows(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = to_torch(bits(rng, dtype, shape)), any_axis(rng, len(shape))
        index = some_rows(rng, shape[axis])
        given = [x, disguised(rng, index, shape[axis])]
        agree("index_select", given, torch.index_select(x, axis, index), axis=axis)
        if dtype not in UNSIGNED:
            number = to_torch(numbers(rng, dtype, ()))
            theirs = torch.index_fill(x, axis, index, number)
            attrs = {"axis": axis, "value": inlay.from_dlpack(number)}
            agree("index_fill", given, theirs, assert_same, twin=True, **attrs)
        if shape[axis]:
            row = int(rng.integers(-shape[axis], shape[axis]))
            values = to_torch(bits(rng, dtype, replaced(shape, axis)))
            theirs = torch.select_scatter(x, values, axis, row)
            agree("select_scatter", [x, values], theirs, twin=True, axis=axis, index=row)


@each_other_dtype
def test_triangles_and_where(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=2):
        x, y = (to_torch(bits(rng, dtype, shape)) for _ in range(2))
        diagonal = int(rng.integers(-9, 10))
        agree("tril", [x], torch.tril(x, diagonal), diagonal=diagonal)
        agree("triu", [x], torch.triu(x, diagonal), diagonal=diagonal)
        condition = to_torch(rng.random(thinner(rng, shape)) < 0.5)
        agree("where", [condition, x, y], torch.where(condition, x, y))


@each_other_dtype
def test_arithmetic_and_comparisons(rng, agree, dtype) -> None:
    for shape in shapes(rng, each=2):
        x, y = (to_torch(finite(numbers(rng, dtype, thinner(rng, shape)))) for _ in range(2))
        for name in ("add", "subtract", "multiply"):
            if (dtype, name) != ("bool", "subtract"):
                agree(name, [x, y], getattr(torch, name)(x, y), product_same(dtype, name))
        if dtype in FLOATS:
            agree("divide", [x, y], torch.divide(x, y), assert_same)
        agree("equal", [x, y], torch.eq(x, y))
        agree("not_equal", [x, y], torch.ne(x, y))
        if dtype not in COMPLEXES:
            agree("less_than", [x, y], torch.lt(x, y))
            agree("less_equal", [x, y], torch.le(x, y))
            agree("greater_than", [x, y], torch.gt(x, y))
            agree("greater_equal", [x, y], torch.ge(x, y))


def product_same(dtype: str, name: str) -> Compare:
    """PyTorch may use fused multiply-add in complex products, as in scatter_reduce."""
    return assert_near if dtype in COMPLEXES and name == "multiply" else assert_same


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64"])
def test_sum(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x = to_torch(bits(rng, dtype, shape))
        axis = any_axis(rng, len(shape))
        agree("sum", [x], torch.sum(x))
        agree("sum", [x], torch.sum(x, axis, keepdim=True), axis=axis, keepdim=True)
