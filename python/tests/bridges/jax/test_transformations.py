"""JAX's transformations around operations of Inlay."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from indexed_writes import WRITES
from jax import export, lax

import inlay

X = np.arange(12.0).reshape(4, 3)
INDEX = np.array([2, 0, 2])
U = np.array([[10.0, 20, 30], [40, 50, 60], [70, 80, 90]])


def add(x: Any, index: Any, u: Any) -> Any:
    return inlay.index_add(x, index, 0, u)


def jax_add(x: Any, index: Any, u: Any) -> Any:
    return x.at[index].add(u)


def test_jit_gives_the_same() -> None:
    expected = jax_add(jnp.asarray(X), INDEX, U)
    np.testing.assert_array_equal(add(jnp.asarray(X), INDEX, U), expected)
    np.testing.assert_array_equal(jax.jit(add)(X, INDEX, U), expected)


def test_without_jit() -> None:
    with jax.disable_jit():
        found = add(jnp.asarray(X), INDEX, U)
        gradient = jax.grad(lambda x: (add(x, INDEX, U) ** 2).sum())(X)
    expected = jax_add(jnp.asarray(X), INDEX, U)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(gradient, 2 * expected)


def test_a_chain_is_compiled_into_one_program() -> None:
    def chain(x: Any) -> Any:
        y = add(x, INDEX, U)
        y = inlay.masked_fill(y, y > 40, 0.0)
        y = inlay.slice_scatter(y, jnp.ones((2, 3)), 0, 1, 3)
        return inlay.tril(y) * 2

    assert jax.jit(chain).lower(X).as_text().count("inlay_function") == 4
    np.testing.assert_array_equal(jax.jit(chain)(X), chain(jnp.asarray(X)))


# Batches.


@pytest.mark.parametrize(
    "axes", [(0, None, None), (1, None, 0), (None, 0, None), (0, 0, 0), (2, 1, 1)]
)
def test_vmap(axes: tuple[int | None, ...]) -> None:
    def stacked(a: np.ndarray, axis: int | None) -> Any:
        if axis is None:
            return jnp.asarray(a)
        items = [a, a[::-1] if a.dtype.kind == "i" else a + 1, a]
        return jnp.stack([jnp.asarray(item) for item in items], axis)

    arrays = [stacked(a, axis) for a, axis in zip((X, INDEX, U), axes, strict=True)]
    found = jax.vmap(add, axes)(*arrays)
    np.testing.assert_array_equal(found, jax.vmap(jax_add, axes)(*arrays))
    np.testing.assert_array_equal(jax.jit(jax.vmap(add, axes))(*arrays), found)


def test_vmap_is_one_call() -> None:
    x = jnp.stack([jnp.asarray(X)] * 5)
    text = jax.jit(jax.vmap(lambda x: add(x, INDEX, U))).lower(x).as_text()
    assert text.count("inlay_function") == 1
    assert "while" not in text


def test_nested_vmap() -> None:
    x = jnp.arange(120.0).reshape(2, 5, 4, 3)
    found = jax.vmap(jax.vmap(lambda x: add(x, INDEX, U)))(x)
    np.testing.assert_array_equal(found, jax.vmap(jax.vmap(lambda x: jax_add(x, INDEX, U)))(x))


def test_vmap_of_a_gradient_and_gradient_of_a_vmap() -> None:
    x = jnp.stack([jnp.asarray(X), jnp.asarray(X) + 1])
    index = jnp.stack([jnp.asarray(INDEX), jnp.asarray(INDEX[::-1])])

    def loss(f: Any) -> Any:
        return lambda x, index, u: (f(x, index, u) ** 3).sum()

    ways = [
        (lambda f: jax.vmap(jax.grad(loss(f), (0, 2)), (0, 0, None))(x, index, U)),
        (lambda f: jax.grad(loss(jax.vmap(f, (0, 0, None))), (0, 2))(x, index, U)),
        (lambda f: jax.vmap(jax.hessian(loss(f)), (0, 0, None))(x, index, U)),
    ]
    for way in ways:
        for a, b in zip(jax.tree.leaves(way(add)), jax.tree.leaves(way(jax_add)), strict=True):
            np.testing.assert_allclose(a, b)


def test_vmap_with_a_name_and_a_sum_over_it() -> None:
    x = jnp.stack([jnp.asarray(X)] * 2)
    f = jax.vmap(lambda x: lax.psum(add(x, INDEX, U), "batch"), axis_name="batch")
    np.testing.assert_array_equal(f(x)[0], 2 * jax_add(jnp.asarray(X), INDEX, U))


# Derivatives.


def test_derivatives_under_jit() -> None:
    def loss(f: Any) -> Any:
        return lambda x, u: (f(x, INDEX, u) ** 2).sum()

    for transform in (jax.grad, jax.jacrev, jax.jacfwd, jax.hessian):
        found = jax.jit(transform(loss(add), (0, 1)))(X, U)
        expected = transform(loss(jax_add), (0, 1))(X, U)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b)


def test_linearize_vjp_and_linear_transpose() -> None:
    x, u = jnp.asarray(X), jnp.asarray(U)
    f = lambda u: inlay.multiply(add(x, INDEX, u), x)  # noqa: E731
    _, push = jax.linearize(f, u)
    _, pull = jax.vjp(f, u)
    expected = jax_add(jnp.zeros_like(x), INDEX, u) * x
    np.testing.assert_allclose(push(u), expected)
    np.testing.assert_allclose(pull(x)[0], (x * x)[INDEX])
    # The transpose of the transpose is the function.
    back = jax.linear_transpose(lambda g: pull(g)[0], x)
    np.testing.assert_allclose(back(u)[0], expected)
    np.testing.assert_allclose(jax.vmap(push)(jnp.stack([u, 2 * u]))[1], 2 * expected)


def test_checkpoint_computes_again() -> None:
    def loss(x: Any) -> Any:
        return (inlay.prod(inlay.tril(x + 3), 0) ** 2).sum()

    x = jnp.asarray(X[:3])
    again = jax.checkpoint(loss)
    np.testing.assert_allclose(jax.grad(again)(x), jax.grad(loss)(x))
    count = [str(jax.make_jaxpr(jax.grad(f))(x)).count("tril(@)") for f in (again, loss)]
    assert count[0] > count[1]


# Control flow.


def test_scan_with_its_gradient() -> None:
    def loop(f: Any) -> Any:
        def run(x: Any, us: Any) -> Any:
            def step(x: Any, u: Any) -> Any:
                x = f(x, INDEX, u)
                return x, x.sum()

            x, sums = lax.scan(step, x, us)
            return (x**2).sum() + sums.sum()

        return run

    us = jnp.stack([jnp.asarray(U)] * 4)
    found = jax.jit(jax.value_and_grad(loop(add), (0, 1)))(X, us)
    expected = jax.value_and_grad(loop(jax_add), (0, 1))(X, us)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b)


def test_cond_while_and_map() -> None:
    def choose(flag: Any, x: Any) -> Any:
        return lax.cond(flag, lambda x: add(x, INDEX, U), lambda x: inlay.negative(x), x)

    np.testing.assert_array_equal(choose(True, X), jax_add(jnp.asarray(X), INDEX, U))
    np.testing.assert_array_equal(jax.jit(choose)(False, X), -X)
    gradient = jax.grad(lambda x: choose(False, x).sum())(jnp.asarray(X))
    np.testing.assert_array_equal(gradient, -np.ones_like(X))
    mapped = lax.map(lambda x: inlay.tril(x), jnp.stack([jnp.asarray(X)] * 2))
    np.testing.assert_array_equal(mapped[1], np.tril(X))
    looped = lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, add(s[1], INDEX, U)), (0, jnp.asarray(X))
    )
    np.testing.assert_array_equal(looped[1], jax_add(jnp.asarray(X), INDEX, 3 * U))


# Shapes, compilation ahead of time, memory.


def test_eval_shape_runs_nothing() -> None:
    shape = jax.ShapeDtypeStruct((1000, 1000, 1000), np.float32)
    index = jax.ShapeDtypeStruct((7,), np.int32)
    result = jax.eval_shape(lambda x, i: inlay.index_select(x, i, axis=1), shape, index)
    assert (result.shape, result.dtype) == ((1000, 7, 1000), np.float32)


def test_ahead_of_time() -> None:
    compiled = jax.jit(add).lower(X, INDEX, U).compile()
    np.testing.assert_array_equal(compiled(X, INDEX, U), jax_add(jnp.asarray(X), INDEX, U))


def test_export() -> None:
    checks = [export.DisabledSafetyCheck.custom_call("inlay_function")]
    exported = export.export(jax.jit(add), disabled_checks=checks)(X, INDEX, U)
    np.testing.assert_array_equal(exported.call(X, INDEX, U), jax_add(jnp.asarray(X), INDEX, U))


@pytest.mark.parametrize("kind", [np.asarray, inlay.to_tensor])
@pytest.mark.parametrize("size", [2, 100_000])
def test_a_later_write_to_an_index_changes_no_gradient(kind: Any, size: int) -> None:
    x, updates = jnp.zeros((size + 1, 2)), jnp.ones((size, 2))
    weights = jnp.arange(2.0 * size + 2).reshape(size + 1, 2)
    for way in ("plain", "list"):
        index = kind(np.arange(size))
        _, pull = jax.vjp(lambda u: WRITES[way](x, index, u), updates)  # noqa: B023
        index[0] = size
        assert pull(weights)[0][0].tolist() == [0, 1]


def test_a_donated_argument_is_written() -> None:
    x = jnp.ones((64, 64))
    index, u = jnp.asarray([1, 2]), jnp.zeros((2, 64))
    f = jax.jit(lambda x, i, u: inlay.scatter(x, i, u), donate_argnums=0)
    before = x.unsafe_buffer_pointer()
    y = f(x, index, u)
    assert y.unsafe_buffer_pointer() == before
    assert x.is_deleted()
    np.testing.assert_array_equal(y[:4].sum(1), [64, 0, 0, 64])


def test_an_argument_that_is_not_donated_is_unchanged() -> None:
    x = jnp.ones((64, 64))
    f = jax.jit(lambda x, u: (inlay.scatter(x, INDEX[:2], u), x))
    y, same = f(x, jnp.zeros((2, 64)))
    assert y.sum() == 62 * 64
    assert same.sum() == x.sum() == 64 * 64


def aliases(function: Any, *args: Any, **options: Any) -> list[bool]:
    """For each call of Inlay in a program, whether its result takes the place of an input."""
    text = jax.jit(function, **options).lower(*args).as_text()
    calls = [line for line in text.splitlines() if "@inlay_function" in line]
    return ["output_operand_alias" in line for line in calls]


def test_only_what_may_be_overwritten_is_written_in_place() -> None:
    x, index, u = jnp.ones((4, 2)), jnp.array([1, 2]), jnp.ones((2, 2))
    write = inlay.scatter
    # XLA would copy an argument before the call.
    assert aliases(write, x, index, u) == [False]
    assert aliases(write, x, index, u, donate_argnums=0) == [True]
    assert aliases(lambda x: write(write(x, index, u), index, u), x) == [False, True]
    assert aliases(lambda x: write(x * 2, index, u), x) == [True]
    assert aliases(lambda x: jax.lax.fori_loop(0, 3, lambda _, y: write(y, index, u), x), x) == [
        True
    ]


def test_a_loop_writes_in_place() -> None:
    """XLA copies the array once, not in every step."""

    def loop(x: Any) -> Any:
        return lax.fori_loop(0, 10, lambda k, x: inlay.scatter(x, k[None], x[:1] + 1), x)

    text = jax.jit(loop).lower(jnp.zeros((64, 64))).compile().as_text()
    assert "output_to_operand_aliasing" in text
    np.testing.assert_array_equal(
        jax.jit(loop)(jnp.zeros((64, 64)))[:11].max(1), [1] + [2] * 9 + [0]
    )


def test_the_first_call_of_a_process_may_be_traced():
    # It imports the bridge while JAX traces.
    code = (
        "import inlay, jax, jax.numpy as jnp\n"
        "x, index, updates = jnp.zeros(3), jnp.array([2, 0]), jnp.array([1.0, 2.0])\n"
        "assert jax.jit(lambda: inlay.scatter(x, index, updates))().tolist() == [2, 0, 1]\n"
        "assert inlay.scatter(x, index, updates).tolist() == [2, 0, 1]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
