"""Keys of `x[...]` against NumPy: basic keys, masks and integer arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arguments import any_bound, any_index, any_step, assert_bits, bits, laid, shapes, thinner

import inlay

from .support import each_dtype


def basic_key(rng: np.random.Generator, shape: tuple[int, ...]) -> list[Any]:
    """Integers, slices, `None` and `...`."""
    key: list[Any] = []
    for size in shape:
        if size and rng.random() < 0.3:
            key.append(int(rng.integers(-size, size)))
        else:
            key.append(slice(any_bound(rng, size), any_bound(rng, size), any_step(rng)))
    start, stop = sorted(rng.integers(0, len(key) + 1, 2).tolist())
    if rng.random() < 0.3:
        key[start:stop] = [...]
    elif rng.random() < 0.5:
        key = key[:stop]
    for _ in range(rng.integers(0, 3)):
        key.insert(int(rng.integers(0, len(key) + 1)), None)
    return key


def advanced_key(rng: np.random.Generator, shape: tuple[int, ...]) -> list[Any]:
    """Slices, and one mask or one integer array."""
    key: list[Any] = [
        slice(None) if rng.random() < 0.5 else slice(None, None, any_step(rng)) for _ in shape
    ]
    axis = int(rng.integers(0, len(shape)))
    if shape[axis] and rng.random() < 0.5:
        index_shape = tuple(rng.integers(0, 4, rng.integers(0, 3)).tolist())
        key[axis] = any_index(rng, index_shape, shape[axis])
    else:
        until = int(rng.integers(axis + 1, len(shape) + 1))
        key[axis:until] = [rng.random(shape[axis:until]) < 0.5]
    last = next(i for i, item in enumerate(key) if isinstance(item, np.ndarray))
    return key[: max(last + 1, int(rng.integers(0, len(key) + 1)))]


def check_key(rng: np.random.Generator, x: np.ndarray, key: list[Any]) -> None:
    numpy_key = tuple(
        item.astype("int64") if isinstance(item, np.ndarray) and item.dtype != bool else item
        for item in key
    )
    expected = np.array(x[numpy_key])
    for wrap in (inlay.from_numpy, np.asarray):
        items = [wrap(item) if isinstance(item, np.ndarray) else item for item in key]
        our_key = items[0] if len(items) == 1 else tuple(items)
        tensor = inlay.from_numpy(laid(rng, x))
        assert_bits(tensor[our_key].numpy(), expected)

        value = bits(rng, str(x.dtype), thinner(rng, expected.shape))
        written = x.copy()
        written[numpy_key] = value
        for given in (laid(rng, value), inlay.from_numpy(laid(rng, value))):
            memory = laid(rng, x)
            tensor = inlay.from_numpy(memory)
            tensor[our_key] = given
            assert_bits(memory, written)


@each_dtype
def test_basic_keys(rng, dtype) -> None:
    for shape in shapes(rng):
        check_key(rng, bits(rng, dtype, shape), basic_key(rng, shape))


@each_dtype
def test_advanced_keys(rng, dtype) -> None:
    for shape in shapes(rng, least=1):
        check_key(rng, bits(rng, dtype, shape), advanced_key(rng, shape))


def test_integers_beside_an_index() -> None:
    x, index = np.arange(60).reshape(3, 4, 5), np.array([0, 1, 1])
    tensor = inlay.to_tensor(x)
    for key in ((0, index), (index, 0), (..., 1, index), (index, slice(None), 0), (index, None, 2)):
        assert_bits(tensor[key].numpy(), x[key])
    # By choice: an integer removes its axis before the index is read, as in PyTorch. NumPy treats
    # it as an index array, and moves the axes of index arrays to the front if a slice is in
    # between.
    assert x[0, :, index].shape == (3, 4)
    assert_bits(tensor[0, :, index].numpy(), np.ascontiguousarray(x[0, :, index].T))
    # By choice: a key has at most one index. NumPy pairs several indices element by element.
    assert x[index, index].shape == (3, 5)
    with pytest.raises(IndexError, match="expected one tensor at most"):
        tensor[index, index]
