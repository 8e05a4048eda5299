"""Cases of where, arithmetic, reductions, shapes, and in-place operators."""

from __future__ import annotations

import operator

from gradcheck import Draw, resized

import inlay

from .registry import Case, case


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


@case("squeeze")
def _(draw: Draw) -> Case:
    shape = draw.shape(0)
    return Case(lambda x: inlay.squeeze(x, [0, -1]) * 2, [draw.numbers(1, *shape, 1)])


@case("unsqueeze")
def _(draw: Draw) -> Case:
    return Case(lambda x: inlay.unsqueeze(x, [0, -1]), [draw.numbers(*draw.shape(0))])


@case("flatten")
def _(draw: Draw) -> Case:
    shape = draw.shape(2)
    return Case(lambda x: inlay.flatten(x, 1), [draw.numbers(*shape)])


@case("negative")
def _(draw: Draw) -> Case:
    return Case(lambda x: inlay.negative(x) * x, [draw.numbers(*draw.shape(0))])


@case("real and imag")
def _(draw: Draw) -> Case:
    return Case(lambda x: inlay.real(x * x) * inlay.imag(x), [draw.numbers(*draw.shape(0))])


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
        # The other operand requires no gradient. The tests of in-place rules cover the other case.
        other = draw.numbers(3)
        return Case(lambda x: out(x, other), [draw.numbers(2, 3)], lambda x: op(x, other))
