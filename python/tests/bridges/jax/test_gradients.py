"""Gradients of all operations on JAX arrays, by JAX's own numerical check."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradcheck import Draw
from gradient_cases import CASES, REAL_ONLY
from jax.test_util import check_grads

import inlay

# They call methods of `Tensor`, or index an array, which JAX does itself.
OTHERS = {name for name in CASES if "item" in name} | {"copy", "a chain of writes"}
ALL = [
    pytest.param(name, dtype, id=f"{name}-{dtype}")
    for name in CASES
    if name not in OTHERS
    for dtype in ("float64", "complex128")
    if not (dtype == "complex128" and name in REAL_ONLY)
]


@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_numerically(name: str, dtype: str) -> None:
    """Reverse mode to second order, and forward mode, against finite differences."""
    case = CASES[name](Draw((name, dtype), dtype))
    arrays = [jnp.asarray(array) for array in case.inputs]
    check_grads(case.function, arrays, order=2, modes=("rev",), rtol=1e-4, atol=1e-4)
    check_grads(case.function, arrays, order=1, modes=("fwd",), rtol=1e-4, atol=1e-4)


def test_third_order() -> None:
    x = jnp.asarray([0.5, 2.0, 3.0])
    index, u = jnp.asarray([0, 0, 2]), jnp.asarray([1.5, 2.5, 0.5])

    def ours(x: Any) -> Any:
        y = inlay.scatter(x, index, x * u, overwrite=False, reduce="mul", include_self=True)
        return (y**2).sum()

    def theirs(x: Any) -> Any:
        y = x.at[jnp.asarray([0, 2])].multiply(
            jnp.stack([x[0] * x[1] * 1.5 * 2.5, x[2] * 0.5]), unique_indices=True
        )
        return (y**2).sum()

    for k in range(3):
        expected, found = theirs, ours
        for _ in range(k + 1):
            expected, found = _summed(jax.grad(expected)), _summed(jax.grad(found))
        np.testing.assert_allclose(found(x), expected(x), rtol=1e-12)


def _summed(f: Any) -> Any:
    return lambda x: (f(x) * jnp.arange(1.0, 4.0)).sum()


def test_a_complex_gradient_is_that_of_jax() -> None:
    x = jnp.asarray([[1 + 2j, 3 - 1j], [0.5j, 2.0]])
    u = jnp.asarray([[2 - 1j, 1 + 1j]])
    index = jnp.asarray([1])

    def ours(x: Any, u: Any) -> Any:
        y = inlay.scatter(x, index, u, overwrite=False, reduce="mul", include_self=True)
        return jnp.abs(y).sum()

    def theirs(x: Any, u: Any) -> Any:
        return jnp.abs(x.at[index].multiply(u, unique_indices=True)).sum()

    for found, expected in zip(
        jax.grad(ours, (0, 1))(x, u), jax.grad(theirs, (0, 1))(x, u), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def holomorphic(f: Any) -> Any:
        return jax.grad(lambda x: (f(x) ** 3).sum(), holomorphic=True)(x)

    found = holomorphic(lambda x: inlay.multiply(x, inlay.tril(x)))
    np.testing.assert_allclose(found, holomorphic(lambda x: x * jnp.tril(x)), rtol=1e-12)


def test_real_and_imag() -> None:
    x = jnp.asarray([1 + 2j, 3 - 1j])
    for ours, theirs in [(inlay.real, jnp.real), (inlay.imag, jnp.imag)]:
        found = jax.grad(lambda x, f=ours: (f(x) ** 2).sum())(x)
        np.testing.assert_allclose(found, jax.grad(lambda x, f=theirs: (f(x) ** 2).sum())(x))


@pytest.mark.parametrize("reduce", ["sum", "mul", "mean", "amax", "amin"])
def test_hessians(reduce: str) -> None:
    """Every combination of forward and reverse mode gives the same second derivative."""
    x = jnp.asarray([[0.5, 2.0], [3.0, -1.0]])
    u = jnp.asarray([[1.0, 1.5], [4.0, 0.3], [0.2, 7.0]])
    index = jnp.asarray([1, 1, 0])

    def f(x: Any, u: Any) -> Any:
        options = {"overwrite": False, "reduce": reduce, "include_self": True}
        return (inlay.scatter(x, index, u, **options) ** 3).sum()

    ways = [
        outer(inner(f, (0, 1)), (0, 1))(x, u)
        for outer in (jax.jacfwd, jax.jacrev)
        for inner in (jax.jacfwd, jax.jacrev)
    ]
    first, *others = map(jax.tree.leaves, ways)
    assert len(first) == 4
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_integers_have_no_gradient() -> None:
    x, index = jnp.arange(6.0).reshape(3, 2), jnp.asarray([0, 2])
    _, pull = jax.vjp(inlay.index_select, x, index)
    gradient, none = pull(jnp.ones((2, 2)))
    assert none.dtype == jax.dtypes.float0
    np.testing.assert_array_equal(gradient, [[1, 1], [0, 0], [1, 1]])
    _, change = jax.jvp(lambda x: inlay.greater_than(x, 1.0), (x,), (jnp.ones_like(x),))
    assert change.dtype == jax.dtypes.float0


def test_a_backward_pass_keeps_only_what_it_reads() -> None:
    """The gradient of an overwriting scatter reads the index, neither the base nor the updates."""
    x, u, index = jnp.ones((100, 100)), jnp.ones((2, 100)), jnp.asarray([3, 5])
    _, pull = jax.vjp(lambda x, u: inlay.scatter(x, index, u), x, u)
    kept = [leaf for leaf in jax.tree.leaves(pull) if hasattr(leaf, "shape")]
    assert sum(leaf.size for leaf in kept) <= index.size
    _, pull = jax.vjp(lambda x, u: inlay.multiply(x, u), x, x)
    kept = [leaf for leaf in jax.tree.leaves(pull) if hasattr(leaf, "shape")]
    assert sum(leaf.size for leaf in kept) == 2 * x.size


def test_only_wanted_gradients_are_computed() -> None:
    x, u, index = jnp.ones((3, 2)), jnp.ones((1, 2)), jnp.asarray([1])
    text = str(jax.make_jaxpr(jax.grad(lambda u: inlay.scatter(x, index, u).sum()))(u))
    assert "vjp(001; scatter(@, @, @))" in text
    assert "vjp(101" not in text
