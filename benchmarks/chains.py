"""Workloads of several operations: their inputs, and their expected results in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.rows import Row

Arrays = dict[str, np.ndarray]
Write = Callable[[Any, Any, int, int], Any]

STEPS = 8  # the number of writes in a chain of slices
CORNER = 64  # the rows and columns of the triangle that a mixed chain writes
RATE = 0.125  # the learning rate of a training step, a power of two


def patches(row: Row) -> list[tuple[int, int]]:
    """The row range of each write of a chain of slices. Together they cover half of the tensor."""
    every = row.shape[0] // STEPS
    return [(k * every, min(k * every + max(1, every // 2), row.shape[0])) for k in range(STEPS)]


def build(row: Row, rng: np.random.Generator) -> Arrays:
    def unit(*shape: int) -> np.ndarray:
        return rng.random(shape, np.float32)

    x = unit(*row.shape)
    rows = row.shape[0]
    if row.op == "slice_chain":
        start, stop = patches(row)[0]
        return {"x": x, "values": unit(STEPS, stop - start, *row.shape[1:])}
    if row.op in ("four_chain", "mixed_chain"):
        mask = unit(*row.shape) < row.mask
        found = {
            "x": x,
            "rows": unit(rows // 4, row.shape[1]),
            "diagonal": unit(min(row.shape)),
            "index": rng.integers(0, rows, row.entries),
            "updates": unit(row.entries, row.shape[1]),
            "mask": mask,
            "source": unit(int(mask.sum())),
        }
        if row.op == "mixed_chain":
            corner = min(CORNER, *row.shape)
            found["corner"] = unit(corner * (corner + 1) // 2)
        return found
    if row.op == "train_step":
        return {
            "x": x + 1,  # not near 0, where relative errors are large
            "target": unit(*row.shape),
            "sources": rng.integers(0, rows, row.entries),
            "index": rng.integers(0, rows, row.entries),
        }
    if row.op == "tiny_program":
        return {"x": x, "values": unit(1, *row.shape[1:])}
    return {"x": x}


def forward(row: Row, a: Arrays) -> np.ndarray:
    y = a["x"].copy()
    if row.op == "slice_chain":
        for (start, stop), patch in zip(patches(row), a["values"], strict=True):
            y[start:stop] = patch[: stop - start]
    elif row.op in ("four_chain", "mixed_chain"):
        y[: len(a["rows"])] = a["rows"]
        np.fill_diagonal(y, a["diagonal"])
        wide = y.astype(np.float64)
        np.add.at(wide, a["index"], a["updates"])
        y = wide.astype(np.float32)
        y[a["mask"]] = a["source"]
        if row.op == "mixed_chain":
            y[np.tril_indices(min(CORNER, *row.shape))] = a["corner"]
    elif row.op == "train_step":
        wide = a["x"].astype(np.float64)
        sums = np.zeros_like(wide)
        np.add.at(sums, a["index"], wide[a["sources"]])
        counts = np.maximum(np.bincount(a["index"], minlength=len(sums)), 1)[:, None]
        slope = 2 * (sums / counts - a["target"]) / counts
        gradient = np.zeros_like(wide)
        np.add.at(gradient, a["sources"], slope[a["index"]])
        y = (wide - RATE * gradient).astype(np.float32)
    elif row.op == "tiny_program":
        for k in range(row.entries):
            y[k % row.shape[0]] = a["values"]
    return y


def slice_chain(row: Row, write: Write) -> Callable[[Any, Any], Any]:
    """Several writes in sequence, with a library's ``write(x, patch, start, stop)``."""

    def chain(x: Any, values: Any) -> Any:
        for k, (start, stop) in enumerate(patches(row)):
            x = write(x, values[k, : stop - start], start, stop)
        return x

    return chain


def tiny_program(row: Row, write: Write) -> Callable[[Any, Any], Any]:
    """One tiny write per entry of the row."""

    def program(x: Any, values: Any) -> Any:
        for k in range(row.entries):
            at = k % row.shape[0]
            x = write(x, values, at, at + 1)
        return x

    return program


def function_of(
    row: Row, write: Write, mixed_chain: Callable[..., Any], train_step: Callable[..., Any]
) -> Callable[..., Any] | None:
    """The workload as a function of its tensors, built from the parts that differ by library."""
    return {
        "slice_chain": slice_chain(row, write),
        "mixed_chain": mixed_chain,
        "train_step": train_step,
        "tiny_program": tiny_program(row, write),
    }.get(row.op)


def moved(row: Row, a: Arrays) -> tuple[int, int] | None:
    """The bytes that a chain must read and write."""
    if row.op not in ("slice_chain", "four_chain", "mixed_chain"):
        return None
    return sum(array.nbytes for array in a.values()), a["x"].nbytes
