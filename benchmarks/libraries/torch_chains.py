"""The workloads of several operations in PyTorch, eager and with ``torch.compile``."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import torch

from benchmarks.chains import CORNER, RATE, function_of, patches
from benchmarks.libraries import Variants
from benchmarks.rows import Row


def variants(row: Row, t: dict[str, torch.Tensor]) -> Variants:
    def write(x: Any, patch: Any, start: int, stop: int) -> Any:
        return torch.slice_scatter(x, patch, 0, start, stop)

    def mixed_chain(
        x: Any,
        rows: Any,
        diagonal: Any,
        index: Any,
        updates: Any,
        mask: Any,
        source: Any,
        corner: Any,
    ) -> Any:
        y = torch.slice_scatter(x, rows, 0, 0, row.shape[0] // 4)
        y = torch.diagonal_scatter(y, diagonal)
        y = torch.index_add(y, 0, index, updates)
        y = torch.masked_scatter(y, mask, source)
        size = min(CORNER, *row.shape)
        places = torch.tril_indices(size, size)
        return torch.index_put(y, (places[0], places[1]), corner)

    def loss(x: Any, target: Any, sources: Any, index: Any) -> Any:
        sums = torch.zeros_like(x).index_add(0, index, x[sources])
        counts = torch.bincount(index, minlength=len(x)).clamp(min=1)
        error = sums / counts[:, None] - target
        return (error * error).sum()

    def train_step(x: Any, target: Any, sources: Any, index: Any) -> Any:
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(loss(leaf, target, sources, index), leaf)
        return x - slope * RATE

    function = function_of(row, write, mixed_chain, train_step)
    if function is None:
        return {}
    found: Variants = {"eager": partial(function, **t)}
    if row.op == "train_step":
        found["compile"] = compiled_step(loss, t)
    else:
        found["compile"] = partial(torch.compile(function), **t)
    with contextlib.suppress(Exception):  # raised again when the variant is tried
        found["compile"]()  # compiles now, so that the first timed call does not
    if row.op == "slice_chain":
        # The best manual version: one clone, then in-place writes.
        def clone() -> Any:
            y = t["x"].clone()
            for k, (start, stop) in enumerate(patches(row)):
                y[start:stop] = t["values"][k, : stop - start]
            return y

        found["clone, assign"] = clone
    return found


def compiled_step(loss: Any, t: dict[str, torch.Tensor]) -> Any:
    """Compile forward and backward together, by tracing the loss with its gradient."""
    compiled = torch.compile(loss)

    def step() -> Any:
        with torch.enable_grad():
            leaf = t["x"].detach().requires_grad_()
            value = compiled(leaf, t["target"], t["sources"], t["index"])
            (slope,) = torch.autograd.grad(value, leaf)
        return t["x"] - slope * RATE

    return step
