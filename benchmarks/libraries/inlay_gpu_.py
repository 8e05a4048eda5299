"""Inlay on a GPU. The time includes waiting until the results are complete."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import inlay
from benchmarks.libraries import Variant, Variants, inlay_
from benchmarks.libraries.inlay_chains import function
from benchmarks.rows import CHAINS, Row

VERSION = inlay.__version__
FOUND = [device for device in inlay.devices() if device["device"] == "gpu"]
DEVICE = "; ".join(f"{one['name']} by {one['backend']} ({one['driver']})" for one in FOUND[:1])
if FOUND and FOUND[0]["software"]:
    DEVICE += (
        ": a software device on the CPU. Its figures show the overhead of a call, not the speed "
        "of GPUs, and are not compared with other libraries"
    )


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    inlay.set_device("gpu")
    return inlay_.tensors(bases, row)


def array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.cpu())


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if row.op in CHAINS:
        chain = function(row)
        traced = inlay.jit(lambda *values: chain(**dict(zip(t, values, strict=True))))
        found = {"jit": partial(traced, *t.values())}
    else:
        found = inlay_.variants(row, t)
    finish = read_back if row.at_most_us else wait
    return {f"{name}, {finish.__name__}": partial(finish, call) for name, call in found.items()}


def wait(variant: Variant) -> Any:
    result = variant()
    inlay.synchronize()
    return result


def read_back(variant: Variant) -> Any:
    result = variant()
    return [one.cpu() for one in result] if isinstance(result, list) else result.cpu()
