# pyright: strict
"""Typical code of users. It must pass mypy and pyright in strict mode, and run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import inlay
from inlay import Tensor, static
from inlay.typing import ArrayLike, Reduce


def aggregate(
    messages: npt.NDArray[np.float32], to_node: npt.NDArray[np.int64], nodes: int, how: Reduce
) -> npt.NDArray[Any]:
    """Arrays in, an array out."""
    zeros = np.zeros((nodes, messages.shape[1]), messages.dtype)
    return inlay.scatter(zeros, to_node, messages, overwrite=False, reduce=how)


def write_step(cache: Tensor, keys: ArrayLike, at: int) -> Tensor:
    """A tensor in, a tensor out."""
    cache.slice_scatter_(keys, axis=1, start=at, stop=at + 1)
    inlay.slice_scatter_(cache, keys, axis=1, start=at, stop=at + 1)
    return cache.select_scatter(cache[:, 0], axis=1, index=at)


def regularised(matrix: Tensor, value: float) -> Tensor:
    diagonal = inlay.diagonal(matrix)
    return inlay.diagonal_scatter(matrix, diagonal + value)


def pack(matrix: Tensor) -> Tensor:
    rows, columns = inlay.tril_indices(matrix.shape[0])
    return matrix[rows, columns]


@inlay.jit
def loss(weights: Tensor, index: Tensor, target: Tensor) -> Tensor:
    difference = weights.index_select(index) - target
    return (difference * difference).mean()


@inlay.jit(donate=True)
def patched(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    y = x.masked_fill(mask, 0.0)
    return y, y.masked_select(mask)


def train(steps: int) -> list[float]:
    weights = inlay.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    index = inlay.to_tensor([0, 1, 1])
    target = inlay.zeros([3, 2])
    losses: list[float] = []
    for _ in range(steps):
        total = loss(weights, index, target)
        total.backward()
        assert weights.grad is not None
        with inlay.no_grad():
            weights -= weights.grad * 0.1
        weights.clear_grad()
        losses.append(total.item())
    (gradient,) = inlay.grad(loss(weights, index, target), [weights])
    assert gradient is not None
    return losses


def program(path: Path) -> npt.NDArray[Any]:
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [None, 2], "float32")
        y = inlay.scatter(x, [0], [[7.0, 7.0]])
    static.save(main, path, {"y": y})
    loaded = static.load(path)
    (result,) = static.Executor().run(loaded, {"x": np.ones((3, 2), "f4")})
    found: npt.NDArray[Any] = result
    return found


def main() -> None:
    messages = np.ones((3, 2), np.float32)
    sums = aggregate(messages, np.array([0, 1, 1]), 2, "sum")
    total: npt.NDArray[Any] = inlay.add(sums, 1.0)
    cache: Tensor = inlay.from_numpy(np.zeros((2, 3), np.float32))
    written = write_step(cache, [[1.0], [2.0]], 2)
    small: Tensor = written[..., 1:] * 2 - total.shape[0] / 2
    picked: Tensor = inlay.where(small > 0, small, 0.0).amax(axis=0)
    joined: npt.NDArray[Any] = inlay.concat([sums, total], axis=1)
    stacked: Tensor = inlay.stack([picked, picked])
    filled, rest = patched(stacked, stacked > 0)
    square = regularised(inlay.ones([3, 3], dtype="float64"), 0.5)
    values: list[Any] = pack(square).tolist()
    small[0] = 5.0
    small[:, 0] += 1.0
    sizes: tuple[int, ...] = filled.shape
    back: npt.NDArray[Any] = rest.numpy()
    with tempfile.TemporaryDirectory() as directory:
        ran = program(Path(directory) / "program.inlay")
    assert train(3)[-1] < train(1)[0]
    assert joined.shape == (2, 4)
    assert len(values) == 6
    assert sizes == (2, 2)
    assert ran.shape == (3, 2)
    assert back.ndim == 1


if __name__ == "__main__":
    main()
