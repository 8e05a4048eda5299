"""Cases of writes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from gradcheck import REDUCES, Draw, resized, without

import inlay

from .registry import Case, case, written


@case("scatter overwrite")
def _(draw: Draw) -> Case:
    return scatter_case(draw)


def scatter_case(draw: Draw, axis: int | None = None, **options: Any) -> Case:
    shape = draw.shape(1 if axis is None else 3)
    axis = draw.axis(shape) if axis is None else axis
    size = shape[axis]
    x = draw.numbers(*shape)
    if draw.rng.random() < 0.2 and size:
        index, updates = draw.index(size), draw.numbers(*without(shape, axis))
    else:
        count = draw.count(size)
        longer = count + int(draw.rng.integers(0, 3))
        index, updates = draw.index(size, count), draw.numbers(*resized(shape, axis, longer))
    options = {"overwrite": True, "axis": axis, "index": index, "source": "updates", **options}
    return written(draw, x, updates, "scatter", **options)


for _axis, _name in [(0, "first"), (1, "middle"), (-1, "last")]:

    @case(f"scatter overwrite, {_name} axis")
    def _(draw: Draw, axis: int = _axis) -> Case:
        return scatter_case(draw, axis)


for _reduce, _self in itertools.product(REDUCES, [True, False]):
    _with = "with self" if _self else "without self"
    _options = {"reduce": _reduce, "include_self": _self}
    _real = _reduce in ("amax", "amin")

    @case(f"scatter {_reduce} {_with}", _real)
    def _(draw: Draw, options: dict[str, Any] = _options) -> Case:
        return scatter_case(draw, overwrite=False, **options)

    for _axis, _name in [(0, "first"), (1, "middle"), (-1, "last")]:

        @case(f"scatter {_reduce} {_with}, {_name} axis", _real)
        def _(draw: Draw, axis: int = _axis, options: dict[str, Any] = _options) -> Case:
            return scatter_case(draw, axis, overwrite=False, **options)


@case("scatter, 0-D index")
def _(draw: Draw) -> Case:
    shape = (draw.rng.integers(1, 4), *draw.shape(0, 2))
    shape = tuple(map(int, draw.rng.permutation(shape)))
    axis = max(range(len(shape)), key=lambda axis: shape[axis])
    x, updates = draw.numbers(*shape), draw.numbers(*without(shape, axis))
    reduce = str(draw.rng.choice(["sum", "mul", "mean"]))
    options = {"overwrite": False, "reduce": reduce, "include_self": True}
    index = draw.index(shape[axis])
    return written(draw, x, updates, "scatter", source="updates", index=index, axis=axis, **options)


@case("scatter, updates longer than the index")
def _(draw: Draw) -> Case:
    x, updates = draw.numbers(3, 2), draw.numbers(5, 2)
    reduce = str(draw.rng.choice(["sum", "mul", "mean"]))
    options = {"overwrite": False, "reduce": reduce, "include_self": bool(draw.rng.integers(2))}
    return written(draw, x, updates, "scatter", source="updates", index=draw.index(3, 2), **options)


def along_axis_case(draw: Draw, reduce: str, include_self: bool, broadcast: bool) -> Case:
    shape = draw.shape()
    axis = draw.axis(shape) % len(shape)
    count = draw.count(shape[axis])
    entries = resized(shape, axis, count)
    if broadcast:
        index = [1 if draw.rng.random() < 0.3 else size for size in entries]
        index[axis] = count
        # An axis of size 1 that broadcasts to size 0 is empty, too.
        values = [1 if draw.rng.random() < 0.3 else size for size in entries]
    else:
        index = [int(draw.rng.integers(0, size + 1)) for size in entries]
        index[axis] = count
        values = [size + int(draw.rng.integers(0, 2)) for size in index]
    places = draw.index(shape[axis], *index) if shape[axis] else np.zeros(index, int)
    options = {"reduce": reduce, "include_self": include_self, "broadcast": broadcast}
    return written(
        draw,
        draw.numbers(*shape),
        draw.numbers(*values),
        "put_along_axis",
        source="values",
        index=places,
        axis=axis,
        **options,
    )


for _reduce, _self, _stretch in itertools.product(
    ["assign", *REDUCES], [True, False], [True, False]
):

    @case(
        f"put_along_axis {_reduce} {'with' if _self else 'without'} self"
        f"{'' if _stretch else ', no broadcast'}",
        _reduce in ("amax", "amin"),
    )
    def _(draw: Draw, options: tuple[str, bool, bool] = (_reduce, _self, _stretch)) -> Case:
        return along_axis_case(draw, *options)


@case("slice_scatter")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axis(shape)
    part = draw.slice(shape[axis])
    count = len(range(shape[axis])[part])
    return written(
        draw,
        draw.numbers(*shape),
        draw.numbers(*resized(shape, axis, count)),
        "slice_scatter",
        source="y",
        axis=axis,
        start=part.start,
        stop=part.stop,
        step=part.step,
    )


@case("slice_scatter, several axes")
def _(draw: Draw) -> Case:
    shape = draw.shape(3)
    axes = [0, -1]
    parts = [draw.slice(shape[axis]) for axis in axes]
    x = draw.numbers(*shape)
    y = draw.numbers(*x[parts[0], :, parts[1]].shape)
    options = {key: [getattr(part, key) for part in parts] for key in ("start", "stop", "step")}
    return written(draw, x, y, "slice_scatter", source="y", axis=axes, **options)


@case("diagonal_scatter")
def _(draw: Draw) -> Case:
    shape = draw.shape(2)
    axis1, axis2 = map(int, draw.rng.permutation(len(shape))[:2])
    axis1 -= len(shape) * int(draw.rng.integers(2))
    offset = int(draw.rng.integers(-3, 4))
    x = draw.numbers(*shape)
    src = draw.numbers(*np.diagonal(x, offset, axis1, axis2).shape)
    options = {"offset": offset, "axis1": axis1, "axis2": axis2}
    return written(draw, x, src, "diagonal_scatter", source="src", **options)


@case("masked_scatter")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    mask = draw.mask(*draw.broadcastable(shape))
    used = int(np.broadcast_to(mask, shape).sum())
    source = draw.numbers(2, used) if draw.rng.integers(2) else draw.numbers(used + 2)
    return written(draw, draw.numbers(*shape), source, "masked_scatter", source="source", mask=mask)


@case("masked_scatter, input broadcast")
def _(draw: Draw) -> Case:
    shape = draw.shape(1)
    mask = draw.mask(2, *shape)
    x = draw.numbers(*draw.broadcastable(shape))
    source = draw.numbers(int(mask.sum()) + 1)
    return Case(lambda x, source: inlay.masked_scatter(x, mask, source), [x, source])


@case("select_scatter")
def _(draw: Draw) -> Case:
    shape = tuple(size or 2 for size in draw.shape())
    axis = draw.axis(shape)
    if draw.zero_size and len(shape) > 1:
        shape = resized(shape, axis - 1, 0)
    x, values = draw.numbers(*shape), draw.numbers(*without(shape, axis))
    index = int(draw.index(shape[axis]))
    return written(draw, x, values, "select_scatter", source="values", axis=axis, index=index)


@case("index_fill")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axis(shape)
    index = draw.index(shape[axis], draw.count(shape[axis]))
    x, value = draw.numbers(*shape), draw.numbers()
    return written(draw, x, value, "index_fill", source="value", axis=axis, index=index)


@case("masked_fill")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    x, value = draw.numbers(*shape), draw.numbers()
    mask = draw.mask(*draw.broadcastable(shape))
    return written(draw, x, value, "masked_fill", source="value", mask=mask)


@case("index_add")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axis(shape)
    count = draw.count(shape[axis])
    x, value = draw.numbers(*shape), draw.numbers(*resized(shape, axis, count))
    index = draw.index(shape[axis], count)
    return written(draw, x, value, "index_add", source="value", index=index, axis=axis)


for _accumulate in [True, False]:

    @case(f"index_put{', accumulate' if _accumulate else ''}")
    def _(draw: Draw, accumulate: bool = _accumulate) -> Case:
        shape = draw.shape()
        depth = int(draw.rng.integers(1, len(shape) + 1))
        entries = (2, 3) if min(shape[:depth]) else (2, 0)
        indices = [draw.index(size, *entries) for size in shape[:depth]]
        if depth > 1 and min(shape[:depth]):
            indices[0] = indices[0][:1]  # broadcasts
        value = draw.numbers(*draw.broadcastable(entries + shape[depth:]))
        options = {"indices": indices, "accumulate": accumulate}
        return written(draw, draw.numbers(*shape), value, "index_put", source="value", **options)


@case("index_put at a mask")
def _(draw: Draw) -> Case:
    shape = draw.shape(2)
    mask = draw.mask(*shape[:2])
    value = draw.numbers(int(mask.sum()), *shape[2:])
    return written(draw, draw.numbers(*shape), value, "index_put", source="value", indices=[mask])


@case("index_put at a mask and an index")
def _(draw: Draw) -> Case:
    mask, index = draw.mask(3), draw.index(2, 1)
    x, value = draw.numbers(3, 2, 2), draw.numbers(int(mask.sum()), 2)
    return written(draw, x, value, "index_put", source="value", indices=[mask, index])


def nd_index(draw: Draw, shape: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """An index and the shape of its updates."""
    depth = int(draw.rng.integers(1, len(shape) + 1))
    entries = (2, 3) if min(shape[:depth]) else (0,)
    parts = [draw.index(size, *entries) for size in shape[:depth]]
    return np.stack(parts, -1), entries + shape[depth:]


@case("scatter_nd_add")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    index, updates = nd_index(draw, shape)
    x = draw.numbers(*shape)
    return Case(lambda x, u: inlay.scatter_nd_add(x, index, u), [x, draw.numbers(*updates)])


@case("scatter_nd")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    index, updates = nd_index(draw, shape)
    return Case(lambda u: inlay.scatter_nd(index, u, shape), [draw.numbers(*updates)])
