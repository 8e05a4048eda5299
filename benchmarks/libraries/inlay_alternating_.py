"""A matrix product of a framework, then a call of Inlay on the framework's tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.libraries import Variants, inlay_bridge_, matmul_
from benchmarks.libraries.inlay_bridge_ import VERSION, array
from benchmarks.rows import Row

__all__ = ["VERSION", "array", "tensors", "variants"]


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    return {**inlay_bridge_.tensors(bases, row), **matmul_.tensors(bases, row)}


def variants(row: Row, t: dict[str, Any]) -> Variants:
    (product,) = matmul_.variants(row, t).values()
    (call,) = inlay_bridge_.variants(row, t).values()

    def both() -> Any:
        product()
        return call()

    return {"matmul, call": both}
