"""The workloads of several operations in Inlay, as functions that run eagerly or are traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import inlay
from benchmarks.chains import CORNER, RATE, function_of
from benchmarks.rows import Row


def function(row: Row) -> Callable[..., Any]:
    """The workload as a function of its tensors, by their names."""

    def write(x: Any, patch: Any, start: int, stop: int) -> Any:
        return inlay.slice_scatter(x, patch, 0, start, stop)

    def four_chain(
        x: Any, rows: Any, diagonal: Any, index: Any, updates: Any, mask: Any, source: Any
    ) -> Any:
        y = inlay.slice_scatter(x, rows, 0, 0, row.shape[0] // 4)
        y = inlay.diagonal_scatter(y, diagonal)
        y = inlay.scatter(y, index, updates, False, include_self=True)
        return inlay.masked_scatter(y, mask, source)

    def mixed_chain(*, corner: Any, **others: Any) -> Any:
        y = four_chain(**others)
        size = min(CORNER, *row.shape)
        places = inlay.tril_indices(size, size)
        return inlay.index_put(y, [places[0], places[1]], corner)

    def train_step(x: Any, target: Any, sources: Any, index: Any) -> Any:
        x = x.detach()
        x.stop_gradient = False
        zeros = inlay.zeros(list(row.shape))
        means = inlay.scatter(zeros, index, inlay.index_select(x, sources), False, reduce="mean")
        error = means - target
        (slope,) = inlay.grad((error * error).sum(), x)
        with inlay.no_grad():
            return x - slope * RATE

    if row.op == "four_chain":
        return four_chain
    return function_of(row, write, mixed_chain, train_step)
