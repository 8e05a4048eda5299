"""Gradients against the real JAX: equal if JAX is correct, and tests of its errors.

A complex gradient of JAX is the conjugate of Inlay's, which follows PyTorch's convention.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradcheck import Draw, grad_list, hessian, leaf, random_like, resized
from gradient_pairs import Pairs

import inlay

nan = math.nan


@pytest.fixture(autouse=True)
def in_64_bits() -> Any:
    before = jax.config.read("jax_enable_x64"), jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)  # compiles sooner
    yield
    jax.config.update("jax_enable_x64", before[0])
    jax.config.update("jax_disable_most_optimizations", before[1])


# Cases in which JAX is correct.

pair = Pairs()


def moved(axis: int, index: np.ndarray) -> tuple[Any, ...]:
    """An index expression for rows along an axis."""
    return (*[slice(None)] * axis, index)


def rows(draw: Draw) -> tuple[tuple[int, ...], int, np.ndarray]:
    """A shape, a non-negative axis, and places on it, with duplicates and negatives."""
    shape = draw.shape()
    axis = draw.axis(shape) % len(shape)
    return shape, axis, draw.index(shape[axis], draw.count(shape[axis]))


@pair("set, with duplicates")
def _(draw: Draw) -> Any:
    shape, axis, index = rows(draw)
    return (
        [draw.numbers(*shape), draw.numbers(*resized(shape, axis, len(index)))],
        lambda x, u: inlay.scatter(x, index, u, axis=axis),
        lambda x, u: x.at[moved(axis, index)].set(u),
    )


@pair("add")
def _(draw: Draw) -> Any:
    shape, axis, index = rows(draw)
    return (
        [draw.numbers(*shape), draw.numbers(*resized(shape, axis, len(index)))],
        lambda x, u: inlay.index_add(x, index, axis, u),
        lambda x, u: x.at[moved(axis, index)].add(u),
    )


@pair("multiply, without duplicates")
def _(draw: Draw) -> Any:
    shape, axis, _ = rows(draw)
    index = draw.rng.permutation(shape[axis])
    options = {"overwrite": False, "reduce": "mul", "include_self": True}
    return (
        [draw.numbers(*shape), draw.numbers(*shape)],
        lambda x, u: inlay.scatter(x, index, u, axis=axis, **options),
        lambda x, u: x.at[moved(axis, index)].multiply(u, unique_indices=True),
    )


for _reduce, _name in [("amax", "max"), ("amin", "min")]:

    @pair(_name, real_only=True)
    def _(draw: Draw, reduce: str = _reduce, name: str = _name) -> Any:
        shape, axis, index = rows(draw)
        options = {"overwrite": False, "reduce": reduce, "include_self": True}
        return (
            [draw.numbers(*shape), draw.numbers(*resized(shape, axis, len(index)))],
            lambda x, u: inlay.scatter(x, index, u, axis=axis, **options),
            lambda x, u: getattr(x.at[moved(axis, index)], name)(u),
        )


pair.add_folds(jnp)


@pair("take")
def _(draw: Draw) -> Any:
    shape, axis, index = rows(draw)
    return (
        [draw.numbers(*shape)],
        lambda x: inlay.index_select(x, index, axis),
        lambda x: x[moved(axis, index)],
    )


@pair("take_along_axis")
def _(draw: Draw) -> Any:
    shape = draw.shape()
    axis = draw.axis(shape)
    index = draw.rng.integers(0, max(shape[axis], 1), shape)
    return (
        [draw.numbers(*shape)],
        lambda x: inlay.take_along_axis(x, index, axis),
        lambda x: jnp.take_along_axis(x, jnp.asarray(index), axis),
    )


@pair("slices")
def _(draw: Draw) -> Any:
    return (
        [draw.numbers(4, 5), draw.numbers(2, 3)],
        lambda x, y: inlay.slice_scatter(x, y, [0, 1], [None, 4], [None, None], [2, -2]),
        lambda x, y: x.at[::2, 4::-2].set(y),
    )


@pair("arithmetic")
def _(draw: Draw) -> Any:
    shape = draw.shape(0)
    arrays = [draw.numbers(*draw.broadcastable(shape)) for _ in range(3)]
    condition = draw.mask(*shape)
    return (
        arrays,
        lambda x, y, z: inlay.where(condition, x * y - z, x / y + z),
        lambda x, y, z: jnp.where(jnp.asarray(condition), x * y - z, x / y + z),
    )


@pair.each()
def test_gradients_are_those_of_jax(name: str, dtype: str) -> None:
    for k in range(3):
        draw = Draw((name, dtype, k), dtype, zero_size=k == 2)
        arrays, ours, theirs = pair.makes[name](draw)
        tensors = [leaf(array) for array in arrays]
        y = ours(*tensors)
        seed = random_like(y.numpy(), draw.rng)
        grads = inlay.grad(y, tensors, grad_outputs=[seed])
        # The same loss, Re <seed, y>. JAX returns the conjugate of its gradient.
        peer_y, back = jax.vjp(theirs, *map(jnp.asarray, arrays))
        expected = back(jnp.asarray(seed.conj()))
        np.testing.assert_allclose(y.numpy(), peer_y, rtol=1e-12, atol=1e-12)
        for got, peer in zip(grads, expected, strict=True):
            np.testing.assert_allclose(got.numpy(), np.conj(peer), rtol=1e-9, atol=1e-9)


def test_complex_gradients_are_the_conjugates() -> None:
    # L = Re(z w) is steepest in the direction of conj(w) = 3 + 4i. JAX returns 3 - 4i.
    peer = jax.grad(lambda z: jnp.real(z[0] * (3 - 4j)))(jnp.array([1 + 2j]))
    assert peer.tolist() == [3 - 4j]
    z = leaf([1 + 2j])
    (z * (3 - 4j)).backward()
    assert grad_list(z) == [3 + 4j]


@pytest.mark.parametrize("values", [[2.0, 3.0, 5.0], [0.0, 3.0, 5.0], [0.0, 0.0, 5.0], [0.0] * 3])
def test_second_gradients_of_products(values: list[float]) -> None:
    peer = jax.hessian(jnp.prod)(jnp.array(values)).tolist()
    u = leaf(values)
    assert hessian(u.prod(), [u]) == peer


def test_ties_share_the_gradient_in_both() -> None:
    peer = jax.grad(lambda x, u: x.at[jnp.zeros(3, int)].max(u).sum(), (0, 1))
    peer_x, peer_u = peer(jnp.array([3.0]), jnp.array([3.0, 3.0, 1.0]))
    x, u = leaf([3.0]), leaf([3.0, 3.0, 1.0])
    inlay.scatter(x, [0] * 3, u, overwrite=False, reduce="amax", include_self=True).backward()
    assert (grad_list(x), grad_list(u)) == ([1 / 3], [1 / 3, 1 / 3, 0.0])
    np.testing.assert_allclose(peer_x, [1 / 3])
    np.testing.assert_allclose(peer_u, [1 / 3, 1 / 3, 0.0])


# Cases in which JAX is wrong.


def segments(name: str, values: list[float], index: list[int], count: int) -> Any:
    reduce = getattr(jax.ops, f"segment_{name}")
    return jax.grad(lambda u: reduce(u, jnp.array(index), count).sum())(jnp.array(values))


def scattered(reduce: str, values: list[float], index: list[int], count: int) -> Any:
    u = leaf(values)
    base = np.zeros(count)
    inlay.scatter(base, index, u, overwrite=False, reduce=reduce).sum().backward()
    return grad_list(u)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 3.0, 5.0], [15.0, 10.0, 6.0]),
        ([0.0, 3.0, 5.0], [15.0, 0.0, 0.0]),
        ([0.0, 0.0, 5.0], [0.0, 0.0, 0.0]),
    ],
)
def test_products_of_duplicates(values: list[float], expected: list[float]) -> None:
    # d(abc)/da = bc. JAX has a gradient of a product only with the promise of unique indices.
    index = jnp.zeros(3, int)
    with pytest.raises(NotImplementedError, match="unique_indices"):
        jax.grad(lambda u: jnp.ones(1).at[index].multiply(u).sum())(jnp.array(values))
    with pytest.raises(NotImplementedError, match="unique_indices"):
        segments("prod", values, [0, 0, 0], 1)
    assert scattered("mul", values, [0, 0, 0], 1) == expected


@pytest.mark.parametrize(("name", "reduce"), [("max", "amax"), ("min", "amin")])
def test_nan_in_one_slot(name: str, reduce: str) -> None:
    # The result at place 0 is the NaN of u0, so the gradient of u0 is 1. JAX gives it to no value,
    # because NaN equals nothing. In both, the NaN does not affect place 1.
    values = [nan, 3.0, 1.0]
    assert segments(name, values, [0, 0, 1], 2).tolist() == [0.0, 0.0, 1.0]
    assert scattered(reduce, values, [0, 0, 1], 2) == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(("name", "reduce"), [("max", "amax"), ("min", "amin")])
def test_nan_in_one_row(name: str, reduce: str) -> None:
    # The result of row 0 is its NaN, and 3 does not contribute. JAX divides 0 by 0.
    values = [[nan, 3.0], [2.0, 2.0]]
    peer = jax.grad(lambda x: getattr(jnp, name)(x, 1).sum())(jnp.array(values))
    np.testing.assert_array_equal(peer, [[nan, nan], [0.5, 0.5]])
    x = leaf(values)
    getattr(inlay, reduce)(x, 1).sum().backward()
    assert grad_list(x) == [[1.0, 0.0], [0.5, 0.5]]


@pytest.mark.parametrize(("dtype", "stuck"), [("float16", 2048.0), ("bfloat16", 256.0)])
def test_short_gradients_of_many(dtype: str, stuck: float) -> None:
    # 4096 contributions of 1. JAX adds in 16 bits, where 2048 + 1 = 2048 and 256 + 1 = 256.
    count = 4096
    index = jnp.zeros(count, int)
    peer = jax.grad(lambda x: x[index].astype("float32").sum())(jnp.ones(2, dtype))
    assert peer.tolist() == [stuck, 0.0]

    x = inlay.to_tensor([1.0, 1.0], dtype=dtype)
    x.stop_gradient = False
    x[inlay.to_tensor(np.zeros(count, int))].cast("float32").sum().backward()
    assert grad_list(x) == [count, 0.0]


def test_short_gradients_of_a_tensor_used_many_times() -> None:
    def many(x: Any) -> Any:
        y = x
        for _ in range(299):
            y = y + x
        return y

    # 300 contributions of 1. bfloat16 can represent 300.
    peer = jax.grad(lambda x: many(x).sum())(jnp.ones(1, "bfloat16"))
    assert peer.tolist() == [256.0]
    x = inlay.to_tensor([1.0], dtype="bfloat16")
    x.stop_gradient = False
    many(x).backward()
    assert grad_list(x) == [300.0]
