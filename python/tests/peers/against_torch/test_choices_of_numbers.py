"""Numeric results that differ from PyTorch: rounding, overflow, zeros, NaN, and threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from cases import assert_same
from naive import COMPLEXES, DTYPES, FLOATS

import inlay

from .support import SHORT_FLOATS, ignores_beta, t, to_numpy, to_torch, torch_dtype

pytestmark = ignores_beta


@pytest.mark.parametrize(("dtype", "stuck"), [("bfloat16", 256), ("float16", 2048)])
def test_short_floats_are_summed_in_float32(dtype, stuck) -> None:
    # If x has one dimension, PyTorch's index_add rounds after each step, so its sum stops growing
    # when 1 is half a unit in the last place. With two dimensions, and in scatter_add, PyTorch
    # accumulates in float32.
    many = 4000
    index, ones = torch.zeros(many, dtype=torch.int64), torch.ones(many, dtype=torch_dtype(dtype))
    x = torch.zeros(1, dtype=ones.dtype)
    assert torch.index_add(x, 0, index, ones).item() == stuck
    assert torch.index_add(x[:, None], 0, index, ones[:, None]).item() == many
    assert torch.scatter_add(x, 0, index, ones).item() == many
    x, index, ones = map(inlay.from_dlpack, (x, index, ones))
    assert inlay.scatter(x, index, ones, False, include_self=True).item() == many
    assert inlay.put_along_axis(x, index, ones, 0, "add").item() == many


def test_the_sum_of_1000_bfloat16_ones() -> None:
    index, ones = torch.zeros(1000, dtype=torch.int64), torch.ones(1000, dtype=torch.bfloat16)
    x = torch.zeros(1, dtype=torch.bfloat16)
    assert torch.index_add(x, 0, index, ones).item() == 256
    ours = inlay.scatter(*map(inlay.from_dlpack, (x, index, ones)), overwrite=False)
    assert ours.item() == 1000


@pytest.mark.parametrize("dtype", SHORT_FLOATS)
@pytest.mark.parametrize("reduce", ["prod", "mean"])
def test_short_floats_are_reduced_in_float32(rng, dtype, reduce) -> None:
    # PyTorch's index_reduce rounds more than once, and so does its scatter_reduce for a mean. Inlay
    # computes in float32 and rounds once.
    differed = {"index_reduce": 0, "scatter_reduce": 0}
    for _ in range(30):
        updates = to_torch(rng.uniform(0.9, 1.1, 60).astype(DTYPES[dtype]))
        index, x = torch.zeros(60, dtype=torch.int64), torch.ones(1, dtype=updates.dtype)
        args = {"index": index, "reduce": reduce, "include_self": False}
        exact = torch.scatter_reduce(x.float(), 0, src=updates.float(), **args).to(x.dtype).item()
        shared = map(inlay.from_dlpack, (x, index, updates))
        assert inlay.scatter(*shared, overwrite=False, reduce=reduce).item() == exact
        steps = torch.index_reduce(x, 0, source=updates, **args).item()
        differed["index_reduce"] += steps != exact
        steps = torch.scatter_reduce(x, 0, src=updates, **args).item()
        differed["scatter_reduce"] += steps != exact
    assert differed["index_reduce"]
    assert bool(differed["scatter_reduce"]) == (reduce == "mean")


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_one_infinite_part_of_a_complex_sum_leaves_the_other(dtype) -> None:
    # A bug in PyTorch: it computes x + y as x + (1+0j) * y, where infinity times 0 is NaN, and -0.0
    # is lost. index_add with one dimension does the same; scatter_add does not.
    want, index = torch_dtype(dtype), t([0])
    x, y = t([1 + 1j], want), t([complex(math.inf, 1)], want)
    for theirs in (x + y, torch.index_add(x, 0, index, y)):
        assert math.isnan(theirs.item().imag)
    expected = complex(math.inf, 2)
    assert torch.scatter_add(x, 0, index, y).item() == expected
    x, y, index = map(inlay.from_dlpack, (x, y, index))
    assert (x + y).item() == expected
    assert inlay.scatter(x, index, y, False, include_self=True).item() == expected
    # The mean has the same problem, because it divides by a complex count.
    args = (torch.from_dlpack(x), 0, torch.from_dlpack(index), torch.from_dlpack(y), "mean")
    assert math.isnan(torch.scatter_reduce(*args).item().imag)
    ours = inlay.scatter(x, index, y, False, reduce="mean", include_self=True)
    assert ours.item() == complex(math.inf, 1)

    zero = t([complex(-0.0, -0.0)], torch_dtype(dtype))
    assert math.copysign(1, (zero + zero).item().real) == 1
    ours = inlay.add(inlay.from_dlpack(zero), inlay.from_dlpack(zero))
    assert math.copysign(1, ours.item().real) == -1


@pytest.mark.parametrize(("dtype", "signalling"), [("float16", 0x7D01), ("bfloat16", 0x7F81)])
def test_moved_values_keep_every_bit(dtype, signalling) -> None:
    # PyTorch's scatter converts through float32, which changes the bits of a signalling NaN.
    x = torch.full((1,), signalling, dtype=torch.int16).view(torch_dtype(dtype))
    index = t([0])
    theirs = torch.scatter(torch.zeros_like(x), 0, index, x)
    assert theirs.isnan().all()
    assert theirs.view(torch.int16).item() != signalling
    zeros, index, x = map(inlay.from_dlpack, (torch.zeros_like(x), index, x))
    for ours in (inlay.put_along_axis(zeros, index, x, 0), inlay.scatter(zeros, index, x)):
        assert torch.from_dlpack(ours).view(torch.int16).item() == signalling


@pytest.mark.parametrize(
    ("dtype", "number", "wrapped"), [("int8", 100, 14), ("uint8", 100, 14), ("int16", 20000, -1846)]
)
def test_integer_means_do_not_overflow(dtype, number, wrapped) -> None:
    # PyTorch wraps the sum of the three before it divides.
    three, index = torch.full((3,), number, dtype=torch_dtype(dtype)), torch.zeros(3).long()
    x = torch.zeros(1, dtype=three.dtype)
    args = {"index": index, "reduce": "mean", "include_self": False}
    assert torch.scatter_reduce(x, 0, src=three, **args).item() == wrapped
    assert torch.index_reduce(x, 0, source=three, **args).item() == wrapped
    x, index, three = map(inlay.from_dlpack, (x, index, three))
    assert inlay.scatter(x, index, three, False, reduce="mean").item() == number
    assert inlay.put_along_axis(x, index, three, 0, "mean", include_self=False).item() == number


def test_integer_means_round_down_in_both() -> None:
    updates, index, x = t([-1, -2]), t([0, 0]), t([0])
    args = {"index": index, "reduce": "mean", "include_self": False}
    assert torch.scatter_reduce(x, 0, src=updates, **args).item() == -2
    ours = inlay.scatter(*map(inlay.from_dlpack, (x, index, updates)), False, reduce="mean")
    assert ours.item() == -2


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_sum_of_negative_zeros_keeps_its_sign(dtype, reduce) -> None:
    # PyTorch starts with 0.0 instead of the old value, and 0.0 + -0.0 is 0.0. Inlay starts with the
    # first update.
    x, zero = torch.ones(1, dtype=torch_dtype(dtype)), t([-0.0], torch_dtype(dtype))
    index = t([0])
    theirs = torch.scatter_reduce(x, 0, index, zero, reduce, include_self=False)
    assert math.copysign(1, theirs.item()) == 1
    ours = inlay.scatter(*map(inlay.from_dlpack, (x, index, zero)), False, reduce=reduce)
    assert math.copysign(1, ours.item()) == -1


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_ties_and_nan_are_alike(dtype, reduce) -> None:
    index = t([0, 0])
    for old, *updates in [
        (0.0, -0.0, 0.0), (-0.0, 0.0, -0.0), (1.0, math.nan, 2.0), (math.nan, 1.0, 2.0),
        (1.0, 2.0, math.nan), (math.inf, -math.inf, 0.0),
    ]:  # fmt: skip
        x, source = t([old], torch_dtype(dtype)), t(updates, torch_dtype(dtype))
        ours = inlay.scatter(
            *map(inlay.from_dlpack, (x, index, source)), False, reduce=reduce, include_self=True
        )
        for theirs in (
            torch.scatter_reduce(x, 0, index, source, reduce),
            torch.index_reduce(x, 0, index, source, reduce),
        ):
            assert_same(to_numpy(torch.from_dlpack(ours)), to_numpy(theirs))


@pytest.fixture
def many_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads(), inlay.get_num_threads()

    def use(n: int) -> None:
        torch.set_num_threads(n)
        inlay.set_num_threads(n)

    yield use
    torch.set_num_threads(before[0])
    inlay.set_num_threads(before[1])


def test_the_last_of_several_writes_wins_with_any_number_of_threads(rng, many_threads) -> None:
    # By choice: PyTorch does not define which write wins in index_copy and index_put, and with
    # several threads it is not always the last one. The result is a race, so the test only asserts
    # that each place has one of the values written to it. PyTorch's scatter happens to keep the
    # last.
    index, values = to_torch(rng.integers(0, 50, 200_000)), torch.arange(200_000)
    last = torch.zeros(50, dtype=torch.int64)
    last[to_torch(np.unique(to_numpy(index)))] = to_torch(
        199_999 - np.unique(to_numpy(index)[::-1], return_index=True)[1]
    )
    x = torch.zeros(50, dtype=torch.int64)
    for n in (1, 2, 3, 4):
        many_threads(n)
        for theirs in (
            torch.index_copy(x, 0, index, values),
            torch.index_put(x, (index,), values),
        ):
            assert torch.equal(index[theirs], torch.arange(50))
        assert torch.equal(torch.scatter(x, 0, index, values), last)
        ours = inlay.scatter(*map(inlay.from_dlpack, (x, index, values)))
        assert torch.equal(torch.from_dlpack(ours), last)


def test_sums_do_not_depend_on_the_number_of_threads(rng, many_threads) -> None:
    # PyTorch splits a sum over all elements, and index_put with accumulate, by the number of
    # threads, and the last bits depend on it. The first differs for about every other array. The
    # second is a race, so the test only asserts that it is close. Its index_add and scatter_add use
    # index order.
    index = to_torch(rng.integers(0, 50, 100_000))
    x, differed = torch.zeros(50), 0
    for _ in range(20):
        values = to_torch(rng.normal(size=100_000).astype("f4"))
        sums, ours = set(), set()
        for n in (1, 2, 4):
            many_threads(n)
            sums.add(torch.sum(values).item())
            ours.add(inlay.sum(inlay.from_dlpack(values)).item())
        assert len(ours) == 1
        differed += len(sums) > 1
    assert differed

    shared = list(map(inlay.from_dlpack, (x, index, values)))
    first = torch.from_dlpack(inlay.scatter(*shared, overwrite=False, include_self=True))
    for n in (1, 2, 3, 4):
        many_threads(n)
        ours = torch.from_dlpack(inlay.scatter(*shared, overwrite=False, include_self=True))
        assert torch.equal(ours, first)
        assert torch.equal(torch.index_add(x, 0, index, values), first)
        assert torch.equal(torch.scatter_add(x, 0, index, values), first)
        raced = torch.index_put(x, (index,), values, accumulate=True)
        torch.testing.assert_close(raced, first, rtol=1e-4, atol=1e-2)
