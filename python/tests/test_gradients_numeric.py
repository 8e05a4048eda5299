"""Gradients against central differences.

Every differentiable operation and option is checked to first and second order, in float64 and
complex128. A gradient of a complex tensor is dL/dRe + i dL/dIm for a real loss L, as in PyTorch and
Paddle.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gradcheck import (
    LAYOUTS,
    REDUCES,
    Draw,
    Function,
    assert_close,
    by_differences,
    first_order,
    leaf,
    random_like,
    resized,
    second_order,
    value_of,
    without,
)

import inlay

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
        return y.masked_select(y > 0)

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


# The check.


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
