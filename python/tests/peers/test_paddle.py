"""Inlay against the real Paddle, memory shared through DLPack.

Results agree bit for bit. Where Paddle is wrong or differs by choice, a test of its own shows what
each of them does and says why, so that it fails when Paddle changes. Where Paddle reads or writes
past its memory, the memory is the middle of a larger array, or the call is made in a process of its
own.
"""

from __future__ import annotations

import gc
import math
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import paddle
import pytest
from arguments import (
    any_axis,
    assert_bits,
    bits,
    numbers,
    replaced,
    shapes,
    thinner,
    without_negative_zeros,
)
from cases import assert_same
from naive import DTYPES, INTEGERS

import inlay

UNSIGNED = ["uint16", "uint32", "uint64"]  # Paddle hands them through, and has no operations
KNOWN = [name for name in DTYPES if name not in UNSIGNED]

# What Paddle takes; the test of dtypes below shows that it takes no other.
LARGE = ["int32", "int64", "float32", "float64"]
TAKES = {
    "slice_scatter": KNOWN,
    "select_scatter": KNOWN,
    "diagonal_scatter": [name for name in KNOWN if name != "bfloat16"],
    "masked_scatter": ["bool", *LARGE, "complex64", "complex128"],
    "masked_fill": KNOWN,
    "masked_select": KNOWN,
    "index_fill": KNOWN,
    "index_select": ["bool", "bfloat16", *LARGE, "complex64", "complex128"],
    "scatter": LARGE,
    "put_along_axis": ["uint8", "int16", *LARGE],
    "take_along_axis": ["uint8", "int16", *LARGE],
    "where": ["bool", *LARGE, "complex64", "complex128"],
    "tril": ["bool", "float16", *LARGE, "complex64", "complex128"],
}


def each_dtype_of(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("dtype", TAKES[name])


# From one to the other.


def to_paddle(values: Any, dtype: str | None = None) -> paddle.Tensor:
    if not isinstance(values, np.ndarray | np.generic):
        return paddle.to_tensor(values, dtype=dtype)
    array = np.array(values, order="C")
    if array.dtype == DTYPES["bfloat16"]:
        return paddle.to_tensor(array.view("i2")).view("bfloat16")
    return paddle.to_tensor(array)


def to_numpy(tensor: paddle.Tensor) -> np.ndarray:
    array = tensor.numpy()
    return array.view(DTYPES["bfloat16"]) if tensor.dtype == paddle.bfloat16 else array


def laid(rng: np.random.Generator, array: np.ndarray) -> paddle.Tensor:
    """The array's elements in Paddle's memory, in any order of axes and with gaps."""
    if array.size == 0:
        return to_paddle(array)
    order = rng.permutation(array.ndim)
    steps = tuple(slice(None, None, int(step)) for step in rng.integers(1, 3, array.ndim))
    wide = [array.shape[axis] * steps[axis].step for axis in order]
    base, back = np.ones(wide, array.dtype), np.argsort(order).tolist()
    base.transpose(back)[(..., *steps)] = array
    theirs = to_paddle(base)
    return theirs.transpose(back)[steps] if array.ndim else theirs


Compare = Callable[[np.ndarray, np.ndarray], None]


@pytest.fixture
def agree(rng) -> Callable[..., None]:
    """Calls an operation on Paddle's memory, and compares what comes with what Paddle said."""

    def compare(
        name: str,
        given: list[np.ndarray],
        theirs: paddle.Tensor,
        same: Compare = assert_bits,
        twin: bool = False,
        **attrs: Any,
    ) -> None:
        foreign = [laid(rng, array) for array in given]
        shared = [inlay.from_dlpack(tensor) for tensor in foreign]
        ours = paddle.from_dlpack(getattr(inlay, name)(*shared, **attrs))
        assert ours.dtype == theirs.dtype
        same(to_numpy(ours), to_numpy(theirs))
        for tensor, before in zip(foreign, given, strict=True):
            assert_bits(to_numpy(tensor), before)
        if twin:
            target = inlay.from_dlpack(foreign[0])
            assert getattr(inlay, f"{name}_")(target, *shared[1:], **attrs) is target
            same(to_numpy(foreign[0]), to_numpy(theirs))  # written into Paddle's memory

    return compare


def shared(*tensors: paddle.Tensor) -> list[inlay.Tensor]:
    return [inlay.from_dlpack(tensor) for tensor in tensors]


def full_shapes(
    rng: np.random.Generator, least: int = 0, each: int = 3
) -> Iterator[tuple[int, ...]]:
    """Shapes of every rank, none with an axis of size 0: on those Paddle may crash."""
    return (tuple(max(size, 1) for size in shape) for shape in shapes(rng, least, each))


def some_rows(rng: np.random.Generator, size: int) -> np.ndarray:
    count = int(rng.integers(0, 2 * size + 2)) if size else 0
    return rng.integers(-size, max(size, 1), count)


# The five.


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("half", ["tril_indices", "triu_indices"])
def test_triangle_indices(rng, half, dtype) -> None:
    for _ in range(60):
        rows, columns = rng.integers(1, 9, 2).tolist()
        offset = int(rng.integers(-11, 12))
        theirs = getattr(paddle, half)(rows, columns, offset, dtype)
        assert_bits(getattr(inlay, half)(rows, columns, offset, dtype).numpy(), to_numpy(theirs))


@each_dtype_of("slice_scatter")
def test_slice_scatter(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1, each=4):
        x = bits(rng, dtype, shape)
        axes = rng.permutation(x.ndim)[: rng.integers(1, x.ndim + 1)].tolist()
        key = [slice(None)] * x.ndim
        for axis in axes:
            start, stop = rng.integers(-shape[axis] - 3, shape[axis] + 4, 2).tolist()
            key[axis] = slice(start, stop, int(rng.choice([-3, -2, -1, 1, 2, 3])))
        taken = x[tuple(key)].shape
        if 0 in taken:
            continue  # see the test of empty slices
        y = bits(rng, dtype, taken)
        starts, stops = [key[axis].start for axis in axes], [key[axis].stop for axis in axes]
        steps = [key[axis].step for axis in axes]
        theirs = paddle.slice_scatter(to_paddle(x), to_paddle(y), axes, starts, stops, steps)
        attrs = {"axis": axes, "start": starts, "stop": stops, "step": steps}
        agree("slice_scatter", [x, y], theirs, twin=True, **attrs)


@each_dtype_of("diagonal_scatter")
def test_diagonals(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=2):
        x = bits(rng, dtype, shape)
        axis1, axis2 = rng.permutation(x.ndim)[:2].tolist()
        # Past the edge Paddle asks for a negative length; see the test of that.
        offset = int(rng.integers(-shape[axis1], shape[axis2] + 1))
        attrs = {"offset": offset, "axis1": axis1 - x.ndim, "axis2": axis2}
        theirs = paddle.diagonal(to_paddle(x), offset, axis1, axis2)
        agree("diagonal", [x], theirs, **attrs)
        src = bits(rng, dtype, tuple(theirs.shape))
        theirs = paddle.diagonal_scatter(to_paddle(x), to_paddle(src), offset, axis1, axis2)
        agree("diagonal_scatter", [x, src], theirs, twin=True, **attrs)


@each_dtype_of("masked_scatter")
def test_masked_scatter(rng, agree, dtype) -> None:
    for shape in full_shapes(rng):
        x = bits(rng, dtype, shape)
        mask = np.array(rng.random(thinner(rng, shape)) < rng.choice([0.0, 0.3, 0.7, 1.0]))
        count = np.count_nonzero(np.broadcast_to(mask, shape))
        # Never without an element: see the test of an empty source.
        source = bits(rng, dtype, (max(count, 1) + int(rng.integers(0, 3)),))
        theirs = paddle.masked_scatter(*map(to_paddle, (x, mask, source)))
        agree("masked_scatter", [x, mask, source], theirs, twin=True)


@each_dtype_of("masked_fill")
def test_masked_fill_and_select(rng, agree, dtype) -> None:
    for shape in full_shapes(rng):
        x, number = bits(rng, dtype, shape), numbers(rng, dtype, ())
        mask = np.array(rng.random(thinner(rng, shape)) < rng.choice([0.0, 0.3, 0.7, 1.0]))
        theirs = paddle.masked_fill(*map(to_paddle, (x, mask, number)))
        agree("masked_fill", [x, mask, number], theirs, assert_same, twin=True)
        theirs = paddle.masked_select(to_paddle(x), to_paddle(mask))
        agree("masked_select", [x, mask], theirs)


@each_dtype_of("scatter")
def test_scatter(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x, index = without_negative_zeros(numbers(rng, dtype, shape)), some_rows(rng, shape[0])
        further = int(rng.integers(0, 3))
        updates = numbers(rng, dtype, (len(index) + further, *shape[1:]))
        updates = without_negative_zeros(updates)  # see the test of -0.0
        for overwrite in (True, False):
            theirs = paddle.scatter(*map(to_paddle, (x, index, updates)), overwrite=overwrite)
            given = [x, index, updates]
            agree("scatter", given, theirs, assert_same, twin=True, overwrite=overwrite)
        index = np.array(rng.integers(-shape[0], shape[0]))
        updates = numbers(rng, dtype, shape[1:])
        theirs = paddle.scatter(*map(to_paddle, (x, index, updates)))
        agree("scatter", [x, index, updates], theirs, assert_same, twin=True)


def test_scatter_sums_the_updates_alone_by_default_in_both() -> None:
    # Paddle zeroes the rows that the index names, and adds: Inlay's include_self=False.
    x, index, updates = to_paddle([100.0, 100.0]), to_paddle([0, 0]), to_paddle([1.0, 2.0])
    theirs = paddle.scatter(x, index, updates, overwrite=False)
    assert theirs.tolist() == [3, 100]
    ours = inlay.scatter(*shared(x, index, updates), overwrite=False)
    assert ours.tolist() == [3, 100]


# Single elements.


def small(rng: np.random.Generator, dtype: str, shape: Any) -> np.ndarray:
    """Numbers of which a few add up without overflow; NaN and -0.0 have tests of their own."""
    if dtype in INTEGERS:
        return rng.integers(0 if dtype.startswith("u") else -5, 6, shape).astype(dtype)
    x = without_negative_zeros(numbers(rng, dtype, shape))
    return np.where(np.isnan(x), x.dtype.type(1), x)


def broadcast_arguments(
    rng: np.random.Generator, shape: tuple[int, ...]
) -> tuple[int, np.ndarray, tuple[int, ...]]:
    """An axis, an index that stretches to x off it, and a shape that stretches to the index's."""
    axis = any_axis(rng, len(shape))
    # No longer than x: see the test of a long index.
    count = int(rng.integers(1, shape[axis] + 1))
    thin = replaced(tuple(1 if rng.random() < 0.3 else n for n in shape), axis, count)
    index = rng.integers(-shape[axis], shape[axis], thin)
    values = tuple(1 if rng.random() < 0.2 else n for n in replaced(shape, axis, count))
    return axis, index, values


def exact_arguments(
    rng: np.random.Generator, shape: tuple[int, ...]
) -> tuple[int, np.ndarray, tuple[int, ...]]:
    """An axis, an index no larger than x off it, and a shape no smaller than the index's."""
    axis = any_axis(rng, len(shape))
    named = tuple(int(rng.integers(1, n + 1)) for n in shape)
    named = replaced(named, axis, rng.integers(1, min(2 * shape[axis], 8) + 1))
    index = rng.integers(-shape[axis], shape[axis], named)
    return axis, index, tuple(n + int(rng.integers(0, 2)) for n in named)


@each_dtype_of("take_along_axis")
def test_take_along_axis(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x = bits(rng, dtype, shape)
        for arguments, broadcast in ((broadcast_arguments, True), (exact_arguments, False)):
            axis, index, _ = arguments(rng, shape)
            theirs = paddle.take_along_axis(to_paddle(x), to_paddle(index), axis, broadcast)
            agree("take_along_axis", [x, index], theirs, axis=axis, broadcast=broadcast)


@pytest.mark.parametrize("broadcast", [True, False], ids=["broadcast", "exact"])
@pytest.mark.parametrize("include_self", [True, False], ids=["with self", "without"])
@pytest.mark.parametrize("reduce", ["assign", "add", "mul", "multiply", "mean", "amax", "amin"])
@each_dtype_of("put_along_axis")
def test_put_along_axis(rng, agree, dtype, reduce, include_self, broadcast) -> None:
    for shape in full_shapes(rng, least=1, each=2):
        arguments = broadcast_arguments if broadcast else exact_arguments
        axis, index, values_shape = arguments(rng, shape)
        x, values = small(rng, dtype, shape), small(rng, dtype, values_shape)
        theirs = paddle.put_along_axis(
            *map(to_paddle, (x, index, values)), axis, reduce, include_self, broadcast
        )
        attrs = {"axis": axis, "reduce": reduce, "include_self": include_self}
        given = [x, index, values]
        agree("put_along_axis", given, theirs, assert_same, twin=True, broadcast=broadcast, **attrs)


# The rest of the family.


@pytest.mark.parametrize("dtype", LARGE)
def test_additions_to_rows_and_places(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x, axis = small(rng, dtype, shape), any_axis(rng, len(shape))
        index = np.append(some_rows(rng, shape[axis]), 0)
        value = small(rng, dtype, replaced(shape, axis, len(index)))
        theirs = paddle.index_add(to_paddle(x), to_paddle(index), axis, to_paddle(value))
        attrs = {"axis": axis, "value": inlay.to_tensor(value)}
        agree("index_add", [x, index], theirs, assert_same, twin=True, **attrs)

        depth = int(rng.integers(1, len(shape) + 1))
        count = int(rng.integers(1, 9))
        index = np.stack([rng.integers(0, n, count) for n in shape[:depth]], axis=-1)
        value = small(rng, dtype, (count, *shape[depth:]))
        theirs = paddle.scatter_nd_add(*map(to_paddle, (x, index, value)))
        agree("scatter_nd_add", [x, index, value], theirs, assert_same)
        theirs = paddle.scatter_nd(to_paddle(index), to_paddle(value), list(shape))
        agree("scatter_nd", [index, value], theirs, assert_same, shape=list(shape))


@each_dtype_of("index_fill")
def test_rows(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=1):
        x, axis = bits(rng, dtype, shape), any_axis(rng, len(shape))
        index = some_rows(rng, shape[axis])
        number = numbers(rng, dtype, ())
        theirs = paddle.index_fill(to_paddle(x), to_paddle(index), axis, to_paddle(number))
        attrs = {"axis": axis, "value": inlay.to_tensor(number)}
        agree("index_fill", [x, index], theirs, assert_same, twin=True, **attrs)
        if dtype in TAKES["index_select"]:
            theirs = paddle.index_select(to_paddle(x), to_paddle(index), axis)
            agree("index_select", [x, index], theirs, axis=axis)
        row = int(rng.integers(-shape[axis], shape[axis]))
        values = bits(rng, dtype, replaced(shape, axis))
        theirs = paddle.select_scatter(to_paddle(x), to_paddle(values), axis, row)
        agree("select_scatter", [x, values], theirs, twin=True, axis=axis, index=row)


@each_dtype_of("tril")
def test_triangles_and_where(rng, agree, dtype) -> None:
    for shape in full_shapes(rng, least=2):
        x, y = (bits(rng, dtype, shape) for _ in range(2))
        diagonal = int(rng.integers(-9, 10))
        agree("tril", [x], paddle.tril(to_paddle(x), diagonal), diagonal=diagonal)
        agree("triu", [x], paddle.triu(to_paddle(x), diagonal), diagonal=diagonal)
        if dtype in TAKES["where"]:
            condition = rng.random(shape) < 0.5
            theirs = paddle.where(*map(to_paddle, (condition, x, y)))
            agree("where", [condition, x, y], theirs)


# Where Paddle is wrong.


def in_a_larger_array(values: list[float]) -> tuple[np.ndarray, paddle.Tensor, inlay.Tensor]:
    """An array of zeros, and its middle, which holds the values, as seen by Paddle and by Inlay."""
    array = np.zeros(len(values) + 8, "f4")
    array[4:-4] = values
    ours = inlay.from_numpy(array[4:-4])
    theirs = paddle.from_dlpack(ours)
    assert theirs.data_ptr() == ours.data_ptr() == array[4:].__array_interface__["data"][0]
    return array, theirs, ours


def test_masked_scatter_does_not_read_past_a_short_source() -> None:
    # Paddle compares the number of true places less one with the size of the source, so it lets a
    # source pass that lacks one element, and reads the memory behind it.
    array, source, our_source = in_a_larger_array([1.0, 2.0, 3.0])
    array[-4] = 777
    x, mask = paddle.zeros([4]), to_paddle([True] * 4)
    assert paddle.masked_scatter(x, mask, source).tolist() == [1, 2, 3, 777]
    with pytest.raises(ValueError, match="source has 3 elements, mask selects 4"):
        inlay.masked_scatter(*shared(x, mask), our_source)
    # A source that lacks two is refused by both.
    with pytest.raises(AssertionError, match="mask true nums is 3, value size is 2"):
        paddle.masked_scatter(x, mask, to_paddle([1.0, 2.0]))


@pytest.mark.parametrize("bad", [5, -6])
@pytest.mark.parametrize("name", ["index_fill_", "index_put_", "setitem"])
def test_nothing_is_written_outside_of_x(name, bad) -> None:
    # Paddle does not check the index of these, and writes wherever it points.
    array, x, ours = in_a_larger_array([0.0] * 4)
    index, two = to_paddle([0, bad]), to_paddle([9.0, 9.0])
    their_calls = {
        "index_fill_": lambda: paddle.index_fill_(x, index, 0, 9.0),
        "index_put_": lambda: paddle.index_put_(x, (index,), two),
        "setitem": lambda: x.__setitem__(index, two),
    }
    their_calls[name]()
    assert array.nonzero()[0].tolist() == sorted([4, 4 + bad if bad > 0 else 8 + bad])
    array[:] = 0
    our_index, our_two = shared(index, two)
    our_calls = {
        "index_fill_": lambda: inlay.index_fill_(ours, our_index, 0, 9.0),
        "index_put_": lambda: inlay.scatter_(ours, our_index, our_two),
        "setitem": lambda: ours.__setitem__(our_index, our_two),
    }
    with pytest.raises(IndexError, match=rf"index\[1\] is {bad}, .*axis 0 of size 4"):
        our_calls[name]()
    assert not array.any()


def test_nothing_is_read_outside_of_x() -> None:
    array, x, ours = in_a_larger_array([1.0, 2.0, 3.0, 4.0])
    array[-3] = 777
    assert x[to_paddle([0, 5])].tolist() == [1, 777]
    with pytest.raises(IndexError, match=r"index\[1\] is 5"):
        ours[[0, 5]]


CRASHES = {
    # A mask that selects nothing reads the first element of an empty source anyway.
    "empty source": (
        'paddle.masked_scatter(paddle.zeros([3]), paddle.zeros([3], "bool"), paddle.zeros([0]))',
        lambda: inlay.masked_scatter(inlay.zeros([3]), [False] * 3, inlay.zeros([0])),
        [0, 0, 0],
    ),
    # The position in a matrix is reckoned from the number of matrices, which is 0.
    "no matrices": (
        "paddle.diagonal_scatter(paddle.zeros([2, 0, 3, 3]), paddle.zeros([2, 0, 3]), 0, 2, 3)",
        lambda: inlay.diagonal_scatter(inlay.zeros([2, 0, 3, 3]), inlay.zeros([2, 0, 3]), 0, 2, 3),
        [[], []],
    ),
    # A negative axis is not counted from the end, but looked up before the beginning.
    "negative axis": (
        "paddle.slice_scatter(paddle.zeros([1, 2]), paddle.ones([1, 1]), [-1], [0], [1], [1])",
        lambda: inlay.slice_scatter(inlay.zeros([1, 2]), inlay.ones([1, 1]), -1, 0, 1),
        [[1, 0]],
    ),
}


@pytest.mark.parametrize("name", CRASHES)
def test_nothing_crashes(name) -> None:
    theirs, ours, expected = CRASHES[name]
    code = "import resource, paddle; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"
    command = [sys.executable, "-c", f"{code}; {theirs}"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == -signal.SIGSEGV, process.stderr
    assert ours().tolist() == expected


def test_values_of_another_dtype_are_refused() -> None:
    # Paddle's diagonal_scatter takes the bits of other values for those of x's dtype (and reads
    # past them if they are shorter). slice_scatter and select_scatter cast, the others refuse.
    x, integers = paddle.zeros([2, 2]), to_paddle([1, 2], "int32")
    theirs = paddle.diagonal_scatter(x, integers)
    as_floats = np.array([1, 2], "i4").view("f4")
    assert_bits(np.diagonal(theirs.numpy()).copy(), as_floats)
    row, matrix = integers.unsqueeze(0), paddle.ones([2, 2], "int32")
    assert paddle.slice_scatter(x, row, [0], [0], [1], [1]).tolist() == [[1, 2], [0, 0]]
    assert paddle.select_scatter(x, integers, 0, 0).tolist() == [[1, 2], [0, 0]]
    mask, index = paddle.ones([2, 2], "bool"), to_paddle([0, 1])
    for refused in (
        lambda: paddle.masked_scatter(x, mask, matrix),
        lambda: paddle.scatter(x, index, matrix),
        lambda: paddle.put_along_axis(x, index.unsqueeze(0), matrix[:1], 0),
    ):
        with pytest.raises((AssertionError, ValueError), match="type"):
            refused()
    ours, our_integers, our_row, our_matrix, our_mask, our_index = shared(
        x, integers, row, matrix, mask, index
    )
    for call in (
        lambda: inlay.diagonal_scatter(ours, our_integers),
        lambda: inlay.slice_scatter(ours, our_row, stop=1),
        lambda: inlay.select_scatter(ours, our_integers, 0, 0),
        lambda: inlay.masked_scatter(ours, our_mask, our_matrix),
        lambda: inlay.scatter(ours, our_index, our_matrix),
        lambda: inlay.put_along_axis(ours, our_matrix, our_matrix, 0),
    ):
        with pytest.raises(TypeError, match=r"int32.*float32"):
            call()


def test_nan_is_the_maximum_and_the_minimum() -> None:
    # Paddle compares, and NaN is never more nor less: it is dropped, unless it was there before.
    index = to_paddle([0, 0])
    for old, updates, theirs in (
        (0.0, [math.nan, 1.0], {"amax": 1.0, "amin": 0.0}),
        (0.0, [1.0, math.nan], {"amax": 1.0, "amin": 0.0}),
        (math.nan, [1.0, 2.0], {"amax": math.nan, "amin": math.nan}),
    ):
        for reduce, expected in theirs.items():
            x, values = to_paddle([old]), to_paddle(updates)
            args = (x, index, values, 0, reduce, True, False)
            np.testing.assert_equal(paddle.put_along_axis(*args).item(), expected)
            ours = inlay.put_along_axis(*shared(x, index, values), 0, reduce, broadcast=False)
            assert math.isnan(ours.item())


@pytest.mark.parametrize(
    ("dtype", "number", "wrapped"), [("uint8", 100, 14), ("int16", 20000, -1846)]
)
def test_integer_means_do_not_overflow(dtype, number, wrapped) -> None:
    # Paddle wraps the sum of the three before it divides. It has no int8 here.
    x, three = to_paddle([0], dtype), to_paddle([number] * 3, dtype)
    index = to_paddle([0, 0, 0])
    args = {"include_self": False, "broadcast": False}
    assert paddle.put_along_axis(x, index, three, 0, "mean", **args).item() == wrapped
    assert inlay.put_along_axis(*shared(x, index, three), 0, "mean", **args).item() == number


def test_integer_means_round_down_in_both() -> None:
    x, index, values = to_paddle([0]), to_paddle([0, 0]), to_paddle([-1, -2])
    args = {"include_self": False, "broadcast": False}
    assert paddle.put_along_axis(x, index, values, 0, "mean", **args).item() == -2
    assert inlay.put_along_axis(*shared(x, index, values), 0, "mean", **args).item() == -2


def test_a_long_index_is_stretched_too() -> None:
    # Paddle gives up broadcasting without a word if the index is longer than x along the axis, and
    # writes to the first row alone.
    x, index, values = paddle.zeros([2, 3]), to_paddle([[0, 1, 2, 0]]), to_paddle([[1.0, 2, 3, 4]])
    theirs = paddle.put_along_axis(x, index, values, 1, "add")
    assert theirs.tolist() == [[5, 2, 3], [0, 0, 0]]
    ours = inlay.put_along_axis(*shared(x, index, values), 1, "add")
    assert ours.tolist() == [[5, 2, 3], [5, 2, 3]]
    x = np.zeros((2, 3))
    np.put_along_axis(x, np.array([[0, 1, 2, 0]]), np.array([[1.0, 2, 3, 4]]), 1)
    assert x.tolist() == [[4, 2, 3], [4, 2, 3]]


def test_a_matrix_without_rows_has_no_triangle() -> None:
    # Paddle counts a row that is not there.
    assert paddle.tril_indices(0, 3, 5).tolist() == [[0, 0, 0], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="PreconditionNotMet"):
        paddle.triu_indices(0, 3, 5)
    assert inlay.tril_indices(0, 3, 5).shape == [2, 0]
    assert inlay.triu_indices(0, 3, 5).shape == [2, 0]


def test_offsets_past_the_edge() -> None:
    # Paddle's diagonal has a negative length then, so that no source fits. Its triangles take an
    # offset of 32 bits, and no other dtypes than int32 and int64.
    x, none = paddle.zeros([2, 3]), paddle.zeros([0])
    for offset, length in ((7, -4), (-7, -5)):
        with pytest.raises(AssertionError, match=rf"\[{length}\]"):
            paddle.diagonal_scatter(x, none, offset)
        assert inlay.diagonal_scatter(*shared(x, none), offset).tolist() == [[0] * 3] * 2
    for offset in (2**63 - 1, -(2**63)):
        with pytest.raises((IndexError, ValueError)):
            paddle.tril_indices(2, 2, offset)
        assert inlay.tril_indices(2, 2, offset).shape == [2, 4 if offset > 0 else 0]
    with pytest.raises(RuntimeError, match="not registered"):
        paddle.tril_indices(2, 2, 0, "int8")
    assert inlay.tril_indices(2, 2, 0, "int8").tolist() == [[0, 1, 1], [0, 0, 1]]


def test_an_empty_slice_takes_an_empty_source() -> None:
    # Paddle can't stretch an empty source to the empty slice that it makes one element long.
    x, none = paddle.zeros([4]), paddle.zeros([0])
    with pytest.raises(ValueError, match="expand"):
        paddle.slice_scatter(x, none, [0], [2], [2], [1])
    assert inlay.slice_scatter(*shared(x, none), 0, 2, 2).tolist() == [0] * 4


def test_a_row_out_of_range_is_refused() -> None:
    # Paddle writes to an empty slice, so nothing is written and nothing said.
    x, row = paddle.zeros([2, 3]), paddle.ones([3])
    assert paddle.select_scatter(x, row, 0, 5).tolist() == [[0] * 3] * 2
    with pytest.raises(IndexError, match=r"index is 5, .*axis 0 of size 2"):
        inlay.select_scatter(*shared(x, row), 0, 5)


def test_a_call_that_fails_has_written_nothing() -> None:
    # Paddle checks each index as it comes to it: the first two writes are done when the third
    # fails. (index_add_ checks them all first.)
    bad, updates = to_paddle([0, 1, 7]), to_paddle([5.0, 6.0, 7.0])
    for their_call, our_call, left in (
        (
            lambda x: paddle.scatter_(x, bad, updates),
            lambda x: inlay.scatter_(x, *shared(bad, updates)),
            [5, 6, 1],
        ),
        (
            lambda x: paddle.scatter_(x, bad, updates, overwrite=False),
            lambda x: inlay.scatter_(x, *shared(bad, updates), False),
            [0, 0, 1],
        ),
        (
            lambda x: x.put_along_axis_(bad, updates, 0),
            lambda x: inlay.put_along_axis_(x, *shared(bad, updates), 0),
            [5, 6, 1],
        ),
        (
            lambda x: x.put_along_axis_(bad, updates, 0, "add"),
            lambda x: inlay.put_along_axis_(x, *shared(bad, updates), 0, "add"),
            [6, 7, 1],
        ),
    ):
        x = paddle.ones([3])
        with pytest.raises(IndexError):
            their_call(x)
        assert x.tolist() == left
        x = paddle.ones([3])
        with pytest.raises(IndexError, match=r"index\[2\] is 7"):
            our_call(inlay.from_dlpack(x))
        assert x.tolist() == [1, 1, 1]
    x = paddle.ones([3])
    with pytest.raises(ValueError, match="index_add"):
        paddle.index_add_(x, bad, 0, updates)
    assert x.tolist() == [1, 1, 1]


def test_overlapping_sources_are_read_as_if_copied() -> None:
    # Paddle's scatter_ reads what it has written.
    later = to_paddle([1, 2, 3, 4])
    x = paddle.arange(5.0)
    assert paddle.scatter_(x, later, x[:-1]).tolist() == [0, 0, 0, 0, 0]
    x = paddle.arange(5.0)
    inlay.scatter_(*shared(x, later, x[:-1]))
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_float16_is_summed_in_float32() -> None:
    # Paddle's index_add rounds after each step, and gets stuck where 1 is half of the last place.
    # Its scatter and put_along_axis have no 16-bit floats.
    x, ones = paddle.zeros([1], "float16"), paddle.ones([4096], "float16")
    index = paddle.zeros([4096], "int64")
    assert paddle.index_add(x, index, 0, ones).item() == 2048
    assert inlay.scatter(*shared(x, index, ones), overwrite=False).item() == 4096


# By choice.


def test_a_sum_of_negative_zeros_keeps_its_sign() -> None:
    # Paddle's scatter starts from 0.0, and 0.0 + -0.0 is 0.0. Its put_along_axis starts from the
    # first update, as Inlay does.
    x, index, zero = to_paddle([1.0]), to_paddle([0]), to_paddle([-0.0])
    theirs = paddle.scatter(x, index, zero, overwrite=False)
    assert math.copysign(1, theirs.item()) == 1
    theirs = paddle.put_along_axis(x, index, zero, 0, "add", include_self=False)
    assert math.copysign(1, theirs.item()) == -1
    for ours in (
        inlay.scatter(*shared(x, index, zero), overwrite=False),
        inlay.put_along_axis(*shared(x, index, zero), 0, "add", include_self=False),
    ):
        assert math.copysign(1, ours.item()) == -1


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_among_equal_zeros_the_first_stays_in_both(reduce) -> None:
    index = to_paddle([0])
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        x, value = to_paddle([first]), to_paddle([second])
        theirs = paddle.put_along_axis(x, index, value, 0, reduce)
        ours = inlay.put_along_axis(*shared(x, index, value), 0, reduce)
        assert math.copysign(1, theirs.item()) == math.copysign(1, first)
        assert math.copysign(1, ours.item()) == math.copysign(1, first)


def test_x_is_not_stretched_to_the_mask() -> None:
    # Paddle stretches x to a larger mask, as PyTorch does.
    x, mask, source = paddle.zeros([3]), paddle.ones([2, 3], "bool"), paddle.arange(6.0)
    assert paddle.masked_scatter(x, mask, source).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert paddle.masked_fill(x, mask, 1.0).tolist() == [[1] * 3] * 2
    assert paddle.masked_select(x, mask).tolist() == [0] * 6
    ours, our_mask, our_source = shared(x, mask, source)
    for call in (
        lambda: inlay.masked_scatter(ours, our_mask, our_source),
        lambda: inlay.masked_fill(ours, our_mask, 1.0),
        lambda: inlay.masked_select(ours, our_mask),
    ):
        with pytest.raises(ValueError, match=r"mask has shape \[2, 3\]"):
            call()


def test_values_are_not_stretched_to_the_slice() -> None:
    # Paddle stretches what goes into a slice, as an assignment would.
    x, one, row = paddle.zeros([2, 3]), paddle.ones([1, 1]), paddle.ones([3])
    for values in (one, row):
        assert paddle.slice_scatter(x, values, [0], [0], [2], [1]).tolist() == [[1] * 3] * 2
        with pytest.raises(ValueError, match="slice_scatter: y has shape"):
            inlay.slice_scatter(*shared(x, values), 0, 0, 2)


def test_numbers_that_the_dtype_can_not_hold_are_refused() -> None:
    # Paddle cuts off a fraction and wraps what is out of range, in silence.
    x, mask, index = paddle.zeros([2], "int8"), to_paddle([True, False]), to_paddle([0])
    assert paddle.masked_fill(x, mask, 1.5).tolist() == [1, 0]
    assert paddle.masked_fill(x, mask, 300).tolist() == [44, 0]
    assert paddle.index_fill(x, index, 0, 1.5).tolist() == [1, 0]
    ours, our_mask, our_index = shared(x, mask, index)
    for number in (1.5, 300):
        with pytest.raises((TypeError, ValueError), match="masked_fill: value"):
            inlay.masked_fill(ours, our_mask, number)
        with pytest.raises((TypeError, ValueError), match="index_fill: value"):
            inlay.index_fill(ours, our_index, 0, number)


@pytest.mark.parametrize("dtype", INTEGERS[:4])
def test_every_integer_dtype_is_an_index(dtype) -> None:
    # Paddle takes int32 and int64 only. (A uint16 that NumPy gives it, it takes for a bfloat16.)
    index = to_paddle([1], dtype)
    x, one = paddle.zeros([3]), paddle.ones([1])
    for call in (
        lambda: paddle.scatter(x, index, one),
        lambda: paddle.put_along_axis(x, index, one, 0),
        lambda: paddle.index_select(x, index, 0),
    ):
        with pytest.raises((ValueError, TypeError), match=r"int32.*int64"):
            call()
    ours, our_one = shared(x, one)
    our_index = inlay.ones([1], dtype)
    assert inlay.scatter(ours, our_index, our_one).tolist() == [0, 1, 0]
    assert inlay.put_along_axis(ours, our_index, our_one, 0).tolist() == [0, 1, 0]
    assert inlay.index_select(ours, our_index).tolist() == [0]


def test_dtypes_of_results() -> None:
    # Paddle sums uint8 in uint8, which wraps, and divides integers in float32.
    x, y = paddle.ones([300], "uint8"), to_paddle([1])
    assert (paddle.sum(x).dtype, paddle.sum(x).item()) == (paddle.uint8, 44)
    assert (y / y).dtype == paddle.float32
    ours, our_y = shared(x, y)
    assert (inlay.sum(ours).dtype, inlay.sum(ours).item()) == (inlay.uint64, 300)
    assert inlay.divide(our_y, our_y).dtype == "float64"


def refusals(x: paddle.Tensor) -> dict[str, Callable[[], Any]]:
    index, mask = to_paddle([1, 0]), to_paddle([[True, False], [False, True]])
    pairs = to_paddle([[1, 0], [1, 0]])
    return {
        "slice_scatter": lambda: paddle.slice_scatter(x, x, [0], [0], [2], [1]),
        "select_scatter": lambda: paddle.select_scatter(x, x[0], 0, 1),
        "diagonal_scatter": lambda: paddle.diagonal_scatter(x, x[0]),
        "masked_scatter": lambda: paddle.masked_scatter(x, mask, x),
        "masked_fill": lambda: paddle.masked_fill(x, mask, x[0, 0]),
        "masked_select": lambda: paddle.masked_select(x, mask),
        "index_fill": lambda: paddle.index_fill(x, index, 0, x[0, 0]),
        "index_select": lambda: paddle.index_select(x, index, 0),
        "scatter": lambda: paddle.scatter(x, index, x),
        "put_along_axis": lambda: paddle.put_along_axis(x, pairs, x, 1),
        "take_along_axis": lambda: paddle.take_along_axis(x, pairs, 1),
        "where": lambda: paddle.where(mask, x, x),
        "tril": lambda: paddle.tril(x),
    }


@pytest.mark.parametrize("dtype", KNOWN)
def test_every_operation_takes_every_dtype(dtype) -> None:
    # Paddle leaves many out on the CPU.
    x = to_paddle([[1, 0], [0, 1]], dtype)
    for name, call in refusals(x).items():
        if dtype in TAKES[name]:
            call()
        else:
            with pytest.raises(RuntimeError, match="not registered"):
                call()
    ours = inlay.from_dlpack(x)
    row, mask, zero = ours[1], [[True, False], [False, True]], inlay.zeros([], dtype)
    pairs = [[1, 0], [1, 0]]
    for result, expected in (
        (inlay.slice_scatter(ours, ours[::-1]), [[0, 1], [1, 0]]),
        (inlay.select_scatter(ours, row, 0, 0), [[0, 1], [0, 1]]),
        (inlay.diagonal_scatter(ours, row), [[0, 0], [0, 1]]),
        (inlay.masked_scatter(ours, mask, row), [[0, 0], [0, 1]]),
        (inlay.masked_fill(ours, mask, zero), [[0, 0], [0, 0]]),
        (inlay.masked_select(ours, mask), [1, 1]),
        (inlay.index_fill(ours, [0], 0, zero), [[0, 0], [0, 1]]),
        (inlay.index_select(ours, [1, 0]), [[0, 1], [1, 0]]),
        (inlay.scatter(ours, [1, 0], ours), [[0, 1], [1, 0]]),
        (inlay.put_along_axis(ours, pairs, ours, 1), [[0, 1], [1, 0]]),
        (inlay.take_along_axis(ours, pairs, 1), [[0, 1], [1, 0]]),
        (inlay.where(mask, ours, ours), [[1, 0], [0, 1]]),
        (inlay.tril(ours), [[1, 0], [0, 1]]),
    ):
        assert result.dtype == dtype
        assert result.tolist() == expected


def test_zero_size_dimensions() -> None:
    x, rows, none = paddle.zeros([3, 0]), paddle.zeros([1, 0]), paddle.zeros([0])
    index, no_index = to_paddle([1]), to_paddle([], "int64")
    line, mask = paddle.zeros([3]), paddle.zeros([3, 0], "bool")
    for theirs, ours in (
        (paddle.scatter(x, index, rows), inlay.scatter(*shared(x, index, rows))),
        (paddle.scatter(line, no_index, none), inlay.scatter(*shared(line, no_index, none))),
        (
            paddle.put_along_axis(line, no_index, none, 0),
            inlay.put_along_axis(*shared(line, no_index, none), 0),
        ),
        (
            paddle.take_along_axis(line, no_index, 0),
            inlay.take_along_axis(*shared(line, no_index), 0),
        ),
        (paddle.index_select(line, no_index, 0), inlay.index_select(*shared(line, no_index))),
        (
            paddle.index_fill(line, no_index, 0, 1.0),
            inlay.index_fill(*shared(line, no_index), 0, 1.0),
        ),
        (paddle.masked_scatter(x, mask, none), inlay.masked_scatter(*shared(x, mask, none))),
        (paddle.select_scatter(x, none, 0, 1), inlay.select_scatter(*shared(x, none), 0, 1)),
        (
            paddle.slice_scatter(x, rows, [0], [0], [1], [1]),
            inlay.slice_scatter(*shared(x, rows), 0, 0, 1),
        ),
    ):
        assert_bits(ours.numpy(), to_numpy(theirs))


def test_rank_0() -> None:
    # Both ask for an axis to write along, and take a mask of rank 0.
    x, index, one = paddle.zeros([]), to_paddle([0]), paddle.ones([1])
    with pytest.raises(ValueError, match="shape"):
        paddle.scatter(x, index, one)
    with pytest.raises(ValueError, match="scatter: x"):
        inlay.scatter(*shared(x, index, one))
    mask, source = to_paddle(True), to_paddle([5.0, 6.0])
    assert paddle.masked_scatter(x, mask, source).item() == 5
    assert inlay.masked_scatter(*shared(x, mask, source)).item() == 5


# Memory shared through DLPack.


@pytest.mark.parametrize("dtype", KNOWN)
def test_paddle_tensors_are_shared(rng, dtype) -> None:
    for shape in full_shapes(rng, each=2):
        array = bits(rng, dtype, shape)
        theirs = laid(rng, array)
        ours = inlay.from_dlpack(theirs)
        assert ours.shape == list(shape)
        assert ours.dtype == dtype
        assert_bits(ours.numpy(), array)
        back = paddle.from_dlpack(ours)
        assert back.dtype == theirs.dtype
        assert_bits(to_numpy(back), array)
        if array.size:
            assert ours.data_ptr() == theirs.data_ptr() == back.data_ptr()
        for axis in range(array.ndim):
            if array.size and shape[axis] > 1:
                assert ours.strides[axis] == theirs.strides[axis] * ours.itemsize
                assert back.strides[axis] == theirs.strides[axis]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_there_and_back(rng, dtype) -> None:
    array = bits(rng, dtype, (3, 4))
    ours = inlay.from_numpy(array)
    theirs = paddle.from_dlpack(ours.T)
    assert theirs.data_ptr() == ours.data_ptr()
    back = inlay.from_dlpack(theirs)
    assert back.dtype == dtype
    assert_bits(back.numpy(), array.T)


@pytest.mark.parametrize("dtype", KNOWN)
def test_writes_show_on_the_other_side(dtype) -> None:
    theirs = to_paddle(np.zeros((3, 4), DTYPES[dtype]))
    ours = inlay.from_dlpack(theirs.transpose([1, 0])[1:])
    inlay.select_scatter_(ours, np.ones(3, DTYPES[dtype]), 0, -1)
    expected = np.zeros((3, 4), DTYPES[dtype])
    expected[:, 3] = 1
    assert_bits(to_numpy(theirs), expected)
    back = paddle.from_dlpack(ours)
    back.fill_(1)
    expected[:, 1:] = 1
    assert_bits(to_numpy(theirs), expected)


@pytest.mark.parametrize("dtype", KNOWN)
def test_each_side_keeps_the_memory_alive(dtype) -> None:
    array = (np.arange(1000) % 2).astype(DTYPES[dtype])
    theirs = paddle.from_dlpack(inlay.to_tensor(array))
    ours = inlay.from_dlpack(to_paddle(array)[1:])
    gc.collect()
    inlay.empty_cache()
    assert_bits(to_numpy(theirs), array)
    assert_bits(ours.numpy(), array[1:])


def test_uint16_from_numpy_is_bfloat16_in_paddle() -> None:
    # Paddle kept its bfloat16 in NumPy's uint16 before there was one. DLPack says which it is.
    array = np.array([16256], "u2")  # the bits of 1.0
    assert inlay.from_dlpack(paddle.to_tensor(array)).tolist() == [1.0]
    assert inlay.from_dlpack(paddle.from_dlpack(inlay.from_numpy(array))).tolist() == [16256]


def test_memory_that_runs_backwards() -> None:
    # Paddle takes negative strides and hands them back, but reckons the size of a result from them:
    # "Fail to alloc memory of 18446744073709551612 size" at best, so nothing is asked of it here.
    array = np.arange(3, dtype="f4")[::-1]
    theirs = paddle.from_dlpack(inlay.from_numpy(array))
    assert inlay.from_dlpack(theirs).tolist() == [2, 1, 0]
    theirs = paddle.from_dlpack(inlay.from_numpy(array).copy())
    assert (theirs + theirs).tolist() == [4, 2, 0]


def test_read_only_memory() -> None:
    # Paddle has no read-only tensors. It takes the memory and drops the flag; Inlay keeps to it.
    array = np.zeros(2)
    array.flags.writeable = False
    ours = inlay.from_numpy(array)
    assert paddle.from_dlpack(ours).data_ptr() == ours.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        inlay.scatter_(ours, [0], np.ones(1))


def test_tensors_that_want_gradients_are_refused() -> None:
    theirs = paddle.ones([2])
    theirs.stop_gradient = False
    with pytest.raises(inlay.InlayBufferError, match="gradient"):
        inlay.from_dlpack(theirs)
    assert inlay.from_dlpack(theirs.detach()).tolist() == [1, 1]


def test_functions_say_from_dlpack() -> None:
    x, index, mask = paddle.zeros([2, 2]), to_paddle([0]), to_paddle([True, False])
    ours, flat = inlay.from_dlpack(x), paddle.zeros([2])
    for call in (
        lambda: inlay.scatter(x, [0], np.ones((1, 2), "f4")),
        lambda: inlay.scatter(ours, index, np.ones((1, 2), "f4")),
        lambda: inlay.scatter_(ours, [0], x),
        lambda: ours.scatter([0], x),
        lambda: inlay.masked_scatter(ours, mask, ours),
        lambda: inlay.masked_scatter(ours, [True, False], flat),
        lambda: inlay.slice_scatter(x, ours),
        lambda: inlay.slice_scatter_(x, ours),
        lambda: inlay.diagonal_scatter(ours, flat),
        lambda: inlay.put_along_axis(ours, index.unsqueeze(0), ours, 0),
        lambda: inlay.index_select(ours, index),
        lambda: inlay.where(mask, ours, ours),
        lambda: inlay.tril(x),
        lambda: inlay.sum(x),
        lambda: inlay.cast(x, "int8"),
        lambda: inlay.add(ours, x),
        lambda: inlay.to_tensor(x),
        lambda: ours.__setitem__(0, flat),
    ):
        with pytest.raises(inlay.InlayTypeError, match=r"paddle\.Tensor; .*inlay\.from_dlpack"):
            call()


def test_keys_say_from_dlpack() -> None:
    ours = inlay.zeros([2, 2])
    for key in ([0], [0, 1], [True, False], True):
        with pytest.raises(inlay.InlayTypeError, match=r"paddle\.Tensor; .*inlay\.from_dlpack"):
            ours[to_paddle(key)]
