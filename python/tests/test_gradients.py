"""Gradients: against central differences, against values derived by hand, and how to ask for them.

The numerical check takes every differentiable operation and option to first and second order, in
float64 and complex128. A gradient of a complex tensor is dL/dRe + i dL/dIm for a real loss L, as in
PyTorch and Paddle.
"""

from __future__ import annotations

import gc
import itertools
import operator
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import inlay

REDUCES = ["sum", "mul", "mean", "amax", "amin"]
SHORT_FLOATS = [np.float16, ml_dtypes.bfloat16]
Function = Callable[..., Any]


def leaf(array: Any, dtype: Any = None) -> inlay.Tensor:
    return inlay.to_tensor(np.array(array, dtype=dtype), stop_gradient=False)


def grad_list(tensor: inlay.Tensor) -> Any:
    assert tensor.grad is not None
    return tensor.grad.tolist()


# What the numerical check draws from.


class Draw:
    """Random shapes, indices and numbers; the numbers are distinct, none is near 0."""

    def __init__(self, seed: object, dtype: str, zero_size: bool = False) -> None:
        self.rng = np.random.default_rng(zlib.crc32(repr(seed).encode()))
        self.dtype = np.dtype(dtype)
        self.zero_size = zero_size
        pool = np.linspace(0.3, 2.0, 4000)
        self.pool = self.rng.permutation(pool * self.rng.choice([-1, 1], pool.size))

    def real(self, shape: Any) -> np.ndarray:
        count = int(np.prod(shape, dtype=int))
        numbers, self.pool = self.pool[:count], self.pool[count:]
        return numbers.reshape(shape)

    def numbers(self, *shape: int) -> np.ndarray:
        if self.dtype.kind == "c":
            return np.asarray(self.real(shape) + 1j * self.real(shape))
        return self.real(shape)

    def shape(self, least: int = 1, most: int = 3) -> tuple[int, ...]:
        shape = self.rng.integers(1, 4, self.rng.integers(least, most + 1))
        if self.zero_size and shape.size:
            shape[self.rng.integers(shape.size)] = 0
        return tuple(map(int, shape))

    def axis(self, shape: tuple[int, ...]) -> int:
        """From either end."""
        return int(self.rng.integers(-len(shape), len(shape)))

    def index(self, size: int, *shape: int) -> np.ndarray:
        """With duplicates and negatives; empty if there is nothing to name."""
        if size == 0:
            assert 0 in shape
            return np.zeros(shape, int)
        return self.rng.integers(-size, size, shape)

    def count(self, size: int) -> int:
        """How many entries an index into `size` has, often more than there are places."""
        return int(self.rng.integers(0, 2 * size + 1)) if size else 0

    def mask(self, *shape: int) -> np.ndarray:
        return self.rng.random(shape) < 0.5

    def slice(self, size: int) -> slice:
        bounds = [None, *range(-size - 2, size + 3)]
        start, stop = (bounds[self.rng.integers(len(bounds))] for _ in range(2))
        return slice(start, stop, int(self.rng.choice([-3, -2, -1, 1, 2, 3])))

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that stretches to `shape`."""
        kept = shape[self.rng.integers(len(shape) + 1) :]
        return tuple(1 if self.rng.random() < 0.3 else size for size in kept)


def without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    axis %= len(shape)
    return shape[:axis] + shape[axis + 1 :]


def resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    axis %= len(shape)
    return (*shape[:axis], size, *shape[axis + 1 :])


# The cases: each draws inputs and gives a function of them, and its in-place twin if it has one,
# which writes into its first argument.


@dataclass
class Case:
    function: Function
    inputs: list[np.ndarray]
    twin: Function | None = None


CASES: dict[str, Callable[[Draw], Case]] = {}
REAL_ONLY = set()


def case(name: str, real_only: bool = False) -> Callable[[Callable[[Draw], Case]], Any]:
    def add(make: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
        assert name not in CASES
        CASES[name] = make
        if real_only:
            REAL_ONLY.add(name)
        return make

    return add


def written(draw: Draw, x: np.ndarray, y: np.ndarray, name: str, **options: Any) -> Case:
    """A write `name(x, **options, y)` with a twin."""
    op, twin = getattr(inlay, name), getattr(inlay, name + "_")
    source = options.pop("source")
    return Case(
        lambda x, y: op(x, **{source: y}, **options),
        [x, y],
        lambda x, y: twin(x, **{source: y}, **options),
    )


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
        # What stretches from 1 to 0 is empty as well.
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
            indices[0] = indices[0][:1]  # stretches
        value = draw.numbers(*draw.broadcastable(entries + shape[depth:]))
        options = {"indices": indices, "accumulate": accumulate}
        return written(draw, draw.numbers(*shape), value, "index_put", source="value", **options)


@case("index_put at a mask")
def _(draw: Draw) -> Case:
    shape = draw.shape(2)
    mask = draw.mask(*shape[:2])
    value = draw.numbers(int(mask.sum()), *shape[2:])
    return written(draw, draw.numbers(*shape), value, "index_put", source="value", indices=[mask])


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


# Reads.


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


# The rest.


@case("where")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    condition = draw.mask(*draw.broadcastable(shape))
    x, y = (draw.numbers(*draw.broadcastable(shape)) for _ in range(2))
    return Case(lambda x, y: inlay.where(condition, x, y), [x, y])


for _name in ["add", "subtract", "multiply", "divide"]:

    @case(_name)
    def _(draw: Draw, name: str = _name) -> Case:
        op = getattr(inlay, name)
        shape = draw.shape(0)
        x, y = (draw.numbers(*draw.broadcastable(shape)) for _ in range(2))
        return Case(op, [x, y])

    @case(f"{_name} by itself")
    def _(draw: Draw, name: str = _name) -> Case:
        op = getattr(inlay, name)
        return Case(lambda x: op(x, x) * x, [draw.numbers(*draw.shape(0))])


@case("operators with numbers")
def _(draw: Draw) -> Case:
    return Case(lambda x: 2 - 3 / (-x * 0.5) + (x - 1) * x / 4, [draw.numbers(*draw.shape(0))])


for _name in ["sum", "mean", "prod", "amax", "amin"]:

    @case(f"{_name} over all", _name in ("amax", "amin"))
    def _(draw: Draw, name: str = _name) -> Case:
        op = getattr(inlay, name)
        draw.zero_size &= op in (inlay.sum, inlay.prod)  # the mean of nothing has its own test
        keepdim = bool(draw.rng.integers(2))
        return Case(lambda x: op(x, keepdim=keepdim), [draw.numbers(*draw.shape(0))])

    @case(f"{_name} over axes", _name in ("amax", "amin"))
    def _(draw: Draw, name: str = _name) -> Case:
        op = getattr(inlay, name)
        draw.zero_size &= op in (inlay.sum, inlay.prod)  # the mean of nothing has its own test
        shape = draw.shape(1)
        axes = [int(axis) for axis in draw.rng.permutation(len(shape))[: draw.rng.integers(1, 3)]]
        axes[0] -= len(shape) * int(draw.rng.integers(2))
        keepdim = bool(draw.rng.integers(2))
        axis = axes[0] if len(axes) == 1 else axes
        return Case(lambda x: op(x, axis, keepdim), [draw.numbers(*shape)])


@case("cast to complex")
def _(draw: Draw) -> Case:
    factor = draw.real((3,)) + 1j * draw.real((3,))

    def through(x: inlay.Tensor) -> inlay.Tensor:
        z = inlay.cast(x, "complex128")
        return z * z * factor

    return Case(through, [draw.real((2, 3))])


@case("reshape")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    return Case(lambda x: inlay.reshape(x, [*shape[::-1], 1]), [draw.numbers(*shape)])


@case("transpose")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    perm = [int(axis) for axis in draw.rng.permutation(len(shape))]
    return Case(lambda x: inlay.transpose(x, perm), [draw.numbers(*shape)])


@case("T")
def _(draw: Draw) -> Case:
    return Case(lambda x: x.T * x, [draw.numbers(3, 3)])


@case("broadcast_to")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    x = draw.numbers(*draw.broadcastable(shape))
    return Case(lambda x: inlay.broadcast_to(x, shape), [x])


@case("concat")
def _(draw: Draw) -> Case:
    shape = draw.shape()
    axis = draw.axis(shape)
    parts = [draw.numbers(*resized(shape, axis, size)) for size in (2, 0, 3)]
    return Case(lambda *x: inlay.concat([*x, x[0]], axis), parts)


@case("stack")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    axis = draw.axis((*shape, 1))
    parts = [draw.numbers(*shape) for _ in range(3)]
    return Case(lambda *x: inlay.stack([*x, x[0]], axis), parts)


@case("copy")
def _(draw: Draw) -> Case:
    return Case(lambda x: x.copy() * x.clone(), [draw.numbers(*draw.shape(0))])


@case("a chain of writes", real_only=True)
def _(draw: Draw) -> Case:
    index = draw.index(4, 6)

    def chain(x: inlay.Tensor, u: inlay.Tensor, d: inlay.Tensor) -> inlay.Tensor:
        y = inlay.scatter(x, index, u, overwrite=False, reduce="mul", include_self=True)
        y = inlay.diagonal_scatter(y, d * y[0]) * y
        y = inlay.slice_scatter(y, y[::2] * u[:2], step=2)
        return y.masked_select(y.numpy() > 0)

    return Case(chain, [draw.numbers(4, 4), draw.numbers(6, 4), draw.numbers(4)])


for _sign in ["+", "-", "*", "/"]:

    @case(f"{_sign}=")
    def _(draw: Draw, sign: str = _sign) -> Case:
        out, op = {
            "+": (operator.add, operator.iadd),
            "-": (operator.sub, operator.isub),
            "*": (operator.mul, operator.imul),
            "/": (operator.truediv, operator.itruediv),
        }[sign]
        # The other operand wants no gradient; where it does, see the tests of in-place rules.
        other = draw.numbers(3)
        return Case(lambda x: out(x, other), [draw.numbers(2, 3)], lambda x: op(x, other))


# The numerical check.

LAYOUTS: dict[str, Function] = {
    "contiguous": lambda a: a.copy(),
    "columns": lambda a: np.array(a, order="F"),
    "steps": lambda a: spread(a),
}


def spread(a: np.ndarray) -> np.ndarray:
    """The same elements, backwards and with gaps in memory."""
    wide = np.full(tuple(2 * size for size in a.shape), 99.0, a.dtype)
    view = wide[(..., *(slice(None, None, -2) for _ in a.shape))]
    view[...] = a
    return view


def leaves(arrays: list[np.ndarray], layout: Function) -> list[inlay.Tensor]:
    tensors = [inlay.from_numpy(layout(array)) for array in arrays]
    for tensor in tensors:
        tensor.stop_gradient = False
    return tensors


def random_like(array: Any, rng: np.random.Generator) -> np.ndarray:
    array = np.asarray(array)
    numbers = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(array.shape)
    return np.asarray(numbers, array.dtype)


def by_differences(
    function: Callable[[list[np.ndarray]], list[np.ndarray]],
    arrays: list[np.ndarray],
    weights: list[np.ndarray],
    step: float,
) -> list[np.ndarray]:
    """The gradient of Re <weights, function(arrays)>."""

    def loss(arrays: list[np.ndarray]) -> float:
        results = function(arrays)
        return sum(float(np.vdot(w, y).real) for w, y in zip(weights, results, strict=True))

    grads = []
    for k, array in enumerate(arrays):
        grad = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            for way in [1, 1j] if array.dtype.kind == "c" else [1]:
                ends = []
                for sign in [1, -1]:
                    moved = [other.copy() for other in arrays]
                    moved[k][at] += sign * way * step
                    ends.append(loss(moved))
                grad[at] += way * (ends[0] - ends[1]) / (2 * step)
        grads.append(grad)
    return grads


def first_order(function: Function, layout: Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The gradients of `function` at all arrays but the last, which is the seed."""
    tensors = leaves(arrays, layout)
    grads = inlay.grad(function(*tensors[:-1]), tensors[:-1], grad_outputs=[tensors[-1]])
    return [grad.numpy() for grad in grads]


def second_order(
    function: Function, layout: Function, arrays: list[np.ndarray], weights: list[np.ndarray]
) -> list[np.ndarray]:
    """The gradients of <weights, gradients of `function`>, at all arrays and the seed."""
    tensors = leaves(arrays, layout)
    y = function(*tensors[:-1])
    grads = inlay.grad(y, tensors[:-1], grad_outputs=[tensors[-1]], create_graph=True)
    tracked = [(g, w) for g, w in zip(grads, weights, strict=True) if not g.stop_gradient]
    if not tracked:
        return [np.zeros_like(array) for array in arrays]
    outputs, seeds = zip(*tracked, strict=True)
    found = inlay.grad(list(outputs), tensors, grad_outputs=list(seeds), allow_unused=True)
    return [
        np.zeros_like(array) if grad is None else grad.numpy()
        for grad, array in zip(found, arrays, strict=True)
    ]


def value_of(function: Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with inlay.no_grad():
        return [function(*(inlay.from_numpy(array) for array in arrays)).numpy()]


def assert_close(got: list[np.ndarray], expected: list[np.ndarray], what: str) -> None:
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6, err_msg=f"{what}, input {k}")


def params(names: Any) -> Any:
    found = [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for name in names
        for dtype in ("float64", "complex128")
        if not (dtype == "complex128" and name in REAL_ONLY)
    ]
    return pytest.mark.parametrize(("name", "dtype"), found)


each_case = params(CASES)
each_twin = params(name for name in CASES if CASES[name](Draw(name, "float64")).twin)


def draws(name: str, dtype: str, count: int) -> list[tuple[Case, Draw]]:
    """Some cases of a kind; every fourth has no elements in one dimension."""
    found = []
    for k in range(count):
        draw = Draw((name, dtype, k), dtype, zero_size=k % 4 == 3)
        found.append((CASES[name](draw), draw))
    return found


@each_case
def test_gradients_are_those_of_differences(name: str, dtype: str) -> None:
    layouts = itertools.cycle(LAYOUTS.values())
    for case, draw in draws(name, dtype, 16):
        (y,) = value_of(case.function, case.inputs)
        seed = random_like(y, draw.rng)
        got = first_order(case.function, next(layouts), [*case.inputs, seed])
        expected = by_differences(
            lambda arrays, case=case: value_of(case.function, arrays), case.inputs, [seed], 1e-5
        )
        assert_close(got, expected, name)


@each_case
def test_second_gradients_are_those_of_differences(name: str, dtype: str) -> None:
    layouts = itertools.cycle(LAYOUTS.values())
    for case, draw in draws(name, dtype, 8):
        (y,) = value_of(case.function, case.inputs)
        arrays = [*case.inputs, random_like(y, draw.rng)]
        weights = [random_like(array, draw.rng) for array in case.inputs]
        got = second_order(case.function, next(layouts), arrays, weights)
        expected = by_differences(
            lambda arrays, case=case: first_order(case.function, LAYOUTS["contiguous"], arrays),
            arrays,
            weights,
            1e-5,
        )
        assert_close(got, expected, name)


@each_twin
def test_in_place_twins_have_the_same_gradients(name: str, dtype: str) -> None:
    layouts = itertools.cycle(LAYOUTS.values())
    for case, draw in draws(name, dtype, 8):

        def in_place(x: Any, *rest: Any, twin: Function = case.twin) -> Any:
            target = x * 1.0
            result = twin(target, *rest)
            assert result is target
            assert not result.stop_gradient
            return result

        (y,) = value_of(case.function, case.inputs)
        arrays = [*case.inputs, random_like(y, draw.rng)]
        weights = [random_like(array, draw.rng) for array in case.inputs]
        layout = next(layouts)
        np.testing.assert_array_equal(value_of(in_place_value(case), case.inputs)[0], y)
        got, expected = (first_order(f, layout, arrays) for f in (in_place, case.function))
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        got, expected = (
            second_order(f, layout, arrays, weights) for f in (in_place, case.function)
        )
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def in_place_value(case: Case) -> Function:
    assert case.twin is not None
    return lambda x, *rest, twin=case.twin: twin(x.copy(), *rest)


def test_the_mean_of_nothing_has_a_second_gradient_of_0() -> None:
    """The gradient of an empty tensor is empty: what is made of it can't depend on the seed."""
    x, seed = leaf(np.zeros(0)), leaf(1.0)
    (g,) = inlay.grad(x.mean(), x, grad_outputs=[seed], create_graph=True)
    (h,) = inlay.grad(g, seed, grad_outputs=[np.zeros(0)])
    assert h.item() == 0


# Exact values.


def scattered(u: Any, reduce: str, x: Any = None) -> Any:
    """All of u reduced into one place, with x if there is one."""
    base = np.full(1, 7, u.numpy().dtype) if x is None else x
    index = np.zeros(u.size, int)
    options = {"overwrite": False, "reduce": reduce, "include_self": x is not None}
    return inlay.scatter(base, index, u, **options).sum()


def put(u: Any, reduce: str, x: Any = None) -> Any:
    base = np.full(1, 7, u.numpy().dtype) if x is None else x
    index = np.zeros(u.size, int)
    return inlay.put_along_axis(base, index, u, 0, reduce, include_self=x is not None).sum()


PRODUCTS: dict[str, Function] = {
    "scatter": lambda u: scattered(u, "mul"),
    "put_along_axis": lambda u: put(u, "mul"),
    "prod": lambda u: inlay.prod(u),
}
SELF_PRODUCTS: dict[str, Function] = {
    "scatter": lambda x, u: scattered(u, "mul", x),
    "put_along_axis": lambda x, u: put(u, "mul", x),
    "prod": lambda x, u: inlay.prod(inlay.concat([x, u])),
}
each_product = pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
each_self_product = pytest.mark.parametrize(
    "product", SELF_PRODUCTS.values(), ids=SELF_PRODUCTS.keys()
)
each_scatter = pytest.mark.parametrize("scatter", [scattered, put])
each_extreme = pytest.mark.parametrize("reduce", ["amax", "amin"])
each_short = pytest.mark.parametrize("dtype", SHORT_FLOATS, ids=["float16", "bfloat16"])


@each_scatter
@each_extreme
def test_ties_without_self_share_the_gradient_among_the_updates(
    scatter: Function, reduce: str
) -> None:
    # y = max(3, 3), whatever x is, even 3 as well: two equal the result, so each has half.
    for old in [3.0, 5.0, -5.0]:
        x, u = leaf([old]), leaf([3.0, 3.0])
        if scatter is scattered:
            y = inlay.scatter(x, [0, 0], u, overwrite=False, reduce=reduce, include_self=False)
        else:
            y = inlay.put_along_axis(x, [0, 0], u, 0, reduce, include_self=False)
        y.backward()
        assert y.tolist() == [3.0]
        assert grad_list(u) == [0.5, 0.5]
        assert grad_list(x) == [0.0]


@each_scatter
@each_extreme
def test_ties_with_self_share_the_gradient_with_it(scatter: Function, reduce: str) -> None:
    # y = max(x, 3, 3) and x = 3: three are equal, each has a third. The loser has nothing.
    x, u = leaf([3.0]), leaf([3.0, 3.0, {"amax": 2.0, "amin": 4.0}[reduce]])
    scatter(u, reduce, x).backward()
    assert grad_list(u) == [1 / 3, 1 / 3, 0.0]
    assert grad_list(x) == [1 / 3]


@each_scatter
@each_extreme
def test_a_self_that_loses_or_wins_alone(scatter: Function, reduce: str) -> None:
    sign = {"amax": 1, "amin": -1}[reduce]
    x, u = leaf([1.0 * sign]), leaf([2.0 * sign, 2.0 * sign])
    scatter(u, reduce, x).backward()
    assert (grad_list(x), grad_list(u)) == ([0.0], [0.5, 0.5])
    x, u = leaf([3.0 * sign]), leaf([2.0 * sign, 2.0 * sign])
    scatter(u, reduce, x).backward()
    assert (grad_list(x), grad_list(u)) == ([1.0], [0.0, 0.0])


@each_scatter
@each_extreme
def test_both_zeros_and_infinities_tie(scatter: Function, reduce: str) -> None:
    # 0.0 == -0.0 and inf == inf, so they share.
    for values in [[0.0, -0.0], [np.inf, np.inf], [-np.inf, -np.inf]]:
        u = leaf(values)
        scatter(u, reduce).backward()
        assert grad_list(u) == [0.5, 0.5]


@each_extreme
def test_ties_of_a_reduction_share_the_gradient(reduce: str) -> None:
    # Row 0 has two equal extremes, row 1 one, row 2 three.
    x = leaf([[3.0, 3.0, 3.5], [1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
    if reduce == "amax":
        x = leaf([[3.0, 3.0, 2.5], [3.0, 2.0, 1.0], [4.0, 4.0, 4.0]])
    getattr(inlay, reduce)(x, 1).sum().backward()
    assert grad_list(x) == [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]


@each_extreme
def test_nan_in_one_slot_does_not_poison_the_others(reduce: str) -> None:
    # Slot 0 holds NaN and 1: the result is NaN, which the NaN equals and 1 does not, so the NaN has
    # the gradient. Slot 1 holds 2 alone and gets 1, not NaN. Slot 2 is not named: x has it.
    x, u = leaf([0.0, 0.0, 0.0]), leaf([np.nan, 1.0, 2.0])
    options = {"overwrite": False, "reduce": reduce, "include_self": False}
    y = inlay.scatter(x, [0, 0, 1], u, **options)
    y.sum().backward()
    np.testing.assert_array_equal(y.numpy(), [np.nan, 2.0, 0.0])
    assert grad_list(u) == [1.0, 0.0, 1.0]
    assert grad_list(x) == [0.0, 0.0, 1.0]
    # Two NaNs share.
    u = leaf([np.nan, np.nan, 2.0])
    inlay.scatter(x.detach(), [0, 0, 1], u, **options).sum().backward()
    assert grad_list(u) == [0.5, 0.5, 1.0]


@each_extreme
def test_nan_in_one_row_does_not_poison_the_others(reduce: str) -> None:
    x = leaf([[np.nan, 1.0], [2.0, 2.0]])
    getattr(inlay, reduce)(x, 1).sum().backward()
    assert grad_list(x) == [[1.0, 0.0], [0.5, 0.5]]


def test_nan_in_one_slot_of_a_product_does_not_poison_the_others() -> None:
    # Slot 0: d/du0 = u1 = 2 and d/du1 = u0 = NaN. Slot 1: d/du2 = u3 = 3, d/du3 = u2 = 0.
    u = leaf([np.nan, 2.0, 0.0, 3.0])
    inlay.scatter(np.ones(2), [0, 0, 1, 1], u, overwrite=False, reduce="mul").sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [2.0, np.nan, 3.0, 0.0])


@each_product
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_with_zeros(product: Function, dtype: str) -> None:
    # d(abc)/da = bc, and so on: with one zero only its own derivative is left, with two or three
    # nothing is.
    for values, expected in [
        ([0.0, 3.0, 5.0], [15.0, 0.0, 0.0]),
        ([3.0, 0.0, 5.0], [0.0, 15.0, 0.0]),
        ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ([2.0, 3.0, 5.0], [15.0, 10.0, 6.0]),
    ]:
        u = leaf(values, dtype)
        product(u).backward()
        assert grad_list(u) == expected


def hessian(y: inlay.Tensor, inputs: list[inlay.Tensor]) -> list[list[float]]:
    grads = inlay.grad(y, inputs, create_graph=True)
    flat = inlay.concat(grads)
    rows = []
    for k in range(flat.size):
        parts = inlay.grad(flat[k], inputs, retain_graph=True, allow_unused=True)
        parts = [
            np.zeros(x.shape) if part is None else part.numpy()
            for part, x in zip(parts, inputs, strict=True)
        ]
        rows.append(np.concatenate(parts).tolist())
    return rows


@each_product
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_of_products_with_zeros(product: Function, dtype: str) -> None:
    # d2(abc)/(da db) = c, and 0 on the diagonal.
    for a, b, c in [(0, 3, 5), (0, 0, 5), (0, 5, 0), (5, 0, 0), (0, 0, 0), (2, 3, 5)]:
        u = leaf([a, b, c], dtype)
        expected = [[0, c, b], [c, 0, a], [b, a, 0]]
        assert hessian(product(u), [u]) == expected


@each_product
def test_third_derivatives_of_products_with_zeros(product: Function) -> None:
    # d3(abc)/(da db dc) = 1 even at 0, 0, 0; and of abcd it is d.
    for values, expected in [([0.0] * 3, [0.0, 0.0, 1.0]), ([0.0, 0.0, 0.0, 7.0], [0, 0, 7, 0])]:
        u = leaf(values)
        (g,) = inlay.grad(product(u), u, create_graph=True)
        (h,) = inlay.grad(g[0], u, create_graph=True)
        (third,) = inlay.grad(h[1], u)
        assert third.tolist() == expected


@each_self_product
def test_products_with_zeros_and_self(product: Function) -> None:
    # y = x a b: dy/dx = ab, dy/da = xb, dy/db = xa; d2y/(dx da) = b, and so on.
    for x, a, b in [(0, 0, 5), (0, 3, 5), (2, 0, 5), (2, 0, 0), (0, 0, 0), (2, 3, 5)]:
        inputs = [leaf([x], "float64"), leaf([a, b], "float64")]
        y = product(*inputs)
        grads = inlay.grad(y, inputs, retain_graph=True)
        assert [g.tolist() for g in grads] == [[a * b], [x * b, x * a]]
        assert hessian(y, inputs) == [[0, b, a], [b, 0, x], [a, x, 0]]


def others(values: np.ndarray) -> np.ndarray:
    """The product of all others, by plain loops over exact fractions, rounded once."""
    exact = [Fraction(float(value)) for value in values]
    products = []
    for k in range(len(exact)):
        product = Fraction(1)
        for other in exact[:k] + exact[k + 1 :]:
            product *= other
        products.append(float(product))
    return np.array(products).astype(values.dtype)


FACTORS: dict[str, list[float]] = {
    # d/du0 = 1e-25 * 1e20 = 1e-5, though the whole product, 1e-30, has passed through 1e-50, which
    # float32 does not have; d/du2 = 1e-50 rounds to 0.
    "underflow on the way": [1e-25, 1e-25, 1e20],
    "underflow at the end": [1e20, 1e-25, 1e-25],
    # d/du3 = 1e-30, which products in float32 from the left would lose.
    "underflow before a one": [1e-25, 1e-25, 1e20, 1.0],
    # Products of the first two are beyond float32; each gradient is within.
    "overflow on the way": [1e30, 1e30, 1e-30, 1e-30],
    "subnormal": [1e-40, 1e30, 2.0],
    "smallest": [1e-45, 1e38, 3.0],
    "huge and zero": [3e38, 3e38, 0.0, 1e-40],
}


@each_product
@pytest.mark.parametrize("values", FACTORS.values(), ids=FACTORS.keys())
def test_huge_and_tiny_factors(product: Function, values: list[float]) -> None:
    u = leaf(values, "float32")
    product(u).backward()
    np.testing.assert_allclose(u.grad.numpy(), others(u.numpy()), rtol=2e-7)


@each_product
def test_huge_and_tiny_factors_at_second_order(product: Function) -> None:
    # d2/(du0 du3) = 1e-25 * 1e20 = 1e-5, d2/(du0 du1) = 1e20, d2/(du2 du3) = 1e-50 = 0.
    u = leaf([1e-25, 1e-25, 1e20, 1.0], "float32")
    expected = [[0, 1e20, 1e-25, 1e-5], [1e20, 0, 1e-25, 1e-5], [1e-25, 1e-25, 0, 0]]
    expected.append([1e-5, 1e-5, 0, 0])
    np.testing.assert_allclose(hessian(product(u), [u]), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "product",
    [
        pytest.param(
            product,
            id=name,
        )
        for name, product in SELF_PRODUCTS.items()
    ],
)
def test_tiny_factors_of_a_self(product: Function) -> None:
    # dy/dx = 1e-25 * 1e-25 * 1e20 = 1e-30, which float32 has.
    x, u = leaf([1.0], "float32"), leaf([1e-25, 1e-25, 1e20], "float32")
    product(x, u).backward()
    np.testing.assert_allclose(grad_list(u), [1e-5, 1e-5, 0], rtol=1e-6)
    np.testing.assert_allclose(grad_list(x), [1e-30], rtol=1e-6)


@pytest.mark.xfail(strict=True, reason="float64 has no wider dtype for products on the way")
@each_product
def test_tiny_factors_in_float64(product: Function) -> None:
    # d/du3 = 1e-200 * 1e-200 * 1e300 = 1e-100, which float64 has.
    u = leaf([1e-200, 1e-200, 1e300, 1.0])
    product(u).backward()
    np.testing.assert_allclose(u.grad.numpy()[3], 1e-100, rtol=1e-12)


@each_product
def test_tiny_products_under_a_huge_gradient(product: Function) -> None:
    # d/du2 = 1e38 * 1e-30 * 1e-30 = 1e-22, which float32 has, while it does not have 1e-60.
    u = leaf([1e-30, 1e-30, 1.0], "float32")
    product(u).backward(np.float32(1e38))
    np.testing.assert_allclose(u.grad.numpy(), [1e8, 1e8, 1e-22], rtol=1e-6)


@each_product
@each_short
def test_short_products(product: Function, dtype: Any) -> None:
    # In float16 0.001 ** 3 is 0 and 1000 ** 2 is infinite; no gradient here is either.
    u = leaf([0.001, 0.001, 1000.0, 1000.0], dtype)
    product(u).backward()
    got, expected = u.grad.numpy().astype(float), others(u.numpy()).astype(float)
    np.testing.assert_allclose(got, expected, rtol=float(ml_dtypes.finfo(dtype).eps))


def test_of_duplicate_overwrites_only_the_winner_has_a_gradient() -> None:
    # Place 2 is written by entries 0, 1 and 3: the last wins. Place 0 by entry 2 alone.
    index, seed = [2, -1, 0, 2], np.array([10.0, 20.0, 30.0])
    expected_x, expected_u = [0.0, 20.0, 0.0], [0.0, 0.0, 10.0, 30.0]
    writes = {
        "scatter": lambda x, u: inlay.scatter(x, index, u),
        "put_along_axis": lambda x, u: inlay.put_along_axis(x, index, u, 0),
        "index_put": lambda x, u: inlay.index_put(x, [index], u),
        "setitem": lambda x, u: setitem(x, np.array(index), u),
    }
    for name, write in writes.items():
        x, u = leaf(np.zeros(3)), leaf([1.0, 2.0, 3.0, 4.0])
        write(x, u).backward(seed)
        assert (name, grad_list(x)) == (name, expected_x)
        assert (name, grad_list(u)) == (name, expected_u)


def setitem(x: Any, key: Any, value: Any) -> Any:
    y = x * 1.0
    y[key] = value
    return y


def test_losing_duplicates_of_nan_gradients_are_exactly_0() -> None:
    # The winner's gradient is NaN; it is chosen for the winner, not multiplied with 0.
    u = leaf([1.0, 2.0])
    inlay.scatter(np.zeros(1), [0, 0], u).backward([np.nan])
    np.testing.assert_array_equal(u.grad.numpy(), [0.0, np.nan])


@pytest.mark.parametrize("reduce", ["overwrite", *REDUCES])
@pytest.mark.parametrize("include_self", [True, False])
def test_updates_past_the_index_have_a_gradient_of_0(reduce: str, include_self: bool) -> None:
    options = {"overwrite": True}
    if reduce != "overwrite":
        options = {"overwrite": False, "reduce": reduce, "include_self": include_self}
    u = leaf([[1.0, 2.0], [3.0, np.nan], [np.inf, np.nan]])
    inlay.scatter(np.ones((2, 2)), [1], u, **options).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy()[1:], np.zeros((2, 2)))
    assert u.grad.numpy()[0].any()


def test_values_past_the_index_have_a_gradient_of_0() -> None:
    v = leaf(np.ones((3, 3)))
    x, index = np.zeros((3, 3)), np.zeros((1, 2), int)
    inlay.put_along_axis(x, index, v, 0, "add", broadcast=False).sum().backward()
    assert grad_list(v) == [[1, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_unused_elements_of_a_source_have_a_gradient_of_0() -> None:
    # Two true places take the first two of six; seeds 10 and 30 are those of the true places.
    source = leaf([[1.0, 2.0, np.nan], [4.0, 5.0, np.inf]])
    x = leaf([0.0, 0.0, 0.0])
    y = inlay.masked_scatter(x, [True, False, True], source)
    y.backward(np.array([10.0, 20.0, 30.0]))
    assert grad_list(source) == [[10, 30, 0], [0, 0, 0]]
    assert grad_list(x) == [0, 20, 0]


def test_a_mean_divides_by_its_count() -> None:
    # Place 0 has 3 updates, 4 with self; place 1 none; place 2 one, 2 with self.
    index = [0, 0, -1, 0]
    for include_self, x_grad, u_grad in [
        (False, [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1.0, 1 / 3]),
        (True, [1 / 4, 1.0, 1 / 2], [1 / 4, 1 / 4, 1 / 2, 1 / 4]),
    ]:
        x, u = leaf(np.zeros(3)), leaf(np.ones(4))
        options = {"overwrite": False, "reduce": "mean", "include_self": include_self}
        inlay.scatter(x, index, u, **options).sum().backward()
        assert (grad_list(x), grad_list(u)) == (x_grad, u_grad)


def test_an_index_fill_counts_each_place_once() -> None:
    # Place 1 is named twice and written once in effect: the value's gradient is 10 + 30.
    x, value = leaf(np.zeros(3)), leaf(5.0)
    inlay.index_fill(x, [0, 2, 0, -1], 0, value).backward(np.array([10.0, 20.0, 30.0]))
    assert (grad_list(x), grad_list(value)) == ([0, 20, 0], 40.0)


MANY = 4096
ADDERS: dict[str, Function] = {
    "index_select": lambda x: inlay.index_select(x, np.zeros(MANY, int)),
    "take_along_axis": lambda x: inlay.take_along_axis(x, np.zeros(MANY, int), 0),
    "getitem": lambda x: x[inlay.to_tensor(np.zeros(MANY, int))],
    "broadcast_to": lambda x: inlay.broadcast_to(x[:1], [MANY]),
    "arithmetic": lambda x: x[:1] * np.ones(MANY, x.numpy().dtype),
    "masked_fill": lambda x: inlay.masked_fill(
        np.zeros(MANY, x.numpy().dtype), np.ones(MANY, bool), x[0]
    ),
    "index_fill": lambda x: inlay.index_fill(
        np.zeros(MANY, x.numpy().dtype), np.arange(MANY), 0, x[0]
    ),
    "put_along_axis": lambda x: inlay.put_along_axis(
        np.zeros((MANY, 1), x.numpy().dtype), np.zeros((1, 1), int), x[:1].reshape([1, 1]), 1
    ),
    "index_put": lambda x: inlay.index_put(
        np.zeros(MANY, x.numpy().dtype), [np.arange(MANY)], x[:1]
    ),
    "concat": lambda x: inlay.concat([x[:1]] * MANY),
    "stack": lambda x: inlay.stack([x[0]] * MANY),
    "concat of itself": lambda x: inlay.concat([x] * MANY).reshape([MANY, 2])[:, 0],
}


@each_short
@pytest.mark.parametrize("add", ADDERS.values(), ids=ADDERS.keys())
def test_short_gradients_add_up_in_float32(add: Function, dtype: Any) -> None:
    # In float16 2048 + 1 is 2048, in bfloat16 256 + 1 is 256: a running sum would stop there.
    x = leaf([1.0, 1.0], dtype)
    y = add(x)
    y.backward(np.ones(y.shape, dtype))
    assert x.grad.numpy().dtype == dtype
    assert grad_list(x) == [MANY, 0]
    z = leaf([1.0, 1.0], dtype)
    y = add(z)
    (g,) = inlay.grad(y, z, grad_outputs=[np.ones(y.shape, dtype)], create_graph=True)
    assert g.tolist() == [MANY, 0]


@each_short
def test_short_gradients_of_a_tensor_used_many_times(dtype: Any) -> None:
    x = leaf([1.0], dtype)
    y = x
    for _ in range(MANY - 1):
        y = y + x
    y.backward()
    assert grad_list(x) == [MANY]
    # And of a computed one.
    x = leaf([1.0], dtype)
    h = x * 1.0
    y = h
    for _ in range(MANY - 1):
        y = y + h
    y.backward()
    assert grad_list(x) == [MANY]


@each_short
def test_short_means_of_many(dtype: Any) -> None:
    # Each gets 1 / 4096 = 2 ** -12, which both dtypes have.
    for reduce in ["mean", "amax", "amin"]:
        u = leaf(np.ones(MANY), dtype)
        scattered(u, reduce).backward()
        np.testing.assert_array_equal(u.grad.numpy().astype(float), np.full(MANY, 2.0**-12))
        u = leaf(np.ones(MANY), dtype)
        getattr(inlay, reduce)(u).backward()
        np.testing.assert_array_equal(u.grad.numpy().astype(float), np.full(MANY, 2.0**-12))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradients_have_the_dtype_and_shape_of_their_tensor(dtype: str) -> None:
    x, u = leaf(np.ones((3, 2)), dtype), leaf(np.ones((4, 2)), dtype)
    inlay.scatter(x, [0, 1], u).sum().backward()
    assert (x.grad.dtype.name, x.grad.shape) == (dtype, [3, 2])
    assert (u.grad.dtype.name, u.grad.shape) == (dtype, [4, 2])


def test_complex_gradients_by_hand() -> None:
    # L = Re(z w): with z = a + ib, w = c + id it is ac - bd, so dL/da + i dL/db = c - id = conj(w).
    z, w = leaf([1 + 2j]), leaf([3 - 4j])
    (z * w).backward()
    assert grad_list(z) == [3 + 4j]
    assert grad_list(w) == [1 - 2j]
    # The same through a product that is scattered, and with three factors: conj of the others.
    u = leaf([1 + 2j, 3 - 4j, 1j])
    scattered(u, "mul").backward()
    assert grad_list(u) == [((3 - 4j) * 1j).conjugate(), ((1 + 2j) * 1j).conjugate(), 11 - 2j]
    # L = Re((1 + 2i) x) of a real x: dL/dx = 1.
    x = leaf([5.0])
    (x.cast("complex128") * (1 + 2j)).backward()
    assert grad_list(x) == [1.0]


# The interface.


def test_gradients_stop_unless_they_are_wanted() -> None:
    x = inlay.to_tensor([1.0])
    assert x.stop_gradient
    assert x.is_leaf
    assert x.grad is None
    assert (x * 2).stop_gradient
    assert (x * 2).is_leaf
    for made in [inlay.zeros([2]), inlay.ones([2]), inlay.full([2], 1.0), inlay.arange(2.0)]:
        assert made.stop_gradient
    assert inlay.from_numpy(np.zeros(2)).stop_gradient
    x.stop_gradient = False
    y = x * 2
    assert not x.stop_gradient
    assert not y.stop_gradient
    assert x.is_leaf
    assert not y.is_leaf
    y.backward()
    assert grad_list(x) == [2.0]
    assert y.grad is None


def test_a_computed_tensor_can_be_cut_off() -> None:
    x = leaf([1.0])
    y = x * 2
    y.stop_gradient = True
    assert y.is_leaf
    assert (y * 3).stop_gradient
    y.stop_gradient = False
    (y * 3).backward()
    assert grad_list(y) == [3.0]
    assert x.grad is None


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64"])
def test_only_floats_and_complex_numbers_have_gradients(dtype: str) -> None:
    x = inlay.zeros([2], dtype=dtype)
    with pytest.raises(TypeError, match=f"stop_gradient.*{dtype}"):
        x.stop_gradient = False
    with pytest.raises(TypeError, match=dtype):
        inlay.to_tensor(np.zeros(2, dtype), stop_gradient=False)
    x.stop_gradient = True
    assert leaf([1.0]).cast(dtype).stop_gradient


def test_comparisons_have_no_gradient() -> None:
    x = leaf([1.0, 2.0])
    assert (x > 1).stop_gradient
    assert (x == x).stop_gradient


def test_backward_accumulates_until_it_is_cleared() -> None:
    x = leaf([1.0, 2.0])
    for k in range(1, 4):
        (x * 3).sum().backward()
        assert grad_list(x) == [3.0 * k, 3.0 * k]
    x.clear_grad()
    assert x.grad is None
    x.clear_grad()
    (x * 3).sum().backward()
    assert grad_list(x) == [3.0, 3.0]
    x.grad = None
    assert x.grad is None
    x.grad = inlay.to_tensor(np.array([5.0, 5.0]))
    (x * 3).sum().backward()
    assert grad_list(x) == [8.0, 8.0]
    with pytest.raises(ValueError, match="grad"):
        x.grad = inlay.zeros([3], dtype="float64")
    with pytest.raises(TypeError, match="grad"):
        x.grad = inlay.zeros([2], dtype="float32")


def test_a_collected_gradient_is_its_own_memory() -> None:
    x, seed = leaf([1.0, 2.0]), np.array([1.0, 1.0])
    (x + 0).backward(inlay.from_numpy(seed))
    seed[:] = 9
    assert grad_list(x) == [1.0, 1.0]
    y = leaf([1.0, 2.0])
    (x + y).sum().backward()
    y.grad[...] = 9.0
    assert grad_list(x) == [2.0, 2.0]


def test_gradients_need_no_gradients_themselves() -> None:
    x = leaf([1.0])
    (x * x).backward()
    assert x.grad.stop_gradient
    (g,) = inlay.grad(x * x, x)
    assert g.stop_gradient


def test_detach_shares_memory_but_no_history() -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    d = y.detach()
    assert d.stop_gradient
    assert d.is_leaf
    assert d.data_ptr() == y.data_ptr()
    (d * y).sum().backward()
    assert grad_list(x) == [4.0, 8.0]


def test_writing_to_what_was_detached_is_seen() -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y * y
    y.detach()[0] = 9.0
    with pytest.raises(RuntimeError, match="multiply"):
        z.sum().backward()


def test_a_second_backward_needs_retain_graph() -> None:
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert grad_list(x) == [6.0, 12.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        inlay.grad(y, x)
    assert grad_list(x) == [6.0, 12.0]


def test_a_freed_part_is_an_error_for_graphs_that_share_it() -> None:
    x = leaf([2.0])
    h = x * x
    (h * 2).backward()
    with pytest.raises(RuntimeError, match=r"multiply.*retain_graph"):
        (h * 3).backward()
    assert grad_list(x) == [8.0]


def test_backward_of_many_elements_needs_a_gradient() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="backward: grad"):
        (x * 2).backward()
    with pytest.raises(ValueError, match="grad"):
        inlay.grad(x * 2, x)
    with pytest.raises(ValueError, match="grad"):
        (x * 2).backward(np.ones(3))
    with pytest.raises(TypeError, match="grad"):
        (x * 2).backward(np.ones(2, np.float32))
    assert x.grad is None
    (x * 2).backward([1.0, 10.0])
    assert grad_list(x) == [2.0, 20.0]


def test_backward_needs_a_history() -> None:
    with pytest.raises(ValueError, match="stop_gradient"):
        inlay.to_tensor([1.0]).backward()
    with pytest.raises(ValueError, match="stop_gradient"):
        inlay.grad(inlay.to_tensor([1.0]), leaf([1.0]))


def test_backward_of_a_leaf_is_its_own() -> None:
    x = leaf([1.0])
    x.backward()
    assert grad_list(x) == [1.0]


def test_grad_leaves_the_leaves_alone() -> None:
    x, y = leaf([2.0]), leaf([3.0])
    z = x * x * y
    gx, gy = inlay.grad(z, [x, y], retain_graph=True)
    assert (gx.tolist(), gy.tolist()) == ([12.0], [4.0])
    assert x.grad is None
    assert y.grad is None
    # Of computed tensors, of several outputs, of an input twice.
    h = x * 2
    outputs = [h * h, h * y]
    found = inlay.grad(outputs, [h, x, x], grad_outputs=[None, np.array([10.0])])
    assert [g.tolist() for g in found] == [[38.0], [76.0], [76.0]]
    h = x * 2
    (same,) = inlay.grad(h, h)
    assert same.tolist() == [1.0]


def test_grad_leaves_alone_what_is_below_its_inputs() -> None:
    """As in PyTorch: the gradient of h needs nothing that h was computed from."""
    x = leaf([2.0])
    h = x * x
    (g,) = inlay.grad(h * 3, h)
    assert g.tolist() == [3.0]
    h.backward()
    assert grad_list(x) == [4.0]


def test_grad_of_an_input_and_of_what_is_made_of_it() -> None:
    # h = x * x, y = h * x: dy/dh = x, dy/dx = 3 x x.
    x = leaf([2.0])
    h = x * x
    gh, gx = inlay.grad(h * x, [h, x])
    assert (gh.tolist(), gx.tolist()) == ([2.0], [12.0])


def test_unused_inputs_are_an_error_unless_allowed() -> None:
    x, other = leaf([2.0]), leaf([1.0])
    y = x * x
    with pytest.raises(ValueError, match="allow_unused"):
        inlay.grad(y, [x, other], retain_graph=True)
    g, none = inlay.grad(y, [x, other], allow_unused=True, retain_graph=True)
    assert g.tolist() == [4.0]
    assert none is None
    with pytest.raises(ValueError, match="allow_unused"):
        inlay.grad(y, inlay.to_tensor([1.0]))


def test_create_graph_to_any_order() -> None:
    # x ** 5 at 2: 80, 160, 240, 240, 120, and then nothing depends on x.
    x = leaf(2.0)
    y = x * x * x * x * x
    found = []
    for _ in range(5):
        (y,) = inlay.grad(y, x, create_graph=True)
        found.append(y.item())
    assert found == [80.0, 160.0, 240.0, 240.0, 120.0]
    last = inlay.grad(y, x, allow_unused=True)[0] if not y.stop_gradient else None
    assert last is None or last.item() == 0


def test_a_gradient_penalty() -> None:
    # L = sum (dy/dx) ** 2 with y = sum x ** 3: (3 x x) ** 2, so dL/dx = 36 x ** 3.
    x = leaf([1.0, 2.0])
    (g,) = inlay.grad((x * x * x).sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert grad_list(x) == [36.0, 288.0]


def test_no_grad_is_a_context_and_a_decorator() -> None:
    x = leaf([1.0])
    assert inlay.is_grad_enabled()
    with inlay.no_grad():
        assert not inlay.is_grad_enabled()
        assert (x * 2).stop_gradient
        with inlay.no_grad():
            assert (x * 2).stop_gradient
        assert not inlay.is_grad_enabled()
    assert inlay.is_grad_enabled()

    @inlay.no_grad()
    def double(x: Any, depth: int = 0) -> Any:
        """Twice."""
        if depth:
            return double(x, depth - 1)
        assert not inlay.is_grad_enabled()
        return x * 2

    assert double(x).stop_gradient
    assert double(x, 3).stop_gradient
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice."
    assert inlay.is_grad_enabled()
    assert not (x * 2).stop_gradient


def test_no_grad_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), inlay.no_grad():
        raise KeyError
    assert inlay.is_grad_enabled()

    @inlay.no_grad()
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert inlay.is_grad_enabled()
    guard = inlay.no_grad()
    with guard, guard:
        assert not inlay.is_grad_enabled()
    assert inlay.is_grad_enabled()


def test_no_grad_belongs_to_its_thread() -> None:
    seen = []
    with inlay.no_grad():
        thread = threading.Thread(target=lambda: seen.append(inlay.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_leaves_may_be_written_without_recording() -> None:
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    with inlay.no_grad():
        x[...] = x - x.grad * 0.5
    assert x.tolist() == [0.0, 0.0]
    assert not x.stop_gradient
    assert x.is_leaf


def test_hooks_of_leaves() -> None:
    x, seen = leaf([1.0, 2.0]), []
    watch = x.register_hook(lambda g: seen.append(g.tolist()))
    double = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert grad_list(x) == [6.0, 6.0]
    watch.remove()
    watch.remove()
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert grad_list(x) == [12.0, 12.0]
    double.remove()
    (x * 3).sum().backward()
    assert grad_list(x) == [15.0, 15.0]


def test_hooks_see_the_whole_gradient_once() -> None:
    # x is used twice: the hook sees 2 + 3, not its parts; and so for a computed tensor.
    x, seen = leaf([1.0]), []
    h = x * 1.0
    x.register_hook(lambda g: seen.append(("x", g.tolist())))
    h.register_hook(lambda g: seen.append(("h", g.tolist())))
    (x * 2 + x * 3 + h * 4 + h * 5).backward()
    assert seen == [("h", [9.0]), ("x", [14.0])]


def test_hooks_of_computed_tensors_replace_the_gradient() -> None:
    x = leaf([1.0, 2.0])
    h = x * 3
    handle = h.register_hook(lambda g: g * 10)
    y = (h * h).sum()
    y.backward(retain_graph=True)
    assert grad_list(x) == [180.0, 360.0]
    (g,) = inlay.grad(y, h, retain_graph=True)
    assert g.tolist() == [60.0, 120.0]
    x.clear_grad()
    handle.remove()
    y.backward()
    assert grad_list(x) == [18.0, 36.0]


def test_hooks_that_fail() -> None:
    def fail(_: Any) -> None:
        raise KeyError("no such thing")

    hooks = {
        "no such thing": fail,
        "not a Tensor": lambda g: 3.0,
        "shape": lambda g: inlay.zeros([3], dtype="float64"),
        "float32": lambda g: g.cast("float32"),
    }
    for message, hook in hooks.items():
        x = leaf([1.0, 2.0])
        x.register_hook(hook)
        with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
            (x * 2).sum().backward()
        assert x.grad is None
        assert inlay.is_grad_enabled()
    with pytest.raises(ValueError, match="register_hook"):
        inlay.to_tensor([1.0]).register_hook(fail)


def test_hooks_may_run_backward_themselves() -> None:
    x, other = leaf([1.0]), leaf([5.0])
    inner = other * 2
    x.register_hook(lambda g: inner.backward())
    (x * 2).backward()
    assert (grad_list(x), grad_list(other)) == ([2.0], [2.0])


IN_PLACE: dict[str, tuple[str, Function]] = {
    "setitem": ("setitem", lambda x: x.__setitem__(0, 5.0)),
    "setitem at a mask": ("setitem", lambda x: x.__setitem__(inlay.to_tensor([True] * 3), 5.0)),
    "scatter_": ("scatter", lambda x: x.scatter_([0], np.ones(1))),
    "slice_scatter_": ("slice_scatter", lambda x: x.slice_scatter_(np.ones(1), stop=1)),
    "masked_scatter_": ("masked_scatter", lambda x: x.masked_scatter_([True] * 3, np.ones(3))),
    "masked_fill_": ("masked_fill", lambda x: x.masked_fill_([True] * 3, 1.0)),
    "index_fill_": ("index_fill", lambda x: x.index_fill_([0], 0, 1.0)),
    "index_add_": ("index_add", lambda x: x.index_add_([0], 0, np.ones(1))),
    "index_put_": ("index_put|setitem", lambda x: x.index_put_([[0]], np.ones(1))),
    "put_along_axis_": ("put_along_axis", lambda x: x.put_along_axis_([0], np.ones(1), 0)),
    "select_scatter_": ("select_scatter", lambda x: x.select_scatter_(np.array(1.0), 0, 0)),
}
each_in_place = pytest.mark.parametrize(("name", "write"), IN_PLACE.values(), ids=IN_PLACE.keys())


@each_in_place
def test_leaves_that_want_a_gradient_are_not_written(name: str, write: Function) -> None:
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match=f"^({name}): (x|input) is a leaf"):
        write(x)
    assert x.tolist() == [1.0, 2.0, 3.0]


@each_in_place
def test_values_that_backward_needs_are_not_to_be_written(name: str, write: Function) -> None:
    x = leaf([1.0, 2.0, 3.0])
    h = x * 1.0
    y = h / (h + 10.0)
    write(h)
    with pytest.raises(RuntimeError, match="divide"):
        y.sum().backward()
    assert x.grad is None


@each_in_place
def test_views_are_not_written_while_recording(name: str, write: Function) -> None:
    x = leaf([1.0, 2.0, 3.0, 4.0])
    h = x * 1.0
    view = h[1:]
    with pytest.raises(RuntimeError, match=f"({name}): (x|input) is a view"):
        write(view)
    assert h.tolist() == [1.0, 2.0, 3.0, 4.0]


@each_in_place
def test_views_from_before_a_write_are_stale(name: str, write: Function) -> None:
    h = leaf([1.0, 2.0, 3.0]) * 1.0
    view = h[1:]
    write(h)
    with pytest.raises(RuntimeError, match=r"multiply.*view"):
        view * 2
    assert (h[1:] * 2).shape == [2]
    with inlay.no_grad():
        view * 2


def test_views_from_before_a_tracked_write_are_stale() -> None:
    """The memory that the view shows depends on x from then on, and the view does not say so."""
    x = leaf([1.0, 2.0, 3.0])
    y = inlay.zeros([3], dtype="float64")
    view = y[1:]
    y[...] = x * 2
    try:
        z = (view * 2).sum()
    except RuntimeError:
        return
    assert not z.stop_gradient


def test_values_that_no_rule_reads_may_be_written() -> None:
    # An overwriting scatter keeps neither x nor updates, and a sum keeps nothing.
    x, u = leaf([1.0, 2.0]), leaf([3.0])
    hx, hu = x * 1.0, u * 1.0
    y = inlay.scatter(hx, [1], hu).sum()
    hx[...] = 7.0
    hu[...] = 7.0
    y.backward()
    assert (grad_list(x), grad_list(u)) == ([1.0, 0.0], [1.0])


def test_an_index_written_after_its_use_is_an_error() -> None:
    u, index = leaf([3.0]), inlay.to_tensor([1])
    y = inlay.scatter(np.zeros(2), index, u).sum()
    index[0] = 0
    with pytest.raises(RuntimeError, match="scatter"):
        y.backward()


def test_a_plain_tensor_may_take_values_that_have_gradients() -> None:
    u = leaf([3.0, 4.0])
    x = inlay.zeros([4], dtype="float64")
    x[1:3] = u * 2
    assert not x.stop_gradient
    (x * x).sum().backward()
    assert grad_list(u) == [24.0, 32.0]


def test_a_failed_write_leaves_the_history_alone() -> None:
    x = leaf([1.0, 2.0])
    h = x * 3
    with pytest.raises(IndexError):
        h.scatter_([5], np.ones(1))
    (h * h).sum().backward()
    assert grad_list(x) == [18.0, 36.0]


def test_overlapping_in_place_writes_have_the_gradients_of_a_copy() -> None:
    x = leaf([1.0, 2.0, 3.0])
    h = x * 1.0
    h[1:] = h[:-1]  # 1, 1, 2
    h.backward(np.array([1.0, 10.0, 100.0]))
    assert grad_list(x) == [11.0, 100.0, 0.0]
    x = leaf([1.0, 2.0, 3.0])
    h = x * 1.0
    options = {"overwrite": False, "reduce": "mul", "include_self": True}
    h.scatter_([0, 1, 2], h, **options)  # squares
    h.sum().backward()
    assert grad_list(x) == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("op", [operator.imul, operator.itruediv])
def test_operators_in_place_with_operands_that_want_gradients(op: Function) -> None:
    # 2 x x: 4 x; and 2 x / x: 0. PyTorch keeps a copy, and so do the writes here.
    x = leaf([1.0, 3.0])
    y = x * 2.0
    op(y, x).sum().backward()
    assert grad_list(x) == {operator.imul: [4.0, 12.0], operator.itruediv: [0.0, 0.0]}[op]


def test_sums_in_place_with_operands_that_want_gradients() -> None:
    x = leaf([1.0, 3.0])
    y = x * 2.0
    y += x
    y -= x * x
    y.sum().backward()
    assert grad_list(x) == [1.0, -3.0]


def test_second_gradients_of_leaves_that_overlap_the_target() -> None:
    # y = t a b with a, b of the leaf: d2y/(da db) = t = 2.
    memory = np.array([2.0, 3.0])
    t, x = inlay.from_numpy(memory), inlay.from_numpy(memory)
    x.stop_gradient = False
    options = {"overwrite": False, "reduce": "mul", "include_self": True}
    t.scatter_([0, 0], x, **options)
    (g,) = inlay.grad(t[0], x, create_graph=True)
    (h,) = inlay.grad(g[0], x)
    assert h.tolist() == [0.0, 2.0]


def test_results_that_backward_needs_are_not_to_be_written() -> None:
    u = leaf([1.0, 2.0])
    y = inlay.scatter(np.zeros(1), [0, 0], u, overwrite=False, reduce="amax")
    y[0] = 1.0
    with pytest.raises(RuntimeError, match="scatter"):
        y.sum().backward()


def test_arrays_beside_tensors() -> None:
    x, u = leaf([1.0, 2.0, 3.0]), np.array([5.0])
    y = inlay.scatter(x, np.array([1]), u)
    assert isinstance(y, inlay.Tensor)
    assert not y.stop_gradient
    y.sum().backward()
    assert grad_list(x) == [1.0, 0.0, 1.0]
    v = leaf([5.0])
    y = inlay.scatter(np.zeros(3), [1], v)
    assert isinstance(y, inlay.Tensor)
    y.sum().backward()
    assert grad_list(v) == [1.0]
    (np.array([2.0]) * v).backward()
    assert grad_list(v) == [3.0]


def test_python_numbers_beside_tensors_in_place() -> None:
    x = leaf([1.0, 2.0])
    h = x * 1.0
    h[0] = 7
    h.masked_fill_([False, True], 8)
    h.sum().backward()
    assert grad_list(x) == [0.0, 0.0]


def test_writing_into_an_array_is_not_recorded() -> None:
    """An array can't have a gradient; a write that would lose one is an error or not recorded."""
    a = np.zeros(3)
    u = leaf([5.0])
    try:
        inlay.scatter_(a, [1], u)
    except (RuntimeError, TypeError, ValueError):
        assert a.tolist() == [0.0, 0.0, 0.0]
    else:
        assert a.tolist() == [0.0, 5.0, 0.0]


# Size, memory, threads.

DEPTH = 100_000
STEPS: dict[str, Function] = {
    "add": lambda y: y + 1.0,
    "multiply": lambda y: y * 1.0,  # keeps its inputs
    "view": lambda y: y[...],
    "amax": lambda y: y.amax(0, keepdim=True),  # keeps its result
    "in place": lambda y: y.index_add_([0], 0, np.ones(1)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_deep_graphs_need_no_deep_stack(step: Function) -> None:
    found = []

    def run() -> None:
        x = leaf([1.0])
        y = x * 1.0
        for _ in range(DEPTH):
            y = step(y)
        y.backward(retain_graph=True)
        found.append(grad_list(x))
        (g,) = inlay.grad(y, x, create_graph=True)
        found.append(g.tolist())
        del g
        del y
        gc.collect()
        found.append("dropped")

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [[1.0], [1.0], "dropped"]


def test_memory_is_back_after_many_steps() -> None:
    def train(steps: int) -> None:
        rng = np.random.default_rng(0)
        index = inlay.to_tensor(rng.integers(0, 20, 60))
        w, b = leaf(rng.standard_normal((20, 8))), leaf(np.zeros(8))
        for k in range(steps):
            rows = w.index_select(index) * w.index_select(index) + b
            h = inlay.scatter(w, index, rows, overwrite=False, reduce="mean", include_self=True)
            m = inlay.scatter(w, index, rows * 0.1, overwrite=False, reduce="mul")
            h[:2] = m[:2]
            h = h.masked_fill(h.numpy() > 3, 0.0)
            loss = (h * h).mean() + (m * 1e-3).amax()
            handle = h.register_hook(lambda g: g * 1.0)
            if k % 10 == 0:
                (g,) = inlay.grad(loss, w, create_graph=True)
                loss = loss + (g * g).sum()
            if k % 7 != 3:  # some graphs are dropped without a backward
                loss.backward(retain_graph=k % 5 == 0)
            if k % 3 == 0:
                handle.remove()
            if w.grad is not None and b.grad is not None:
                with inlay.no_grad():
                    w[...] = w - w.grad * 1e-3
                    b[...] = b - b.grad * 1e-3
            w.clear_grad()
            b.clear_grad()

    train(3)
    gc.collect()
    before = inlay.memory_stats()["in_use"]
    train(1000)
    gc.collect()
    assert inlay.memory_stats()["in_use"] == before


def test_errors_leave_no_memory_behind() -> None:
    def fail() -> None:
        x = leaf(np.ones(1000))
        h = x * x
        y = (h * h).sum()
        h[0] = 5.0
        with pytest.raises(RuntimeError):
            y.backward()
        y = (x * x).sum()
        x.register_hook(lambda g: 1 / 0)
        with pytest.raises(RuntimeError):
            y.backward()

    fail()
    gc.collect()
    before = inlay.memory_stats()["in_use"]
    for _ in range(100):
        fail()
    gc.collect()
    assert inlay.memory_stats()["in_use"] == before


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    barrier, errors = threading.Barrier(count), []

    def run(k: int) -> None:
        try:
            barrier.wait()
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_threads_with_graphs_of_their_own() -> None:
    def work(k: int) -> None:
        rng = np.random.default_rng(k)
        index = rng.integers(0, 50, 200)
        for _ in range(30):
            x, u = leaf(rng.standard_normal((50, 40))), leaf(rng.standard_normal((200, 40)))
            seed = rng.standard_normal((50, 40))
            y = inlay.scatter(x, index, u, overwrite=False, include_self=True)
            (y * y).backward(seed)
            np.testing.assert_allclose(x.grad.numpy(), 2 * y.numpy() * seed)
            np.testing.assert_allclose(u.grad.numpy(), (2 * y.numpy() * seed)[index])

    in_threads(work)


def test_threads_that_share_a_leaf() -> None:
    # 4 threads add 25 gradients each of k + 1 at a time: 25 (1 + 2 + 3 + 4) = 250.
    x = leaf(np.zeros(200_000))

    def work(k: int) -> None:
        for _ in range(25):
            (x * float(k + 1)).sum().backward()

    in_threads(work)
    np.testing.assert_array_equal(x.grad.numpy(), np.full(200_000, 250.0))


def test_threads_that_share_a_graph() -> None:
    x = leaf(np.full(10_000, 2.0))
    y = (x * x * x).sum()

    def work(k: int) -> None:
        for _ in range(25):
            (g,) = inlay.grad(y, x, retain_graph=True)
            np.testing.assert_array_equal(g.numpy(), np.full(10_000, 12.0))

    in_threads(work)


def test_threads_with_hooks() -> None:
    x, seen = leaf(np.ones(1000)), []
    x.register_hook(lambda g: seen.append(g.numpy()[0]))
    y = (x * 3).sum()

    def work(k: int) -> None:
        for _ in range(25):
            inlay.grad(y, x, retain_graph=True)

    in_threads(work)
    assert seen == [3.0] * 100
