"""Calls inside of `jax.shard_map`, where types have the axes that a value varies over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

__all__ = ["abstract", "aligned"]


def _varying(aval: Any) -> frozenset[Any]:
    """The axes of the mesh over which a value varies. Outside of `shard_map` there are none."""
    axes = getattr(getattr(aval, "manual_axis_type", None), "varying", None)
    return frozenset(axes or getattr(aval, "vma", None) or ())


def aligned(inputs: Sequence[Any]) -> Sequence[Any]:
    """Makes all inputs vary over the same axes of the mesh, as JAX's own functions do.

    The derivative of this step sums the gradients of an input that all devices share.
    """
    axes = [_varying(jax.typeof(x)) for x in inputs]
    union = frozenset[Any]().union(*axes)
    if not union:
        return inputs
    return [
        jax.lax.pcast(x, tuple(union - own), to="varying") if union - own else x
        for x, own in zip(inputs, axes, strict=True)
    ]


def abstract(shape: tuple[int, ...], dtype: Any, inputs: Sequence[Any]) -> Any:
    """The abstract value of a result. It varies over the same axes as the inputs."""
    for like in inputs:
        if _varying(like):
            sharding = like.sharding.update(spec=PartitionSpec(*[None] * len(shape)))
            return like.update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)
    return jax.core.ShapedArray(shape, dtype)
