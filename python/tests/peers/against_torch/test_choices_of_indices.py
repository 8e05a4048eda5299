"""Writes that differ from PyTorch by design: indices, failed calls, overlaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from naive import INTEGERS

import inlay

from .support import ignores_beta, t, torch_dtype

pytestmark = ignores_beta

ONE = [1.0]


def refusing_negatives() -> dict[str, tuple[Callable[[torch.Tensor], Any], Callable[..., Any]]]:
    """Pairs of a call with an index, in PyTorch and in Inlay."""
    x, one = torch.zeros(3), t(ONE)
    ours, our_one = inlay.from_dlpack(x), inlay.from_dlpack(one)
    return {
        "index_add": (
            lambda i: torch.index_add(x, 0, i, one),
            lambda i: inlay.scatter(ours, i, our_one, False, include_self=True),
        ),
        "index_copy": (
            lambda i: torch.index_copy(x, 0, i, one),
            lambda i: inlay.scatter(ours, i, our_one),
        ),
        "index_reduce": (
            lambda i: torch.index_reduce(x, 0, i, one, "amax"),
            lambda i: inlay.scatter(ours, i, our_one, False, reduce="amax", include_self=True),
        ),
        "scatter": (
            lambda i: torch.scatter(x, 0, i, one),
            lambda i: inlay.put_along_axis(ours, i, our_one, 0),
        ),
        "scatter_add": (
            lambda i: torch.scatter_add(x, 0, i, one),
            lambda i: inlay.put_along_axis(ours, i, our_one, 0, "add"),
        ),
        "scatter_reduce": (
            lambda i: torch.scatter_reduce(x, 0, i, one, "amax"),
            lambda i: inlay.put_along_axis(ours, i, our_one, 0, "amax"),
        ),
        "gather": (
            lambda i: torch.gather(one, 0, i),
            lambda i: inlay.take_along_axis(our_one, i, 0),
        ),
        "index_select": (
            lambda i: torch.index_select(one, 0, i),
            lambda i: inlay.index_select(our_one, i),
        ),
    }


@pytest.mark.parametrize("name", refusing_negatives())
def test_negative_indices_count_from_the_end(name) -> None:
    # PyTorch rejects them here, but accepts them in x[-1], index_fill, index_put and
    # select_scatter.
    theirs, ours = refusing_negatives()[name]
    with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
        theirs(t([-1]))
    assert ours([-1]).tolist() in ([0, 0, 1], [1])


def test_negative_indices_that_pytorch_takes() -> None:
    x, one, last = torch.zeros(3), t(ONE), t([-1])
    assert torch.index_fill(x, 0, last, 1).tolist() == [0, 0, 1]
    assert torch.index_put(x, (last,), one).tolist() == [0, 0, 1]
    assert torch.take_along_dim(t([1.0, 2.0]), last, 0).tolist() == [2]
    ours = inlay.from_dlpack(x)
    assert inlay.index_fill(ours, [-1], 0, 1.0).tolist() == [0, 0, 1]
    assert inlay.take_along_axis(inlay.to_tensor([1.0, 2.0]), [-1], 0).tolist() == [2]


def leaving_partial_writes() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """Pairs of an in-place call that fails at the third of three writes."""
    bad, updates, mask = t([0, 1, 7]), t([5.0, 6.0, 7.0]), t([True, True, True])
    our_bad, ours = inlay.from_dlpack(bad), inlay.from_dlpack(updates)
    short, our_mask = inlay.from_dlpack(updates[:2]), inlay.from_dlpack(mask)
    return {
        "index_copy_": (
            lambda x: x.index_copy_(0, bad, updates),
            lambda x: inlay.scatter_(x, our_bad, ours),
        ),
        "index_add_": (
            lambda x: x.index_add_(0, bad, updates),
            lambda x: inlay.scatter_(x, our_bad, ours, False, include_self=True),
        ),
        "index_reduce_": (
            lambda x: x.index_reduce_(0, bad, updates, "amax"),
            lambda x: inlay.scatter_(x, our_bad, ours, False, reduce="amax", include_self=True),
        ),
        "index_fill_": (
            lambda x: x.index_fill_(0, bad, 5.0),
            lambda x: inlay.index_fill_(x, our_bad, 0, 5.0),
        ),
        "scatter_": (
            lambda x: x.scatter_(0, bad, updates),
            lambda x: inlay.put_along_axis_(x, our_bad, ours, 0),
        ),
        "scatter_add_": (
            lambda x: x.scatter_add_(0, bad, updates),
            lambda x: inlay.put_along_axis_(x, our_bad, ours, 0, "add"),
        ),
        "scatter_reduce_": (
            lambda x: x.scatter_reduce_(0, bad, updates, "sum"),
            lambda x: inlay.put_along_axis_(x, our_bad, ours, 0, "sum"),
        ),
        "setitem": (
            lambda x: x.__setitem__(bad, updates),
            lambda x: x.__setitem__(our_bad, ours),
        ),
        "masked_scatter_": (
            lambda x: x.masked_scatter_(mask, updates[:2]),
            lambda x: inlay.masked_scatter_(x, our_mask, short),
        ),
    }


@pytest.mark.parametrize("name", leaving_partial_writes())
def test_a_call_that_fails_has_written_nothing(name) -> None:
    # PyTorch checks each index, or the length of the source, just before it is used. So the first
    # two writes are done when the third one fails.
    theirs, ours = leaving_partial_writes()[name]
    x = torch.zeros(3)
    with pytest.raises((IndexError, RuntimeError)):
        theirs(x)
    assert x.tolist() == [5, 5 if name == "index_fill_" else 6, 0]
    x = torch.zeros(3)
    with pytest.raises((IndexError, ValueError)):
        ours(inlay.from_dlpack(x))
    assert x.tolist() == [0, 0, 0]


def test_further_rows_of_the_updates_are_ignored() -> None:
    # By choice: Inlay follows Paddle. PyTorch expects exactly one row for each entry of the index.
    x, index, rows = torch.zeros(3), t([1]), t([5.0, 6.0])
    for refused in (torch.index_add, torch.index_copy):
        with pytest.raises((RuntimeError, IndexError), match="should be equal to source"):
            refused(x, 0, index, rows)
    assert inlay.scatter(*map(inlay.from_dlpack, (x, index, rows))).tolist() == [0, 5, 0]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_integer_dtype_is_an_index(dtype) -> None:
    # By choice: PyTorch accepts only int32 and int64, and index_copy only int64.
    x, one, index = torch.zeros(3), t(ONE), torch.ones(1, dtype=torch_dtype(dtype))
    calls = {
        "index_add": lambda: torch.index_add(x, 0, index, one),
        "index_copy": lambda: torch.index_copy(x, 0, index, one),
        "scatter": lambda: torch.scatter(x, 0, index, one),
        "gather": lambda: torch.gather(x, 0, index),
        "index_select": lambda: torch.index_select(x, 0, index),
    }
    for name, call in calls.items():
        if dtype == "int64" or (dtype == "int32" and name != "index_copy"):
            call()
        else:
            with pytest.raises(RuntimeError, match=r"Expected (dtype int32|a long tensor)"):
                call()
    ours, our_index, our_one = map(inlay.from_dlpack, (x, index, one))
    assert inlay.scatter(ours, our_index, our_one).tolist() == [0, 1, 0]
    assert inlay.put_along_axis(ours, our_index, our_one, 0).tolist() == [0, 1, 0]
    assert inlay.take_along_axis(ours, our_index, 0).tolist() == [0]
    assert inlay.index_select(ours, our_index).tolist() == [0]


def test_an_index_is_checked_even_if_nothing_is_written() -> None:
    # If rows have no elements, PyTorch does not check the index in index_add and index_copy, but
    # checks it in index_select.
    x, rows, bad = torch.zeros(3, 0), torch.zeros(1, 0), t([7])
    assert torch.index_add(x, 0, bad, rows).shape == (3, 0)
    assert torch.index_copy(x, 0, bad, rows).shape == (3, 0)
    with pytest.raises(RuntimeError, match="out of DATA bounds"):
        torch.index_select(x, 0, bad)
    with pytest.raises(IndexError, match=r"index\[0\] is 7"):
        inlay.scatter(*map(inlay.from_dlpack, (x, bad, rows)))


def test_overlapping_sources_are_read_as_if_copied() -> None:
    # PyTorch rejects an overlap, except in masked_scatter_, which reads elements that it has
    # already overwritten.
    later, mask = t([1, 2, 3, 4]), t([False, True, True, True, True])
    x = torch.arange(5.0)
    for refused in (
        lambda: x.index_copy_(0, later, x[:-1]),
        lambda: x.index_add_(0, later, x[:-1]),
        lambda: x.scatter_(0, later, x[:-1]),
        lambda: x[1:].copy_(x[:-1]),
    ):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            refused()
    assert x.masked_scatter_(mask, x[:-1]).tolist() == [0, 0, 0, 0, 0]

    def check(call: Callable[[Any, Any], Any], expected: list[float]) -> None:
        x = torch.arange(5.0)
        call(inlay.from_dlpack(x), inlay.from_dlpack(x[:-1]))
        assert x.tolist() == expected

    check(lambda x, source: inlay.scatter_(x, later.numpy(), source), [0, 0, 1, 2, 3])
    check(lambda x, source: inlay.slice_scatter_(x, source, start=1), [0, 0, 1, 2, 3])
    check(lambda x, source: inlay.masked_scatter_(x, mask.numpy(), source), [0, 0, 1, 2, 3])
    check(
        lambda x, source: inlay.scatter_(x, later.numpy(), source, False, include_self=True),
        [0, 1, 3, 5, 7],
    )


def test_targets_that_overlap_themselves_are_refused_by_both() -> None:
    x, index, one = torch.zeros(1).expand(3), t([0]), t(ONE)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.index_add_(0, index, one)
    with pytest.raises(ValueError, match="overlap"):
        inlay.scatter_(*map(inlay.from_dlpack, (x, index, one)))
