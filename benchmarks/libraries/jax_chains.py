"""The workloads of several operations in JAX, compiled by ``jax.jit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.chains import CORNER, RATE, function_of
from benchmarks.libraries import Lines, Variants
from benchmarks.rows import Row


def variants(row: Row, t: dict[str, Any]) -> Variants:
    def write(x: Any, patch: Any, start: int, stop: int) -> Any:
        return x.at[start:stop].set(patch)

    def mixed_chain(
        x: Any,
        rows: Any,
        diagonal: Any,
        index: Any,
        updates: Any,
        mask: Any,
        source: Any,
        corner: Any,
    ) -> Any:
        y = x.at[: row.shape[0] // 4].set(rows)
        line = jnp.arange(min(row.shape))
        y = y.at[line, line].set(diagonal)
        y = y.at[index].add(updates)
        before = jnp.clip(jnp.cumsum(mask.ravel()) - 1, 0)
        y = jnp.where(mask, source[before].reshape(y.shape), y)
        size = min(CORNER, *row.shape)
        places = jnp.tril_indices(size)
        return y.at[places].set(corner)

    def loss(x: Any, target: Any, sources: Any, index: Any) -> Any:
        sums = jnp.zeros_like(x).at[index].add(x[sources])
        counts = jnp.zeros(len(x), jnp.int32).at[index].add(1)
        error = sums / jnp.maximum(counts, 1)[:, None].astype(x.dtype) - target
        return (error * error).sum()

    def train_step(x: Any, target: Any, sources: Any, index: Any) -> Any:
        return x - RATE * jax.grad(loss)(x, target, sources, index)

    function = function_of(row, write, mixed_chain, train_step)
    if function is None:
        return {}
    return {"jit": waiting(jax.jit(function), t)}


def waiting(function: Callable[..., Any], t: dict[str, Any]) -> Lines:
    """A call with all tensors by their names, which waits until the result is complete."""
    words = ", ".join(f"{name}={name}" for name in t)
    return Lines(f"y = function({words}).block_until_ready()", function=function, **t)
