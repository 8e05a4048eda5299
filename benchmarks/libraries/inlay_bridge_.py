"""Inlay on the tensors of a framework.

On JAX arrays, a call is compiled, like the operations of JAX itself. A chain runs eagerly.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np

import inlay
from benchmarks.libraries import Variants, inlay_
from benchmarks.libraries.inlay_ import VERSION
from benchmarks.libraries.inlay_chains import function
from benchmarks.rows import CHAINS, Row

__all__ = ["VERSION", "array", "framework", "tensors", "variants"]


def framework(name: str) -> ModuleType:
    """The module with the framework's own variants."""
    return importlib.import_module(f"benchmarks.libraries.{name}_")


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    return framework(row.host).tensors(bases, row)


def array(tensor: Any) -> np.ndarray:
    package = type(tensor).__module__.partition(".")[0]
    return framework("jax" if package == "jaxlib" else package).array(tensor)


def variants(row: Row, t: dict[str, Any]) -> Variants:
    library = framework(row.host)
    if row.host != "jax":
        return inlay_.variants(row, t, library.grad)
    from benchmarks.libraries.jax_chains import waiting

    def call(**views: Any) -> Any:
        positional, named = inlay_.arguments(row, views)
        return getattr(inlay, row.op)(*positional, **named)

    if row.op in CHAINS:
        return {"eager": waiting(function(row), t)}
    if row.op == "masked_select":  # the size of the result depends on values
        return {"eager": waiting(call, t)}
    return library.compiled(row, t, {"jit": call})
