"""Chains of Inlay's operations on the tensors of a framework, compiled by the framework."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.libraries import Variants
from benchmarks.libraries.inlay_bridge_ import VERSION, array, tensors
from benchmarks.libraries.inlay_chains import function
from benchmarks.rows import Row

__all__ = ["VERSION", "array", "tensors", "variants"]


def variants(row: Row, t: dict[str, Any]) -> Variants:
    chain = function(row)
    if row.host == "torch":
        import torch

        # Without `dynamic`, a second shape would be compiled for all sizes.
        return {"compile": partial(torch.compile(chain, fullgraph=True, dynamic=False), **t)}
    import jax

    from benchmarks.libraries.jax_chains import waiting

    return {"jit": waiting(jax.jit(chain), t)}
