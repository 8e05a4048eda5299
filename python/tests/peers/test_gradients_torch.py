"""Gradients against the real PyTorch: equal where it is right, and a table of where it is not.

Each entry of the table shows what PyTorch gives and what Inlay gives, with the right value derived
by hand, so that it fails when PyTorch changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gradcheck import Draw, grad_list, hessian, leaf, random_like, resized, without

import inlay

pytestmark = pytest.mark.filterwarnings(r"ignore:index_reduce\(\) is in beta:UserWarning")

Function = Callable[..., Any]
NAMES = {"sum": "sum", "mul": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}
nan = math.nan


# Where PyTorch is right.

# Each draws the arrays, and gives the function in Inlay and in PyTorch.
PAIRS: dict[str, Callable[[Draw], tuple[list[np.ndarray], Function, Function]]] = {}
REAL_ONLY = set()


def pair(name: str, real_only: bool = False) -> Callable[[Function], Function]:
    def add(make: Function) -> Function:
        assert name not in PAIRS
        PAIRS[name] = make
        if real_only:
            REAL_ONLY.add(name)
        return make

    return add


def unique(draw: Draw, size: int, count: int) -> np.ndarray:
    """Places without duplicates, counted from the front: PyTorch's scatter knows no negatives."""
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


for _name in ["sum", "mean", "prod", "amax", "amin"]:

    @pair(f"{_name} over an axis", _name in ("amax", "amin"))
    def _(draw: Draw, name: str = _name) -> Any:
        draw.zero_size &= name in ("sum", "prod")
        shape = draw.shape()
        axis = draw.axis(shape)
        return (
            [draw.numbers(*shape)],
            lambda x: getattr(inlay, name)(x, axis),
            lambda x: getattr(torch, name)(x, axis),
        )


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


def of_torch(function: Function, arrays: list[np.ndarray], seed: np.ndarray, weights: Any) -> Any:
    tensors = [torch.tensor(array, requires_grad=True) for array in [*arrays, seed]]
    y = function(*tensors[:-1])
    first = torch.autograd.grad(y, tensors[:-1], tensors[-1], create_graph=True)
    weights = [torch.tensor(weight) for weight in weights]
    second = torch.autograd.grad(first, tensors, weights, allow_unused=True)
    second = [
        t.new_zeros(t.shape) if g is None else g for g, t in zip(second, tensors, strict=True)
    ]
    return (
        y.detach(),
        [g.detach().resolve_conj() for g in first],
        [g.resolve_conj() for g in second],
    )


def of_inlay(function: Function, arrays: list[np.ndarray], seed: np.ndarray, weights: Any) -> Any:
    tensors = [leaf(array) for array in [*arrays, seed]]
    y = function(*tensors[:-1])
    first = inlay.grad(y, tensors[:-1], grad_outputs=[tensors[-1]], create_graph=True)
    second = inlay.grad(first, tensors, grad_outputs=weights, allow_unused=True)
    second = [
        np.zeros(t.shape) if g is None else g.numpy() for g, t in zip(second, tensors, strict=True)
    ]
    return y, first, second


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, id=f"{name}-{dtype}")
        for name in PAIRS
        for dtype in ("float64", "complex128")
        if not (dtype == "complex128" and name in REAL_ONLY)
    ],
)
def test_gradients_are_those_of_pytorch(name: str, dtype: str) -> None:
    for k in range(12):
        draw = Draw((name, dtype, k), dtype, zero_size=k % 4 == 3)
        arrays, ours, theirs = PAIRS[name](draw)
        seed = random_like(ours(*map(inlay.to_tensor, arrays)).numpy(), draw.rng)
        weights = [random_like(array, draw.rng) for array in arrays]
        y, first, second = of_inlay(ours, arrays, seed, weights)
        peer_y, peer_first, peer_second = of_torch(theirs, arrays, seed, weights)
        np.testing.assert_allclose(y.numpy(), peer_y.numpy(), rtol=1e-12, atol=1e-12)
        for got, expected in zip(first, peer_first, strict=True):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
        for got, expected in zip(second, peer_second, strict=True):
            np.testing.assert_allclose(got, expected.numpy(), rtol=1e-9, atol=1e-9)


# Where PyTorch is not.

REDUCERS = {
    "scatter_reduce": lambda x, index, u, reduce, include_self: x.scatter_reduce(
        0, at(index), u, reduce, include_self=include_self
    ),
    "index_reduce": lambda x, index, u, reduce, include_self: x.index_reduce(
        0, at(index), u, reduce, include_self=include_self
    ),
}
each_reducer = pytest.mark.parametrize("peer", REDUCERS.values(), ids=REDUCERS.keys())


def torch_leaf(values: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def scatter(x: Any, index: Any, u: Any, reduce: str, include_self: bool) -> Any:
    return inlay.scatter(x, index, u, overwrite=False, reduce=reduce, include_self=include_self)


@each_reducer
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_ties_without_self(peer: Function, reduce: str) -> None:
    # Two updates tie and self, 3 like them, is left out: 1/2 + 1/2. PyTorch counts self among those
    # that share, gives it nothing, and a third of the gradient is gone.
    x, u = torch_leaf([3.0]), torch_leaf([3.0, 3.0])
    peer(x, [0, 0], u, reduce, False).backward()
    assert (x.grad.tolist(), u.grad.tolist()) == ([0.0], [1 / 3, 1 / 3])

    x, u = leaf([3.0]), leaf([3.0, 3.0])
    scatter(x, [0, 0], u, reduce, False).backward()
    assert (grad_list(x), grad_list(u)) == ([0.0], [0.5, 0.5])


@each_reducer
@pytest.mark.parametrize("include_self", [True, False])
def test_products_that_underflow_on_the_way(peer: Function, include_self: bool) -> None:
    # d/du0 = 1e-25 * 1e20 = 1e-5. PyTorch divides the product, which is 0 in float32, by u0.
    values = [1e-25, 1e-25, 1e20]
    x, u = torch_leaf([1.0], torch.float32), torch_leaf(values, torch.float32)
    peer(x, [0, 0, 0], u, "prod", include_self).backward()
    assert u.grad.tolist() == [0.0, 0.0, 0.0]

    x, u = leaf([1.0], "float32"), leaf(values, "float32")
    scatter(x, [0, 0, 0], u, "mul", include_self).backward()
    np.testing.assert_allclose(grad_list(u), [1e-5, 1e-5, 0.0], rtol=1e-6)


@each_reducer
def test_products_that_overflow_on_the_way(peer: Function) -> None:
    # d/du0 = 1e30 * 1e-30 * 1e-30 = 1e-30, d/du2 = 1e30; PyTorch: inf / u0, inf / u2.
    values = [1e30, 1e30, 1e-30, 1e-30]
    x, u = torch_leaf([1.0], torch.float32), torch_leaf(values, torch.float32)
    peer(x, [0] * 4, u, "prod", False).backward()
    assert u.grad.tolist() == [math.inf] * 4

    u = leaf(values, "float32")
    scatter(np.ones(1, np.float32), [0] * 4, u, "mul", False).backward()
    np.testing.assert_allclose(grad_list(u), [1e-30, 1e-30, 1e30, 1e30], rtol=1e-6)


def test_whole_products_that_underflow_on_the_way() -> None:
    values = [1e-25, 1e-25, 1e20, 1.0]
    u = torch_leaf(values, torch.float32)
    u.prod().backward()
    assert u.grad.tolist() == [0.0] * 4

    u = leaf(values, "float32")
    u.prod().backward()
    np.testing.assert_allclose(grad_list(u), [1e-5, 1e-5, 0.0, 1e-30], rtol=1e-6)


@each_reducer
@pytest.mark.parametrize("include_self", [True, False])
def test_double_backward_with_two_zeros(peer: Function, include_self: bool) -> None:
    # d2(abc)/(da db) = c = 5 at a = b = 0 (times self, 1). PyTorch says that it can't.
    values = [0.0, 0.0, 5.0]
    x, u = torch_leaf([1.0]), torch_leaf(values)
    (g,) = torch.autograd.grad(peer(x, [0, 0, 0], u, "prod", include_self), u, create_graph=True)
    with pytest.raises(RuntimeError, match="Double backward is unsupported"):
        torch.autograd.grad(g.sum(), u)

    x, u = inlay.to_tensor(np.ones(1)), leaf(values)
    y = scatter(x, [0, 0, 0], u, "mul", include_self)
    assert hessian(y, [u]) == [[0, 5, 0], [5, 0, 0], [0, 0, 0]]


@each_reducer
def test_nan_in_one_slot_of_a_maximum(peer: Function) -> None:
    # Slot 0 is the NaN of u0: u1 = 1 has no part in it. PyTorch divides 0 by 0 there, as NaN equals
    # nothing. Slot 1 is u2 = 2 alone.
    x, u = torch_leaf([0.0, 0.0]), torch_leaf([nan, 1.0, 2.0])
    peer(x, [0, 0, 1], u, "amax", False).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [nan, nan, 1.0])

    u = leaf([nan, 1.0, 2.0])
    scatter(np.zeros(2), [0, 0, 1], u, "amax", False).sum().backward()
    assert grad_list(u) == [1.0, 0.0, 1.0]


@each_reducer
def test_nan_as_a_factor(peer: Function) -> None:
    # d(ab)/da = b = 2, even where a is NaN; PyTorch divides NaN by NaN.
    x, u = torch_leaf([1.0]), torch_leaf([nan, 2.0])
    peer(x, [0, 0], u, "prod", False).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [nan, nan])

    u = leaf([nan, 2.0])
    scatter(np.ones(1), [0, 0], u, "mul", False).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [2.0, nan])


def written(x: torch.Tensor, index: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    y = x * 1.0
    y[index] = u
    return y


OVERWRITES: dict[str, tuple[Function, Function]] = {
    "scatter": (
        lambda x, i, u: x.scatter(0, i, u),
        lambda x, i, u: inlay.put_along_axis(x, i, u, 0),
    ),
    "index_copy": (lambda x, i, u: x.index_copy(0, i, u), inlay.scatter),
    "index_put": (
        lambda x, i, u: x.index_put((i,), u),
        lambda x, i, u: inlay.index_put(x, [i], u),
    ),
    "setitem": (written, lambda x, i, u: inlay.index_put(x, [i], u)),
}


@pytest.mark.parametrize(("peer", "ours"), OVERWRITES.values(), ids=OVERWRITES.keys())
def test_duplicates_that_overwrite(peer: Function, ours: Function) -> None:
    # Place 2 is written by entries 0, 1 and 3 and holds the last: the others are nowhere in the
    # result. PyTorch gives all three the whole gradient.
    index, seed = [2, 2, 0, 2], np.array([10.0, 20.0, 30.0])
    x, u = torch_leaf([0.0] * 3), torch_leaf([1.0, 2.0, 3.0, 4.0])
    y = peer(x, torch.tensor(index), u)
    y.backward(torch.tensor(seed))
    assert y.tolist() == [3.0, 0.0, 4.0]
    assert (x.grad.tolist(), u.grad.tolist()) == ([0, 20, 0], [30, 30, 10, 30])

    x, u = leaf([0.0] * 3), leaf([1.0, 2.0, 3.0, 4.0])
    y = ours(x, index, u)
    y.backward(seed)
    assert y.tolist() == [3.0, 0.0, 4.0]
    assert (grad_list(x), grad_list(u)) == ([0, 20, 0], [0, 0, 10, 30])


def put(x: Any, index: Any, u: Any, reduce: str) -> Any:
    return inlay.put_along_axis(x, index, u, 0, reduce, include_self=False, broadcast=False)


def test_updates_longer_than_the_index() -> None:
    # The tail is never read: its gradient is 0. PyTorch's scatter fails in backward, and its
    # product gives the unused updates a gradient.
    for peer in [
        lambda x, i, u: x.scatter(0, i, u),
        lambda x, i, u: x.scatter_reduce(0, i, u, "sum"),
        lambda x, i, u: x.scatter_reduce(0, i, u, "mean"),
    ]:
        x, u = torch_leaf([0.0, 0.0]), torch_leaf([1.0, 2.0, 3.0])
        y = peer(x, torch.tensor([1]), u)
        with pytest.raises(RuntimeError, match="invalid gradient"):
            y.sum().backward()
    x, u = torch_leaf([0.0, 0.0]), torch_leaf([1.0, 2.0, 3.0])
    x.scatter_reduce(0, torch.tensor([1]), u, "prod", include_self=False).sum().backward()
    assert u.grad.tolist() == [1.0, 1 / 2, 1 / 3]

    for reduce in ["assign", "sum", "mean", "mul", "amax"]:
        u = leaf([1.0, 2.0, 3.0])
        put(np.zeros(2), [1], u, reduce).sum().backward()
        assert grad_list(u) == [1.0, 0.0, 0.0]
        u = leaf([1.0, 2.0, 3.0])
        options = {"overwrite": True}
        if reduce != "assign":
            options = {"overwrite": False, "reduce": reduce}
        inlay.scatter(np.zeros(2), [1], u, **options).sum().backward()
        assert grad_list(u) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("dtype", "stuck"), [(torch.float16, 2048.0), (torch.bfloat16, 256.0)], ids=["f16", "bf16"]
)
def test_short_gradients_of_many(dtype: torch.dtype, stuck: float) -> None:
    # 4096 contributions of 1. PyTorch adds in 16 bits, where 2048 + 1 = 2048 and 256 + 1 = 256.
    count = 4096
    zeros = torch.zeros(count, dtype=torch.long)
    for peer in [lambda x: x.index_select(0, zeros), lambda x: x[zeros]]:
        x = torch_leaf([1.0, 1.0], dtype)
        peer(x).sum().backward()
        assert x.grad.tolist() == [stuck, 0.0]
    x = torch_leaf([1.0], dtype)
    y = x
    for _ in range(count - 1):
        y = y + x
    y.backward()
    assert x.grad.tolist() == [stuck]

    name = str(dtype).removeprefix("torch.")
    for ours in [
        lambda x: x.index_select(np.zeros(count, int)),
        lambda x: x[inlay.to_tensor(np.zeros(count, int))],
    ]:
        x = inlay.to_tensor([1.0, 1.0], dtype=name)
        x.stop_gradient = False
        ours(x).sum().backward()
        assert grad_list(x) == [count, 0.0]
    x = inlay.to_tensor([1.0], dtype=name)
    x.stop_gradient = False
    y = x
    for _ in range(count - 1):
        y = y + x
    y.backward()
    assert grad_list(x) == [count]


def test_complex_products_that_are_scattered() -> None:
    # The gradient of Re(abc) at a is conj(bc). PyTorch has none.
    values = [1 + 2j, 3 - 4j, 1j]
    x, u = torch.ones(1, dtype=torch.complex128), torch_leaf(values, torch.complex128)
    with pytest.raises(NotImplementedError, match="complex"):
        x.scatter_reduce(0, torch.tensor([0, 0, 0]), u, "prod")

    u = leaf(values)
    scatter(np.ones(1, complex), [0, 0, 0], u, "mul", True).backward()
    a, b, c = values
    assert grad_list(u) == [(b * c).conjugate(), (a * c).conjugate(), (a * b).conjugate()]
    # PyTorch's own product of them agrees.
    u = torch_leaf(values, torch.complex128)
    u.prod().real.backward()
    assert u.grad.resolve_conj().tolist() == [
        (b * c).conjugate(),
        (a * c).conjugate(),
        (a * b).conjugate(),
    ]


def test_complex_slices_and_selections() -> None:
    # The gradient is the seed, read where it was written. PyTorch has none.
    x, v = torch_leaf([0, 0, 0], torch.complex128), torch_leaf([1j], torch.complex128)
    with pytest.raises(NotImplementedError, match="complex"):
        torch.slice_scatter(x, v, 0, 1, 2)
    with pytest.raises(NotImplementedError, match="complex"):
        torch.select_scatter(x, v[0], 0, 1)

    seed = np.array([1 + 1j, 2 + 2j, 3 + 3j])
    for write in [
        lambda x, v: inlay.slice_scatter(x, v, 0, 1, 2),
        lambda x, v: inlay.select_scatter(x, v[0], 0, 1),
    ]:
        x, v = leaf([0j, 0j, 0j]), leaf([1j])
        write(x, v).backward(seed)
        assert (grad_list(x), grad_list(v)) == ([1 + 1j, 0, 3 + 3j], [2 + 2j])


def test_negative_indices_of_index_fill() -> None:
    # Places 0 and 2 take the value: 10 + 30. PyTorch takes -1 forward, and fails backward.
    x, v = torch_leaf([0.0] * 3), torch_leaf(5.0)
    y = x.index_fill(0, torch.tensor([0, -1]), v)
    assert y.tolist() == [5.0, 0.0, 5.0]
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        y.sum().backward()

    x, v = leaf([0.0] * 3), leaf(5.0)
    inlay.index_fill(x, [0, -1], 0, v).backward(np.array([10.0, 20.0, 30.0]))
    assert (grad_list(x), grad_list(v)) == ([0, 20, 0], 40.0)
