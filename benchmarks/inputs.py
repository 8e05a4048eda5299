"""The inputs of a workload, generated from a seed and passed to all libraries in files."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks import chains
from benchmarks.rows import CHAINS, READS, TRIANGLES, Row

Arrays = dict[str, np.ndarray]

LAID = ("x", "values", "mask")  # the arrays that get the row's memory layout
FILL = 1  # the value that masked_fill and index_fill write


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], row: Row) -> np.ndarray:
    """Random elements whose sums and products stay in range.

    Floats are positive, so that the rounding error of a sum is small relative to the sum.
    """
    if row.dtype == "bool":
        return rng.random(shape, np.float32) < 0.5
    if row.dtype == "int64":
        return rng.integers(-100, 100, shape)
    unit = rng.random(shape, np.float32)
    unit -= np.float32(0.5)
    if row.reduce == "mul":
        unit /= 500
    unit += 1
    return unit.astype(dtype(row.dtype), copy=False)


def places(rng: np.random.Generator, count: int, size: int, distribution: str) -> np.ndarray:
    """`count` indices below `size`."""
    if distribution == "uniform":
        return rng.integers(0, size, count)
    if distribution == "sorted":
        return np.sort(rng.integers(0, size, count))
    if distribution == "equal":
        return np.full(count, size // 2)
    if distribution == "permutation":
        return rng.permutation(size)[:count]
    if distribution == "zipf":
        # The permutation separates frequent indices, which would otherwise be neighbours.
        return rng.permutation(size)[(rng.zipf(1.3, count) - 1) % size]
    raise ValueError(f"no distribution is called {distribution!r}")


def replaced(shape: tuple[int, ...], axis: int, *sizes: int) -> tuple[int, ...]:
    axis %= len(shape)
    return (*shape[:axis], *sizes, *shape[axis + 1 :])


def build(row: Row) -> Arrays:
    """The arrays that the workload reads, each contiguous."""
    rng = np.random.default_rng(zlib.crc32(row.name.encode()))
    if row.op in TRIANGLES:
        return {}
    if row.op in CHAINS:
        return chains.build(row, rng)
    arrays = {"x": numbers(rng, row.shape, row)}
    x = arrays["x"]
    values: tuple[int, ...] | None = None
    if row.op == "slice_scatter":
        values = x[row.selection].shape
    elif row.op == "select_scatter":
        values = replaced(row.shape, row.axis)
    elif row.op == "diagonal_scatter":
        values = x.diagonal(row.offset, row.axis1, row.axis2).shape
    elif row.op.startswith("masked"):
        shape = (row.shape[0], *(1 for _ in row.shape[1:])) if row.mask_rows else row.shape
        arrays["mask"] = rng.random(shape, np.float32) < row.mask
        if row.op == "masked_scatter":
            values = (int(arrays["mask"].sum()) * (row.count // arrays["mask"].size),)
    elif row.op in ("put_along_axis", "take_along_axis"):
        values = replaced(row.shape, row.axis, row.entries)
        if row.index == "permutation":
            index = np.argsort(rng.random(row.shape, np.float32), row.axis)
            key = replaced((slice(None),) * len(row.shape), row.axis, slice(row.entries))
            arrays["index"] = np.ascontiguousarray(index[key])
        else:
            flat = places(rng, int(np.prod(values)), row.shape[row.axis], row.index)
            arrays["index"] = flat.reshape(values)
    else:
        arrays["index"] = places(rng, row.entries, row.shape[row.axis], row.index)
        values = replaced(row.shape, row.axis, row.entries)
    if values is not None and row.op not in (*READS, "index_fill"):
        arrays["values"] = numbers(rng, values, row)
    return arrays


def base(array: np.ndarray, layout: str) -> np.ndarray:
    """The contiguous array from which `view` makes the array in the given layout."""
    if layout == "strided":
        return np.repeat(array, 2, axis=-1)
    if layout == "transposed":
        return np.ascontiguousarray(array.T)
    return array


def view(base: Any, layout: str) -> Any:
    """The view with the given layout of a base, which is an array or a tensor of a library."""
    if layout == "strided":
        return base[..., ::2]
    if layout == "transposed":
        return base.T
    return base


def laid(arrays: Arrays, row: Row) -> Arrays:
    """The bases of the arrays of a workload, by name."""
    return {
        name: base(array, row.layout) if name in LAID else array for name, array in arrays.items()
    }


def save(folder: Path, arrays: Arrays) -> None:
    for name, array in arrays.items():
        # NumPy's file format has no bfloat16.
        np.save(folder / name, array.view("u2") if array.dtype == ml_dtypes.bfloat16 else array)


def load(folder: Path, row: Row) -> Arrays:
    arrays = {}
    for file in folder.glob("*.npy"):
        array = np.load(file)
        short = row.dtype == "bfloat16" and array.dtype == np.uint16
        arrays[file.stem] = array.view(ml_dtypes.bfloat16) if short else array
    return arrays
