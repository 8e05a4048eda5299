"""Helpers of the tests against other libraries: random arguments, and comparison of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from naive import COMPLEXES, DTYPES, INTEGERS

LARGEST = {0: 1, 1: 40, 2: 12, 3: 7, 4: 5, 5: 4, 6: 3}  # the largest size of an axis, by rank
FAR = 2**62


def shapes(rng: np.random.Generator, least: int = 0, each: int = 3) -> Iterator[tuple[int, ...]]:
    """Shapes of every rank from `least` to 6. Some have an axis of size 0."""
    for rank in range(least, 7):
        for _ in range(each):
            sizes = rng.integers(1, LARGEST[rank] + 1, rank)
            sizes[rng.random(rank) < 0.05] = 0
            yield tuple(sizes.tolist())


def bits(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Random bit patterns, including subnormals and NaNs with any payload."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    size = math.prod(shape) * DTYPES[dtype].itemsize
    return np.frombuffer(rng.bytes(size), DTYPES[dtype]).reshape(shape).copy()


def numbers(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Numbers for arithmetic: most have a moderate size, and a few are extreme."""
    if dtype in ("bool", *INTEGERS):
        return bits(rng, dtype, shape)
    if dtype in COMPLEXES:
        part = "float32" if dtype == "complex64" else "float64"
        pairs = numbers(rng, part, (*shape, 2))
        return np.ascontiguousarray(pairs).view(DTYPES[dtype]).reshape(shape)
    values = rng.normal(size=shape) * 2.0 ** rng.integers(-6, 7, shape)
    extremes = rng.choice([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 3e4, 1e-7], shape)
    return np.where(rng.random(shape) < 0.1, extremes, values).astype(DTYPES[dtype])


def python(number: np.ndarray) -> Any:
    """One element as a Python number."""
    return number.item() if number.dtype.kind in "biufc" else float(number)


def stretched(
    rng: np.random.Generator, make: Callable[..., np.ndarray], dtype: str, shape: Any
) -> np.ndarray:
    """The array of `make`, with stride 0 along some axes."""
    thin = [1 if n and rng.random() < 0.15 else n for n in shape]
    return np.broadcast_to(make(rng, dtype, tuple(thin)), shape)


def thinner(rng: np.random.Generator, shape: Any) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    sizes = [1 if rng.random() < 0.3 else n for n in shape]
    return tuple(sizes[rng.integers(0, len(sizes) + 1) if rng.random() < 0.3 else 0 :])


def any_axis(rng: np.random.Generator, rank: int) -> int:
    return int(rng.integers(-rank, rank))


def any_index(rng: np.random.Generator, shape: Any, size: int) -> np.ndarray:
    """An index into an axis of this size, of any integer dtype, with duplicates and negatives."""
    dtype = DTYPES[rng.choice(INTEGERS)]
    low = -size if dtype.kind == "i" else 0
    return rng.integers(low, size, shape).astype(dtype) if size else np.zeros(shape, dtype)


def any_bound(rng: np.random.Generator, size: int) -> int | None:
    return rng.choice([None, *rng.integers(-size - 3, size + 4, 8).tolist(), FAR, -FAR])


def any_step(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 1, 2, 3, -1, -1, -2, -3, FAR, -FAR]))


def laid(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """The same elements with a random layout: order of axes, gaps, direction, alignment."""
    if 0 in array.strides and array.size > 1 and rng.random() < 0.5:
        return array
    order = rng.permutation(array.ndim)
    steps = rng.choice([-2, -1, 1, 1, 2], array.ndim)
    wide = np.array(array.shape, int) * abs(steps)
    junk = bits(rng, str(array.dtype), tuple(wide[order].tolist()))
    memory = np.zeros(junk.nbytes + 1, np.uint8)
    shift = int(rng.random() < 0.2)
    base = memory[shift : shift + junk.nbytes].view(array.dtype).reshape(junk.shape)
    base[...] = junk
    view = base.transpose(np.argsort(order))[(..., *(slice(None, None, s) for s in steps))]
    view[...] = array
    return view


def replaced(shape: tuple[int, ...], axis: int, *sizes: Any) -> tuple[int, ...]:
    """A shape in which other sizes replace an axis."""
    axis %= len(shape)
    return (*shape[:axis], *(int(size) for size in sizes), *shape[axis + 1 :])


def defined(dtype: str, reduce: str) -> bool:
    return not (
        (dtype == "bool" and reduce == "mean")
        or (dtype in COMPLEXES and reduce in ("amax", "max", "amin", "min"))
    )


def assert_bits(actual: np.ndarray, expected: np.ndarray) -> None:
    """Asserts that all bits are equal, also those of NaNs."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes(), f"got\n{actual}\nexpected\n{expected}"


def without_negative_zeros(x: np.ndarray) -> np.ndarray:
    """Replaces -0.0 by 0.0, because libraries differ in ties between them."""
    return np.where(x == 0, np.zeros((), x.dtype), x) if x.dtype.kind not in "bc" else x
