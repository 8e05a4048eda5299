"""Pairs of a function in Inlay and in PyTorch. Each draws the arrays for both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gradcheck import Draw, resized, without
from gradient_pairs import Pairs

import inlay

NAMES = {"sum": "sum", "mul": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}

ignores_beta = pytest.mark.filterwarnings(r"ignore:index_reduce\(\) is in beta:UserWarning")

pair = Pairs()


def unique(draw: Draw, size: int, count: int) -> np.ndarray:
    """Places without duplicates and not negative, because PyTorch's scatter has no negatives."""
    return draw.rng.permutation(size)[:count]


def rows(draw: Draw) -> tuple[tuple[int, ...], int, int]:
    shape = draw.shape()
    axis = draw.axis(shape)
    return shape, axis, draw.count(shape[axis])


def at(index: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(index, dtype=np.int64))


@pair("index_copy")
def _(draw: Draw) -> Any:
    shape, axis, _ = rows(draw)
    index = unique(draw, shape[axis], int(draw.rng.integers(0, shape[axis] + 1)))
    arrays = [draw.numbers(*shape), draw.numbers(*resized(shape, axis, len(index)))]
    return (
        arrays,
        lambda x, u: inlay.scatter(x, index, u, axis=axis),
        lambda x, u: x.index_copy(axis, at(index), u),
    )


for _reduce in NAMES:
    for _self in [True, False]:

        @pair(f"index_reduce {_reduce} {'with' if _self else 'without'} self", True)
        def _(draw: Draw, reduce: str = _reduce, include_self: bool = _self) -> Any:
            shape, axis, count = rows(draw)
            index = draw.index(shape[axis], count) % max(shape[axis], 1)
            arrays = [draw.numbers(*shape), draw.numbers(*resized(shape, axis, count))]
            options = {"overwrite": False, "reduce": reduce, "include_self": include_self}
            if reduce == "sum":
                if include_self:
                    peer = lambda x, u: x.index_add(axis, at(index), u)  # noqa: E731
                else:
                    peer = lambda x, u: x.index_fill(axis, at(index), 0).index_add(  # noqa: E731
                        axis, at(index), u
                    )
            else:
                peer = lambda x, u: x.index_reduce(  # noqa: E731
                    axis, at(index), u, NAMES[reduce], include_self=include_self
                )
            return arrays, lambda x, u: inlay.scatter(x, index, u, axis=axis, **options), peer

        @pair(f"scatter_reduce {_reduce} {'with' if _self else 'without'} self", True)
        def _(draw: Draw, reduce: str = _reduce, include_self: bool = _self) -> Any:
            shape, axis, count = rows(draw)
            entries = [int(draw.rng.integers(0, size + 1)) for size in shape]
            entries[axis] = count
            index = np.zeros(entries, int)
            if shape[axis]:
                index = draw.rng.integers(0, shape[axis], entries)
            arrays = [draw.numbers(*shape), draw.numbers(*entries)]
            return (
                arrays,
                lambda x, v: inlay.put_along_axis(
                    x, index, v, axis, reduce, include_self=include_self, broadcast=False
                ),
                lambda x, v: x.scatter_reduce(
                    axis, at(index), v, NAMES[reduce], include_self=include_self
                ),
            )


@pair("scatter")
def _(draw: Draw) -> Any:
    shape = draw.shape()
    axis = draw.axis(shape)
    index = np.argsort(draw.rng.random(shape), axis)
    return (
        [draw.numbers(*shape), draw.numbers(*shape)],
        lambda x, v: inlay.put_along_axis(x, index, v, axis),
        lambda x, v: x.scatter(axis, at(index), v),
    )


@pair("scatter_add")
def _(draw: Draw) -> Any:
    shape = draw.shape()
    axis = draw.axis(shape)
    index = draw.rng.integers(0, max(shape[axis], 1), shape)
    return (
        [draw.numbers(*shape), draw.numbers(*shape)],
        lambda x, v: inlay.put_along_axis(x, index, v, axis, "add"),
        lambda x, v: x.scatter_add(axis, at(index), v),
    )


@pair("index_add")
def _(draw: Draw) -> Any:
    shape, axis, count = rows(draw)
    index = draw.index(shape[axis], count) % max(shape[axis], 1)
    return (
        [draw.numbers(*shape), draw.numbers(*resized(shape, axis, count))],
        lambda x, v: inlay.index_add(x, index, axis, v),
        lambda x, v: x.index_add(axis, at(index), v),
    )


@pair("index_fill")
def _(draw: Draw) -> Any:
    shape, axis, count = rows(draw)
    index = draw.index(shape[axis], count) % max(shape[axis], 1)
    return (
        [draw.numbers(*shape), draw.numbers()],
        lambda x, v: inlay.index_fill(x, index, axis, v),
        lambda x, v: x.index_fill(axis, at(index), v),
    )


@pair("masked_fill")
def _(draw: Draw) -> Any:
    shape = draw.shape(0)
    mask = draw.mask(*draw.broadcastable(shape))
    return (
        [draw.numbers(*shape), draw.numbers()],
        lambda x, v: inlay.masked_fill(x, mask, v),
        lambda x, v: x.masked_fill(torch.tensor(mask), v),
    )


@pair("masked_scatter")
def _(draw: Draw) -> Any:
    shape = draw.shape()
    mask = draw.mask(*shape)
    return (
        [draw.numbers(*shape), draw.numbers(*shape)],
        lambda x, v: inlay.masked_scatter(x, mask, v),
        lambda x, v: x.masked_scatter(torch.tensor(mask), v),
    )


@pair("masked_select")
def _(draw: Draw) -> Any:
    shape = draw.shape(0)
    mask = draw.mask(*draw.broadcastable(shape))
    return (
        [draw.numbers(*shape)],
        lambda x: inlay.masked_select(x, mask),
        lambda x: x.masked_select(torch.tensor(mask)),
    )


@pair("select_scatter", real_only=True)
def _(draw: Draw) -> Any:
    draw.zero_size = False
    shape = draw.shape()
    axis = draw.axis(shape)
    index = int(draw.index(shape[axis]))
    return (
        [draw.numbers(*shape), draw.numbers(*without(shape, axis))],
        lambda x, v: inlay.select_scatter(x, v, axis, index),
        lambda x, v: torch.select_scatter(x, v, axis, index),
    )


@pair("slice_scatter", real_only=True)
def _(draw: Draw) -> Any:
    shape = draw.shape()
    axis = draw.axis(shape)
    start, step = int(draw.rng.integers(0, shape[axis] + 1)), int(draw.rng.integers(1, 4))
    count = len(range(start, shape[axis], step))
    return (
        [draw.numbers(*shape), draw.numbers(*resized(shape, axis, count))],
        lambda x, v: inlay.slice_scatter(x, v, axis, start, None, step),
        lambda x, v: torch.slice_scatter(x, v, axis, start, None, step),
    )


@pair("diagonal_scatter")
def _(draw: Draw) -> Any:
    shape = draw.shape(2)
    axis1, axis2 = map(int, draw.rng.permutation(len(shape))[:2])
    offset = int(draw.rng.integers(-2, 3))
    x = draw.numbers(*shape)
    src = draw.numbers(*np.diagonal(x, offset, axis1, axis2).shape)
    return (
        [x, src],
        lambda x, v: inlay.diagonal_scatter(x, v, offset, axis1, axis2),
        lambda x, v: torch.diagonal_scatter(x, v, offset, axis1, axis2),
    )


@pair("index_put")
def _(draw: Draw) -> Any:
    places = unique(draw, 12, 5)
    indices = [places // 3, places % 3 - 3]
    return (
        [draw.numbers(4, 3, 2), draw.numbers(5, 1)],
        lambda x, v: inlay.index_put(x, indices, v),
        lambda x, v: x.index_put(tuple(map(at, indices)), v),
    )


@pair("index_put, accumulate")
def _(draw: Draw) -> Any:
    indices = [draw.index(4, 5, 2), draw.index(3, 2)]
    return (
        [draw.numbers(4, 3, 2), draw.numbers(5, 2, 2)],
        lambda x, v: inlay.index_put(x, indices, v, accumulate=True),
        lambda x, v: x.index_put(tuple(map(at, indices)), v, accumulate=True),
    )


@pair("index_select")
def _(draw: Draw) -> Any:
    shape, axis, count = rows(draw)
    index = draw.index(shape[axis], count) % max(shape[axis], 1)
    return (
        [draw.numbers(*shape)],
        lambda x: inlay.index_select(x, index, axis),
        lambda x: x.index_select(axis, at(index)),
    )


@pair("gather")
def _(draw: Draw) -> Any:
    shape = draw.shape()
    axis = draw.axis(shape)
    index = draw.rng.integers(0, max(shape[axis], 1), shape)
    return (
        [draw.numbers(*shape)],
        lambda x: inlay.take_along_axis(x, index, axis),
        lambda x: x.gather(axis, at(index)),
    )


@pair("diagonal, tril and triu")
def _(draw: Draw) -> Any:
    offset = int(draw.rng.integers(-2, 3))
    return (
        [draw.numbers(*draw.shape(2))],
        lambda x: inlay.diagonal(inlay.tril(x, 1) * inlay.triu(x, -1), offset),
        lambda x: (x.tril(1) * x.triu(-1)).diagonal(offset),
    )


@pair("arithmetic")
def _(draw: Draw) -> Any:
    shape = draw.shape(0)
    arrays = [draw.numbers(*draw.broadcastable(shape)) for _ in range(3)]
    condition = draw.mask(*shape)
    return (
        arrays,
        lambda x, y, z: inlay.where(condition, x * y - z, x / y + z),
        lambda x, y, z: torch.where(torch.tensor(condition), x * y - z, x / y + z),
    )


pair.add_folds(torch)


@pair("cast")
def _(draw: Draw) -> Any:
    return (
        [draw.real((2, 3))],
        lambda x: x.cast("complex128") * (1 - 2j),
        lambda x: x.to(torch.complex128) * (1 - 2j),
    )


@pair("concat and stack")
def _(draw: Draw) -> Any:
    return (
        [draw.numbers(2, 3), draw.numbers(2, 3)],
        lambda x, y: inlay.stack([inlay.concat([x, y], 1), inlay.concat([y, y], 1)], 1),
        lambda x, y: torch.stack([torch.cat([x, y], 1), torch.cat([y, y], 1)], 1),
    )
