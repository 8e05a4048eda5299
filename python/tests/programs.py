"""Helpers of the program tests: a chain of five operations, its feeds, and its eager result."""

from __future__ import annotations

import numpy as np

import inlay
from inlay import static

RNG = np.random.default_rng(5)


def chain() -> tuple[static.Program, inlay.Tensor]:
    """A program of all five operations in sequence, with unknown sizes."""
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None, None], "float32")
        rows = static.data("rows", [None, None], "float32")
        index = static.data("index", [None], "int64")
        mask = static.data("mask", [None, None], "bool")
        y = inlay.slice_scatter(x, rows, start=0, stop=2, name="patch")
        y = y.diagonal_scatter(inlay.diagonal(x) * 2)
        y = y.scatter(index, rows, overwrite=False, name="totals")
        y = y.masked_scatter(mask, rows)
        y = y.index_fill(index, 0, 0.5)
    return program, y


def feeds(size: int = 5) -> dict[str, np.ndarray]:
    return {
        "x": RNG.random((size, size), np.float32),
        "rows": RNG.random((2, size), np.float32),
        "index": np.array([1, -1]),
        "mask": np.eye(size, dtype=bool),
    }


def eager(feed: dict[str, np.ndarray]) -> np.ndarray:
    x, rows, index, mask = (inlay.to_tensor(feed[name]) for name in ("x", "rows", "index", "mask"))
    y = inlay.slice_scatter(x, rows, start=0, stop=2)
    y = y.diagonal_scatter(inlay.diagonal(x) * 2)
    y = y.scatter(index, rows, overwrite=False)
    y = y.masked_scatter(mask, rows)
    return y.index_fill(index, 0, 0.5).numpy()
