"""The cases of the numerical check of gradients.

Each case draws inputs, and returns a function of them. If there is an in-place form, which writes
into its first argument, the case also returns that.
"""

from __future__ import annotations

from . import reads, rest, writes  # noqa: F401  (each adds its cases)
from .registry import CASES, REAL_ONLY, Case

__all__ = ["CASES", "REAL_ONLY", "Case"]
