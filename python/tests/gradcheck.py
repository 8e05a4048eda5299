"""Helpers of the gradient tests: leaves, random arguments, and a check by finite differences."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cases import assert_same

import inlay
from inlay import static

REDUCES = ["sum", "mul", "mean", "amax", "amin"]
Function = Callable[..., Any]


def leaf(array: Any, dtype: Any = None) -> inlay.Tensor:
    return inlay.to_tensor(np.array(array, dtype=dtype), stop_gradient=False)


def grad_list(tensor: inlay.Tensor) -> Any:
    assert tensor.grad is not None
    return tensor.grad.tolist()


# Random arguments for the numerical check.


class Draw:
    """Random shapes, indices and numbers. The numbers are distinct and not near 0."""

    def __init__(self, seed: object, dtype: str, zero_size: bool = False) -> None:
        self.rng = np.random.default_rng(zlib.crc32(repr(seed).encode()))
        self.dtype = np.dtype(dtype)
        self.zero_size = zero_size
        pool = np.linspace(0.3, 2.0, 4000)
        self.pool = self.rng.permutation(pool * self.rng.choice([-1, 1], pool.size))

    def real(self, shape: Any) -> np.ndarray:
        count = int(np.prod(shape, dtype=int))
        numbers, self.pool = self.pool[:count], self.pool[count:]
        return numbers.reshape(shape)

    def numbers(self, *shape: int) -> np.ndarray:
        if self.dtype.kind == "c":
            return np.asarray(self.real(shape) + 1j * self.real(shape))
        return self.real(shape)

    def shape(self, least: int = 1, most: int = 3) -> tuple[int, ...]:
        shape = self.rng.integers(1, 4, self.rng.integers(least, most + 1))
        if self.zero_size and shape.size:
            shape[self.rng.integers(shape.size)] = 0
        return tuple(map(int, shape))

    def axis(self, shape: tuple[int, ...]) -> int:
        """An axis, counted from either end."""
        return int(self.rng.integers(-len(shape), len(shape)))

    def index(self, size: int, *shape: int) -> np.ndarray:
        """An index with duplicates and negatives. It is empty if there are no places."""
        if size == 0:
            assert 0 in shape
            return np.zeros(shape, int)
        return self.rng.integers(-size, size, shape)

    def count(self, size: int) -> int:
        """The number of entries of an index into `size` places. It is often more than `size`."""
        return int(self.rng.integers(0, 2 * size + 1)) if size else 0

    def mask(self, *shape: int) -> np.ndarray:
        return self.rng.random(shape) < 0.5

    def slice(self, size: int) -> slice:
        bounds = [None, *range(-size - 2, size + 3)]
        start, stop = (bounds[self.rng.integers(len(bounds))] for _ in range(2))
        return slice(start, stop, int(self.rng.choice([-3, -2, -1, 1, 2, 3])))

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to `shape`."""
        kept = shape[self.rng.integers(len(shape) + 1) :]
        return tuple(1 if self.rng.random() < 0.3 else size for size in kept)


def without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    axis %= len(shape)
    return shape[:axis] + shape[axis + 1 :]


def resized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    axis %= len(shape)
    return (*shape[:axis], size, *shape[axis + 1 :])


# The numerical check.

LAYOUTS: dict[str, Function] = {
    "contiguous": lambda a: a.copy(),
    "columns": lambda a: np.array(a, order="F"),
    "steps": lambda a: spread(a),
}


def spread(a: np.ndarray) -> np.ndarray:
    """The same elements, stored in reverse order and with gaps in memory."""
    wide = np.full(tuple(2 * size for size in a.shape), 99.0, a.dtype)
    view = wide[(..., *(slice(None, None, -2) for _ in a.shape))]
    view[...] = a
    return view


def leaves(arrays: list[np.ndarray], layout: Function) -> list[inlay.Tensor]:
    tensors = [inlay.from_numpy(layout(array)) for array in arrays]
    for tensor in tensors:
        tensor.stop_gradient = False
    return tensors


def random_like(array: Any, rng: np.random.Generator) -> np.ndarray:
    array = np.asarray(array)
    numbers = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(array.shape)
    return np.asarray(numbers, array.dtype)


def by_differences(
    function: Callable[[list[np.ndarray]], list[np.ndarray]],
    arrays: list[np.ndarray],
    weights: list[np.ndarray],
    step: float,
) -> list[np.ndarray]:
    """The gradient of Re <weights, function(arrays)>, by central differences."""

    def loss(arrays: list[np.ndarray]) -> float:
        results = function(arrays)
        return sum(float(np.vdot(w, y).real) for w, y in zip(weights, results, strict=True))

    grads = []
    for k, array in enumerate(arrays):
        grad = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            for way in [1, 1j] if array.dtype.kind == "c" else [1]:
                ends = []
                for sign in [1, -1]:
                    moved = [other.copy() for other in arrays]
                    moved[k][at] += sign * way * step
                    ends.append(loss(moved))
                grad[at] += way * (ends[0] - ends[1]) / (2 * step)
        grads.append(grad)
    return grads


def in_both_modes(
    compute: Callable[[list[inlay.Tensor]], list[inlay.Tensor | None]],
    layout: Function,
    arrays: list[np.ndarray],
) -> list[np.ndarray]:
    """The results of `compute` for leaves. A program with unknown sizes must give the same bits."""
    found = compute(leaves(arrays, layout))
    program = static.Program()
    symbols = [
        program.data(f"x{k}", [None] * array.ndim, array.dtype) for k, array in enumerate(arrays)
    ]
    for symbol in symbols:
        symbol.stop_gradient = False
    built = compute(symbols)
    assert [one is None for one in built] == [one is None for one in found]
    fetched = [one for one in built if one is not None]
    feed = {f"x{k}": layout(array) for k, array in enumerate(arrays)}
    results = iter(program.run(feed, fetched) if fetched else [])
    for one in found:
        if one is not None:
            assert_same(next(results), one.numpy())
    return [
        np.zeros_like(array) if one is None else one.numpy()
        for one, array in zip(found, arrays, strict=False)
    ]


def first_order(function: Function, layout: Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The gradients of `function` for all arrays except the last one, which is the seed."""

    def compute(tensors: list[inlay.Tensor]) -> list[inlay.Tensor | None]:
        return inlay.grad(function(*tensors[:-1]), tensors[:-1], grad_outputs=[tensors[-1]])

    return in_both_modes(compute, layout, arrays)


def second_order(
    function: Function, layout: Function, arrays: list[np.ndarray], weights: list[np.ndarray]
) -> list[np.ndarray]:
    """The gradients of <weights, gradients of `function`>, for all arrays and the seed."""
    return in_both_modes(partial(gradients_of_gradients, function, weights), layout, arrays)


def gradients_of_gradients(
    function: Function, weights: list[np.ndarray], tensors: list[inlay.Tensor]
) -> list[inlay.Tensor | None]:
    y = function(*tensors[:-1])
    grads = inlay.grad(y, tensors[:-1], grad_outputs=[tensors[-1]], create_graph=True)
    tracked = [(g, w) for g, w in zip(grads, weights, strict=True) if not g.stop_gradient]
    if not tracked:
        return [None] * len(tensors)
    outputs, seeds = zip(*tracked, strict=True)
    return inlay.grad(list(outputs), tensors, grad_outputs=list(seeds), allow_unused=True)


def value_of(function: Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with inlay.no_grad():
        return [function(*(inlay.from_numpy(array) for array in arrays)).numpy()]


def assert_close(got: list[np.ndarray], expected: list[np.ndarray], what: str) -> None:
    for k, (a, b) in enumerate(zip(got, expected, strict=True)):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6, err_msg=f"{what}, input {k}")


def hessian(y: inlay.Tensor, inputs: list[inlay.Tensor]) -> list[list[float]]:
    grads = inlay.grad(y, inputs, create_graph=True)
    flat = inlay.concat(grads)
    rows = []
    for k in range(flat.size):
        parts = inlay.grad(flat[k], inputs, retain_graph=True, allow_unused=True)
        parts = [
            np.zeros(x.shape) if part is None else part.numpy()
            for part, x in zip(parts, inputs, strict=True)
        ]
        rows.append(np.concatenate(parts).tolist())
    return rows
