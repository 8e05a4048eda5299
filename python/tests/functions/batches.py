"""Batches of the cases: several items that differ, and the results of a loop over them."""

from __future__ import annotations

import numpy as np

import inlay
from inlay._inlay import Function

Axes = tuple[int | None, ...]


def varied(array: np.ndarray, item: int, is_index: bool) -> np.ndarray:
    """The array of an item. Item 0 is the array itself.

    Masks and indices are rolled, so that they stay in range and select as many elements.
    """
    if item == 0:
        return array
    if is_index or array.dtype == bool:
        return np.roll(array, item, 0) if array.ndim else array
    with np.errstate(all="ignore"):
        factor = np.asarray(item + 1).astype(array.dtype)
        return np.asarray(array * factor).astype(array.dtype)


def items_of(tensors: list[inlay.Tensor], kinds: list[bool], count: int) -> list[list[np.ndarray]]:
    """For each tensor, its array in each of `count` items. `kinds` tells indices."""
    return [
        [varied(tensor.numpy(), item, is_index) for item in range(count)]
        for tensor, is_index in zip(tensors, kinds, strict=True)
    ]


def ways(ranks: list[int]) -> list[Axes]:
    """Positions of the batch axis: first everywhere, last everywhere, and shared inputs."""
    count = len(ranks)
    found = [(0,) * count, tuple(ranks)]
    if count > 1:
        chosen = range(count) if count <= 4 else (0, count - 1)
        for at in chosen:
            found.append(tuple(0 if k == at else None for k in range(count)))
            if count > 2:
                found.append(tuple(None if k == at else ranks[k] for k in range(count)))
    return list(dict.fromkeys(found))


def stacked(items: list[list[np.ndarray]], axes: Axes) -> list[inlay.Tensor]:
    """The tensors of the function over the batch."""
    return [
        inlay.to_tensor(each[0] if axis is None else np.stack(each, axis))
        for each, axis in zip(items, axes, strict=True)
    ]


def looped(
    function: Function, items: list[list[np.ndarray]], axes: Axes, count: int
) -> list[np.ndarray]:
    """The results of a call for each item, stacked."""
    results = []
    for item in range(count):
        given = [
            inlay.to_tensor(each[0] if axis is None else each[item])
            for each, axis in zip(items, axes, strict=True)
        ]
        results.append([one.numpy() for one in function.call(given)])
    return [np.stack(list(column)) for column in zip(*results, strict=True)]
