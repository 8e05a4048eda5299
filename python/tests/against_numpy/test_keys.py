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


def several_key(rng: np.random.Generator, shape: tuple[int, ...]) -> list[Any]:
    """Slices, `None`, integers, and several index arrays and masks that broadcast together."""
    common = tuple(rng.integers(1, 4, rng.integers(0, 3)).tolist())
    key: list[Any] = []
    axis = 0
    while axis < len(shape):
        size, what = shape[axis], rng.random()
        if what < 0.5 and size:
            key.append(any_index(rng, thinner(rng, common), size))
        elif what < 0.6 and common and common[-1] <= size:
            mask = np.zeros(size, bool)
            mask[rng.permutation(size)[: common[-1]]] = True
            key.append(mask)
        elif what < 0.7 and len(common) and axis + 1 < len(shape):
            both = shape[axis : axis + 2]
            if common[-1] > both[0] * both[1]:
                continue
            mask = np.zeros(both[0] * both[1], bool)
            mask[rng.permutation(mask.size)[: common[-1]]] = True
            key.append(mask.reshape(both))
            axis += 1
        else:
            key.append(slice(any_bound(rng, size), any_bound(rng, size), any_step(rng)))
        axis += 1
    for _ in range(rng.integers(0, 3)):
        key.insert(int(rng.integers(0, len(key) + 1)), None)
    if rng.random() < 0.2:
        key.insert(int(rng.integers(0, len(key) + 1)), bool(rng.random() < 0.8))
    return key


def is_defined_alike(key: list[Any]) -> bool:
    """Whether NumPy's rule is ours: it counts 0-D index arrays as index arrays, and not as ints."""
    return all(item.ndim for item in key if isinstance(item, np.ndarray))


@each_dtype
def test_several_indices(rng, dtype) -> None:
    checked = 0
    while checked < 40:
        for shape in shapes(rng, least=2, each=2):
            x, key = bits(rng, dtype, shape), several_key(rng, shape)
            arrays = [item for item in key if isinstance(item, np.ndarray)]
            if len(arrays) < 2 or not is_defined_alike(key):
                continue
            try:
                x[tuple(key)]
            except IndexError:  # False, which selects nothing, beside other indices
                with pytest.raises((IndexError, ValueError)):
                    inlay.from_numpy(x)[tuple(key)]
                continue
            check_key(rng, x, key)
            checked += 1


@pytest.mark.parametrize("wrap", [list, tuple, np.array, inlay.to_tensor])
def test_indices_are_lists_tuples_arrays_and_tensors(wrap) -> None:
    x, r, c = np.arange(12).reshape(3, 4), [2, 0, -1], [1, -4, 3]
    tensor = inlay.to_tensor(x)
    assert tensor[wrap(r), wrap(c)].tolist() == x[r, c].tolist()
    tensor[wrap(r), wrap(c)] = [7, 8, 9]
    x[r, c] = [7, 8, 9]
    assert tensor.tolist() == x.tolist()


def test_a_triangle_is_read_and_written_by_its_indices() -> None:
    packed = inlay.to_tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], stop_gradient=False)
    r, c = inlay.tril_indices(3)
    full = inlay.zeros([3, 3])
    full[r, c] = packed
    full[c, r] = packed
    assert full.tolist() == [[1, 2, 4], [2, 3, 5], [4, 5, 6]]
    assert full[r, c].tolist() == packed.tolist()
    (full[r, c] * inlay.arange(6, dtype="float32")).sum().backward()
    assert packed.grad.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_last_of_several_writes_to_a_place_wins_and_gets_the_gradient() -> None:
    x = inlay.zeros([2, 2], dtype="float64")
    value = inlay.to_tensor(np.array([1.0, 2.0, 3.0]), stop_gradient=False)
    r, c = [0, 1, 0], [1, 0, 1]
    x[r, c] = value
    assert x.tolist() == [[0, 3], [2, 0]]
    (x * 2).sum().backward()
    assert value.grad.tolist() == [0, 2, 2]


def test_a_read_with_duplicates_sums_their_gradients() -> None:
    x = inlay.to_tensor(np.zeros((2, 2)), stop_gradient=False)
    (x[[0, 0, 1], [1, 1, 0]] * inlay.to_tensor(np.array([1.0, 2.0, 4.0]))).sum().backward()
    assert x.grad.tolist() == [[0, 3], [4, 0]]


def test_a_value_that_overlaps_the_target_is_read_before_the_write() -> None:
    x = np.arange(9.0).reshape(3, 3)
    tensor, expected = inlay.from_numpy(x), x.copy()
    expected[[0, 1], [1, 2]] = expected[1:, 1].copy()
    tensor[[0, 1], [1, 2]] = tensor[1:, 1]
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(
    "key",
    [([0, 1], [2, 3]), ([0, 1], [0, -4]), ([0, 1], slice(None), [0, 9]), ([True, False], [0, 5])],
)
def test_a_failed_write_changes_nothing(key) -> None:
    tensor = inlay.zeros([2, 3, 3])
    with pytest.raises((IndexError, ValueError)):
        tensor[key] = 7.0
    assert tensor.sum().item() == 0


def test_a_write_that_cannot_be_recorded_names_the_operation() -> None:
    leaf = inlay.to_tensor([[1.0, 2.0]], stop_gradient=False)
    with pytest.raises(RuntimeError, match="index_put: x is a leaf"):
        leaf.index_put_(([0], [1]), 5.0)
    with pytest.raises(RuntimeError, match="setitem: x is a leaf"):
        leaf[[0], [1]] = 5.0
    with pytest.raises(RuntimeError, match="index_put: x is a view"):
        (leaf * 1)[:1].index_put_(([0], [1]), 5.0)
    assert leaf.tolist() == [[1.0, 2.0]]


def test_choices_where_numpy_and_pytorch_differ() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    tensor, index = inlay.to_tensor(x), np.array([0, 1])
    # As in PyTorch, a 0-D index tensor only removes its axis, like a Python integer.
    assert tensor[np.array(1), :, index].tolist() == x[1][:, index].tolist()
    # As in PyTorch, an ellipsis that stands for no axis separates nothing.
    assert x[:, index, ..., index].shape == (2, 2)
    assert tensor[:, index, ..., index].tolist() == x[:, index, index].tolist()
