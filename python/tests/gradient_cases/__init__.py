"""The cases of the numerical check of gradients.

Each draws inputs and returns a function of them, and the in-place form of it, if there is one,
which writes into its first argument.
"""

from __future__ import annotations

from . import reads, rest, writes  # noqa: F401  (each adds its cases)
from .registry import CASES, REAL_ONLY, Case

__all__ = ["CASES", "REAL_ONLY", "Case"]
