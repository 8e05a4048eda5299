"""Arguments beside JAX arrays, weak types, 32 bits, and results of unknown size."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import inlay

X = np.arange(6.0, dtype=np.float32).reshape(3, 2)


def test_lists_numbers_and_arrays() -> None:
    x = jnp.asarray(X)
    expected = x.at[jnp.asarray([2, 0])].set(5)
    for index in ([2, 0], np.array([2, 0]), (2, 0)):
        result = inlay.scatter(x, index, [[5.0, 5.0], [5.0, 5.0]])
        assert isinstance(result, jax.Array)
        np.testing.assert_array_equal(result, expected)
    assert inlay.index_fill(x, [2, 0], 0, 5).dtype == np.float32
    np.testing.assert_array_equal(inlay.index_fill(x, [2, 0], 0, 5), expected)
    np.testing.assert_array_equal(inlay.index_fill(X, jnp.asarray([2, 0]), 0, 5), expected)
    np.testing.assert_array_equal(inlay.concat([x, X]), np.concatenate([X, X]))
    np.testing.assert_array_equal(inlay.where(X > 2, x, 0.5), np.where(X > 2, X, 0.5))


def test_tensors_of_inlay_beside_jax_arrays() -> None:
    result = inlay.add(jnp.asarray(X), inlay.to_tensor(X))
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(result, 2 * X)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint16", "bool", "complex64"])
def test_dtypes_are_kept(dtype: str) -> None:
    x = jnp.asarray([[1, 0], [1, 1]], dtype)
    result = inlay.scatter(x, [0], x[1:])
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result, complex), [[1, 1], [1, 1]])


def test_other_dtypes_are_refused() -> None:
    for x in (jnp.ones((2, 2), jnp.float8_e4m3fn), jnp.ones((2, 2), jnp.int4)):
        with pytest.raises(inlay.InlayTypeError, match=f"tril: x .*{x.dtype}"):
            inlay.tril(x)
    with pytest.raises(inlay.InlayTypeError, match="key"):
        inlay.tril(jax.random.split(jax.random.key(0), (2, 2)))


def test_a_number_that_is_traced_takes_the_dtype_of_the_array() -> None:
    x, mask = jnp.asarray(X, jnp.bfloat16), jnp.asarray(X > 2)
    fill = jax.jit(lambda x, mask, value: inlay.masked_fill(x, mask, value))
    for value in (2.5, 2):
        result = fill(x, mask, value)
        assert result.dtype == jnp.bfloat16
        np.testing.assert_array_equal(np.asarray(result, float)[2], [value, value])
    with pytest.raises(inlay.InlayTypeError, match="masked_fill: value"):
        fill(x, mask, jnp.float32(2.5))


def test_a_weak_gradient_flows_through_the_cast() -> None:
    x, mask = jnp.asarray(X), jnp.asarray(X > 2)
    f = jax.jit(jax.grad(lambda v, x: inlay.masked_fill(x, mask, v).sum()))
    assert f(2.0, x) == (X > 2).sum()


def test_dtypes_as_arguments() -> None:
    x = jnp.asarray(X)
    for dtype in ("int32", np.int32, jnp.int32, inlay.int32, np.dtype("int32")):
        assert inlay.cast(x, dtype).dtype == np.int32
    assert inlay.zeros_like(x, jnp.bfloat16).dtype == jnp.bfloat16
    with pytest.raises(inlay.InlayTypeError, match="cast: dtype"):
        inlay.cast(x, "float33")


# 32 bits, which is JAX's default.


def test_in_32_bits_results_have_32_bits(in_32_bits: None) -> None:
    x = jnp.asarray([1, 2], np.int32)
    assert inlay.sum(x).dtype == np.int32
    assert inlay.cast(x, "float64").dtype == np.float32
    assert inlay.cast(x, jnp.int64).dtype == np.int32
    assert inlay.sum(jnp.asarray([True, True])).dtype == np.int32
    assert jax.jit(inlay.sum)(x) == 3
    assert jax.grad(lambda x: inlay.cast(x, "float64").sum())(jnp.ones(2)).dtype == np.float32


def test_in_32_bits_numpy_arrays_are_converted_as_jax_does(in_32_bits: None) -> None:
    x = jnp.asarray(X)
    result = inlay.scatter(x, np.array([1]), np.array([[7.0, 8.0]]))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result[1], [7, 8])


def test_in_32_bits_a_large_index_does_not_wrap_around(in_32_bits: None) -> None:
    x = jnp.asarray(X)
    for index in (np.array([2**32]), [2**32], np.array([-(2**32)])):
        with pytest.raises(inlay.InlayError, match="4294967296"):
            inlay.scatter(x, index, X[:1])


# Results whose size depends on elements.


def test_masked_select() -> None:
    x = jnp.asarray(X)
    result = inlay.masked_select(x, x > 2)
    np.testing.assert_array_equal(result, [3, 4, 5])
    np.testing.assert_array_equal(inlay.masked_select(x, X < 0), [])
    np.testing.assert_array_equal(inlay.masked_select(x, [True, False]), X[:, 0])
    for k in range(3):
        np.testing.assert_array_equal(inlay.masked_select(x, k == X), [k])
    gradient = jax.grad(lambda x: (inlay.masked_select(x, X > 2) ** 2).sum())(x)
    np.testing.assert_array_equal(gradient, np.where(X > 2, 2 * X, 0))
    gradient = jax.grad(lambda x: (inlay.masked_select(x, x > 2) ** 2).sum())(x)
    np.testing.assert_array_equal(gradient, np.where(X > 2, 2 * X, 0))


def test_masked_select_of_a_batch_with_one_mask() -> None:
    x = jnp.stack([jnp.asarray(X), -jnp.asarray(X)])
    result = jax.vmap(lambda x: inlay.masked_select(x, X > 2))(x)
    np.testing.assert_array_equal(result, [[3, 4, 5], [-3, -4, -5]])
    # The mask is a constant, so the size is known.
    np.testing.assert_array_equal(jax.jit(lambda x: inlay.masked_select(x, X > 2))(x[0]), [3, 4, 5])


def test_index_get_with_a_mask() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(inlay.index_get(x, [jnp.asarray([True, False, True])]), X[[0, 2]])
    np.testing.assert_array_equal(inlay.index_get(x, [jnp.asarray([2, 0])]), X[[2, 0]])


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap])
def test_a_size_that_depends_on_a_tracer(transform: Any) -> None:
    x = jnp.asarray(X)
    with pytest.raises(TypeError, match=r"masked_select: the size .* depends on the mask"):
        transform(inlay.masked_select)(x, x > 2)
    with pytest.raises(TypeError, match=r"index_get: .*jnp.nonzero\(mask, size=n\)"):
        transform(lambda x, mask: inlay.index_get(x, [mask]))(
            x, (x > 2)[:, 0] if transform is jax.jit else x > 2
        )
