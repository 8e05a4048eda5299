"""Inlay with NumPy arrays as arguments and results."""

from __future__ import annotations

from typing import Any

from benchmarks.libraries import Variants, inlay_
from benchmarks.libraries.numpy_ import array, tensors
from benchmarks.rows import CHAINS, TRIANGLES, Row

__all__ = ["VERSION", "array", "tensors", "variants"]

VERSION = inlay_.VERSION


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if row.mode == "backward" or row.op in CHAINS:  # arrays have no gradients
        return {}
    (name, call), *_ = inlay_.variants(row, t).items()
    if row.op not in TRIANGLES:
        return {name: call}

    def array_of_places() -> Any:
        return call().numpy()

    return {f"{name}, numpy": array_of_places}
