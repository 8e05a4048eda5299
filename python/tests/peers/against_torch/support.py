"""Helpers of the tests against PyTorch: dtypes, conversions, and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from arguments import numbers, without_negative_zeros
from naive import COMPLEXES, DTYPES, INTEGERS

UNSIGNED = ["uint16", "uint32", "uint64"]  # PyTorch has them, but few operations accept them
SHORT_FLOATS = ["float16", "bfloat16"]
OTHERS = [name for name in DTYPES if name not in UNSIGNED]
WELL_SUMMED = [name for name in OTHERS if name not in SHORT_FLOATS]

each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_other_dtype = pytest.mark.parametrize("dtype", OTHERS)
each_self = pytest.mark.parametrize("include_self", [True, False], ids=["with self", "without"])
ignores_beta = pytest.mark.filterwarnings(r"ignore:index_reduce\(\) is in beta:UserWarning")


# Conversions.


def torch_dtype(name: str) -> torch.dtype:
    return getattr(torch, name)


def to_torch(array: np.ndarray) -> torch.Tensor:
    array = np.array(array, order="C")
    if array.dtype == DTYPES["bfloat16"]:
        return torch.from_numpy(array.view("i2")).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(DTYPES["bfloat16"])
    return tensor.numpy()


def laid(rng: np.random.Generator, tensor: torch.Tensor) -> torch.Tensor:
    """The same elements with any order of axes and with gaps, but without negative strides."""
    order = rng.permutation(tensor.ndim).tolist()
    steps = rng.integers(1, 3, tensor.ndim).tolist()
    wide = [tensor.shape[axis] * steps[axis] for axis in order]
    base = torch.ones(wide, dtype=tensor.dtype)
    view = base.permute(np.argsort(order).tolist())[(..., *(slice(None, None, s) for s in steps))]
    return view.copy_(tensor)


def assert_bits(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes(), f"got\n{actual}\nexpected\n{expected}"


def assert_near(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    exponent = {"complex64": -20, "complex128": -48}[str(actual.dtype)]
    np.testing.assert_allclose(actual, expected, rtol=2.0**exponent, atol=2.0**exponent)


Compare = Callable[[np.ndarray, np.ndarray], None]


def t(values: Any, dtype: Any = None) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


# Arguments.


def disguised(rng: np.random.Generator, index: torch.Tensor, size: int) -> torch.Tensor:
    """The same positions in any dtype, some of them negative. PyTorch supports neither."""
    dtype = str(rng.choice(INTEGERS))
    positions = to_numpy(index)
    if DTYPES[dtype].kind == "i":
        positions = positions - size * (rng.random(positions.shape) < 0.3)
    return to_torch(positions.astype(dtype))


def some_rows(rng: np.random.Generator, size: int, least: int = 0) -> torch.Tensor:
    count = int(rng.integers(least, 2 * size + 2)) if size else 0
    return to_torch(rng.integers(0, max(size, 1), count))


def finite(x: np.ndarray) -> np.ndarray:
    """Complex numbers without infinity and -0.0, which have a separate test."""
    if x.dtype.kind != "c":
        return x
    return np.where(np.isfinite(x), x, x.dtype.type(1)) + x.dtype.type(0)


def small(rng: np.random.Generator, dtype: str, shape: Any) -> torch.Tensor:
    """Numbers whose sums do not overflow, without -0.0, which has a separate test."""
    if dtype in COMPLEXES:
        return to_torch(finite(numbers(rng, dtype, shape)))
    if dtype not in INTEGERS:
        return to_torch(without_negative_zeros(numbers(rng, dtype, shape)))
    low = 0 if dtype.startswith("u") else -5
    return to_torch(rng.integers(low, 6, shape).astype(dtype))
