"""The limit on a GPU: a copy, on the GPU, of the bytes that the workload must move."""

from __future__ import annotations

from typing import Any

import numpy as np

import inlay
from benchmarks.libraries import Variants
from benchmarks.rows import Row

VERSION = inlay.__version__


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    if "moved" not in bases:
        return {}
    read, write = bases["moved"].tolist()
    return {"from": inlay.zeros([max(1, (read + write) // 2)], "uint8", device="gpu")}


def array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.cpu())


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if "from" not in t:
        return {}

    def copy() -> None:
        t["from"].copy()
        inlay.synchronize()

    return {"copy": copy}
