"""Cases of reads, and of keys `x[...]`, which read and write."""

from __future__ import annotations

from typing import Any

import numpy as np
from gradcheck import Draw, Function, resized

import inlay

from .registry import Case, case


@case("index_select")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axis(shape)
    index = draw.index(shape[axis], draw.count(shape[axis]))
    return Case(lambda x: inlay.index_select(x, index, axis), [draw.numbers(*shape)])


@case("take_along_axis")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axis(shape)
    index = draw.index(shape[axis], *resized(shape, axis, draw.count(shape[axis])))
    return Case(lambda x: inlay.take_along_axis(x, index, axis), [draw.numbers(*shape)])


@case("take_along_axis, index stretched")
def _(draw: Draw) -> Case:
    shape = tuple(size or 2 for size in draw.shape(2))
    axis = draw.axis(shape)
    index = draw.index(shape[axis], *resized((1,) * len(shape), axis, 5))
    return Case(lambda x: inlay.take_along_axis(x, index, axis), [draw.numbers(*shape)])


@case("take_along_axis, no broadcast")
def _(draw: Draw) -> Case:
    shape = draw.shape(2)
    axis = draw.axis(shape)
    entries = [int(draw.rng.integers(0, size + 1)) for size in shape]
    entries[axis] = draw.count(shape[axis])
    index = draw.index(shape[axis], *entries) if shape[axis] else np.zeros(entries, int)
    x = draw.numbers(*shape)
    return Case(lambda x: inlay.take_along_axis(x, index, axis, broadcast=False), [x])


@case("masked_select")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    mask = draw.mask(*draw.broadcastable(shape))
    return Case(lambda x: inlay.masked_select(x, mask), [draw.numbers(*shape)])


@case("index_get")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    depth = int(draw.rng.integers(1, len(shape) + 1))
    entries = (2, 3) if min(shape[:depth]) else (2, 0)
    indices = [draw.index(size, *entries) for size in shape[:depth]]
    return Case(lambda x: inlay.index_get(x, indices), [draw.numbers(*shape)])


@case("index_get, a mask and an index")
def _(draw: Draw) -> Case:
    mask, index = draw.mask(3), draw.index(2, 1)
    return Case(lambda x: inlay.index_get(x, [mask, index]), [draw.numbers(3, 2, 2)])


@case("gather_nd")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    depth = int(draw.rng.integers(1, len(shape) + 1))
    entries = (2, 3) if min(shape[:depth]) else (0,)
    index = np.stack([draw.index(size, *entries) for size in shape[:depth]], -1)
    return Case(lambda x: inlay.gather_nd(x, index), [draw.numbers(*shape)])


@case("diagonal")
def _(draw: Draw) -> Case:
    shape = draw.shape(2)
    axis1, axis2 = map(int, draw.rng.permutation(len(shape))[:2])
    offset = int(draw.rng.integers(-3, 4))
    return Case(
        lambda x: inlay.diagonal(x, offset, axis1 - len(shape), axis2), [draw.numbers(*shape)]
    )


for _name in ["tril", "triu"]:

    @case(_name)
    def _(draw: Draw, name: str = _name) -> Case:
        op = getattr(inlay, name)
        offset = int(draw.rng.integers(-3, 4))
        return Case(lambda x: op(x, offset), [draw.numbers(*draw.shape(2))])


KEYS: dict[str, Function] = {
    "slices": lambda draw: np.s_[1:, ::-2],
    "an int and a slice": lambda draw: np.s_[-1, ..., ::-1],
    "ints": lambda draw: np.s_[1, -2, 0],
    "None": lambda draw: np.s_[None, :, None, ..., 1:],
    "ellipsis": lambda draw: np.s_[...],
    "a mask": lambda draw: draw.mask(3, 3),
    "a mask in the middle": lambda draw: (slice(None), draw.mask(3, 2)),
    "integers": lambda draw: draw.index(3, 5),
    "two tensors": lambda draw: (draw.index(3, 4), draw.index(3, 4)),
    "tensors that broadcast": lambda draw: (draw.index(3, 2, 1), draw.index(3, 3), draw.index(2)),
    "tensors around a slice": lambda draw: (draw.index(3, 4), slice(None, None, -1), draw.index(2)),
    "tensors that come first": lambda draw: (draw.index(3, 2), slice(1, None), draw.index(2, 2)),
    "a tensor and a mask": lambda draw: (draw.index(3, 1), draw.mask(3)),
    "tensors around None": lambda draw: (slice(None), draw.index(3, 2), None, draw.index(2, 2)),
    "integers after a slice": lambda draw: (slice(None, None, -1), draw.index(3, 2, 2), 0),
}


def as_tensors(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(as_tensors(item) for item in key)
    return inlay.to_tensor(key) if isinstance(key, np.ndarray) else key


for _name, _key in KEYS.items():

    @case(f"getitem {_name}")
    def _(draw: Draw, key: Function = _key) -> Case:
        key = as_tensors(key(draw))
        return Case(lambda x: x[key], [draw.numbers(3, 3, 2)])

    @case(f"setitem {_name}")
    def _(draw: Draw, key: Function = _key) -> Case:
        key = key(draw)
        x = draw.numbers(3, 3, 2)
        value = draw.numbers(*draw.broadcastable(x[key].shape))
        key = as_tensors(key)

        def write(x: inlay.Tensor, value: inlay.Tensor) -> inlay.Tensor:
            y = x * 1.0
            y[key] = value
            return y * y

        return Case(write, [x, value])


@case("getitem 0-D")
def _(draw: Draw) -> Case:
    return Case(lambda x: x[None, ..., None], [draw.numbers()])


@case("setitem 0-D")
def _(draw: Draw) -> Case:
    def write(x: inlay.Tensor, value: inlay.Tensor) -> inlay.Tensor:
        y = x * 2.0
        y[...] = value
        return y * x

    return Case(write, [draw.numbers(), draw.numbers()])
