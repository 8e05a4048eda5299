"""A matrix product of a framework, which keeps all of its threads busy."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.libraries import Lines, Variants
from benchmarks.libraries.inlay_bridge_ import VERSION, framework
from benchmarks.rows import Row

__all__ = ["VERSION", "tensors", "variants"]


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    matrix = np.random.default_rng(0).random((row.matmul, row.matmul), np.float32)
    return framework(row.host).tensors({"matrix": matrix}, row)


def variants(row: Row, t: dict[str, Any]) -> Variants:
    wait = ".block_until_ready()" if row.host == "jax" else ""
    return {"matmul": Lines(f"y = (matrix @ matrix){wait}", matrix=t["matrix"])}
