"""Errors of Inlay, made of the errors in which XLA wraps their messages."""

from __future__ import annotations

import re

import jax

from inlay.errors import (
    InlayError,
    InlayIndexError,
    InlayMemoryError,
    InlayRuntimeError,
    InlayValueError,
)

__all__ = ["RAISED", "translated"]

RAISED = (jax.errors.JaxRuntimeError, ValueError)
"""What JAX raises if a handler fails. The fast path of `jax.jit` raises a `ValueError`."""

_CLASSES: dict[str, type[InlayError]] = {
    "INVALID_ARGUMENT": InlayValueError,
    "OUT_OF_RANGE": InlayIndexError,
    "RESOURCE_EXHAUSTED": InlayMemoryError,
    "INTERNAL": InlayRuntimeError,
}


def translated(error: BaseException, name: str) -> InlayError | None:
    """Returns the error of an operation, or `None` if it is another error."""
    if isinstance(error, InlayError):
        return None
    found = re.match(rf"([A-Z_]+): ({name}: .*)", str(error), re.DOTALL)
    if found is None or found[1] not in _CLASSES:
        return None
    return _CLASSES[found[1]](found[2])
