"""Errors: their classes, messages and causes, and that nothing is written."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import inlay
from inlay.jax import registration

X = jnp.ones((3, 2), np.float32)
BAD = jnp.asarray([0, 7])
U = jnp.zeros((2, 2), np.float32)
FAILED = (jax.errors.JaxRuntimeError, ValueError)
MESSAGE = r"scatter: index\[1\] is 7, out of range for axis 0 of size 3"


def test_an_eager_error_is_that_of_inlay() -> None:
    for _ in range(3):  # the first call compiles, the others take the fast path
        with pytest.raises(inlay.InlayIndexError, match=f"^{MESSAGE}$") as caught:
            inlay.scatter(X, BAD, U)
        assert caught.value.__cause__ is not None
    assert X.sum() == 6


def test_an_eager_error_comes_at_the_call_even_if_its_inputs_are_not_ready() -> None:
    slow = jax.jit(lambda a: (a @ a) @ (a @ a))
    big = jnp.ones((1500, 1500), np.float32)
    pending = slow(big)
    with pytest.raises(inlay.InlayIndexError, match="out of range"):
        inlay.scatter(pending, jnp.asarray([9999]), big[:1])


def test_a_compiled_error_has_the_message() -> None:
    f = jax.jit(lambda x, i, u: inlay.scatter(x, i, u) + 1)
    for _ in range(3):
        with pytest.raises(FAILED, match=f"OUT_OF_RANGE: {MESSAGE}"):
            f(X, BAD, U).block_until_ready()
    assert f(X, BAD % 3, U).sum() == 8


def test_an_error_of_another_operation_inside_of_a_program() -> None:
    f = jax.jit(lambda x, i: inlay.tril(inlay.index_select(inlay.add(x, x), i)))
    with pytest.raises(FAILED, match=r"index_select: index\[1\] is 7"):
        f(X, BAD).block_until_ready()


def test_shapes_and_dtypes_are_checked_when_a_call_is_traced() -> None:
    f = jax.jit(inlay.scatter)
    with pytest.raises(inlay.InlayValueError, match="scatter: updates"):
        f(X, BAD, jnp.zeros((2, 5), np.float32))
    with pytest.raises(inlay.InlayTypeError, match="scatter: updates"):
        f(X, BAD, U.astype(np.int32))
    with pytest.raises(inlay.InlayTypeError, match="scatter: index"):
        inlay.scatter(X, U[0], U)


def test_the_mask_has_too_many_places() -> None:
    with pytest.raises(inlay.InlayValueError, match="masked_scatter: source"):
        inlay.masked_scatter(X, jnp.ones((3, 2), bool), jnp.ones(3, np.float32))


def test_a_failed_call_leaves_a_donated_argument_unusable_and_the_rest_intact() -> None:
    f = jax.jit(lambda x, i, u: inlay.scatter(x, i, u), donate_argnums=0)
    index, u = jnp.asarray([0, 7]), jnp.zeros((2, 2), np.float32)
    with pytest.raises(FAILED, match="out of range"):
        f(jnp.ones((3, 2), np.float32), index, u).block_until_ready()
    np.testing.assert_array_equal(index, [0, 7])
    np.testing.assert_array_equal(u, np.zeros((2, 2)))


def test_a_deleted_array() -> None:
    x = jnp.ones((3, 2), np.float32)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        inlay.tril(x)


def test_another_platform() -> None:
    traced = jax.jit(inlay.tril).trace(X)
    with pytest.raises(
        inlay.InlayTypeError, match=r"tril: .*compiled for cuda, expected the CPU.*device_put"
    ):
        traced.lower(lowering_platforms=("cuda",))


def test_values_that_are_traced() -> None:
    with pytest.raises(TypeError, match="axis"):
        jax.jit(lambda x, axis: inlay.sum(x, axis))(X, 0)
    with pytest.raises(TypeError, match=r"start|Tracer"):
        jax.jit(lambda x, k: inlay.slice_scatter(x, x[:1], 0, k, k + 1))(X, 0)


def test_threads() -> None:
    """Calls from several threads, some of which fail."""
    problems: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for k in range(30):
            x = rng.standard_normal((5 + seed % 3, 4))
            index = rng.integers(0, 5, 3)
            if k % 10 == 9:
                try:
                    inlay.index_select(jnp.asarray(x), index + 100)
                    problems.append("no error")
                except inlay.InlayIndexError:
                    continue
            found = jax.grad(lambda x, index=index: (inlay.index_select(x, index) ** 2).sum())(x)
            expected = jax.grad(lambda x, index=index: (x[index] ** 2).sum())(x)
            if not np.allclose(found, expected):
                problems.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_versions_of_the_interface() -> None:
    registration.check_version((0, 1))
    registration.check_version((0, 99))
    with pytest.raises(
        ImportError, match=r"version 0\.0 .*expected 0\.1 or a later 0\.x: update jaxlib"
    ):
        registration.check_version((0, 0))
    with pytest.raises(ImportError, match=r"version 1\.0 .*: update Inlay"):
        registration.check_version((1, 0))
