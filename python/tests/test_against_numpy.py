"""Inlay against the real NumPy, on every operation that NumPy can express.

Shapes of every rank from 0 to 6, in memory of every kind: transposed, backwards, with gaps, off its
alignment, stretched over one element. Each call is made with arrays and with tensors, and in place
where there is a twin that writes. Results agree bit for bit. Where NumPy differs by choice, a test
shows what each of them does and says why.
"""

from __future__ import annotations

import contextlib
import math
import operator
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from arguments import (
    any_axis,
    any_bound,
    any_index,
    any_step,
    assert_bits,
    bits,
    defined,
    laid,
    numbers,
    python,
    replaced,
    shapes,
    stretched,
    thinner,
    without_negative_zeros,
)
from cases import assert_same
from naive import COMPLEXES, DTYPES, FLOATS, INTEGERS

import inlay

SHORT_FLOATS = ["float16", "bfloat16"]
REALS = ["bool", *INTEGERS, *FLOATS]

each_dtype = pytest.mark.parametrize("dtype", DTYPES)
each_self = pytest.mark.parametrize("include_self", [True, False], ids=["with self", "without"])


@pytest.fixture
def rng(request) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Overflow and NaN are part of the tests."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def agree(rng) -> Callable[..., None]:
    """Calls an operation in every way, and compares what comes with what NumPy said."""

    def compare(
        name: str,
        given: list[np.ndarray],
        expected: np.ndarray,
        same: Callable[..., None] = assert_bits,
        twin: bool = False,
        **attrs: Any,
    ) -> None:
        function = getattr(inlay, name)
        arrays = [laid(rng, array) for array in given]
        result = function(*arrays, **attrs)
        assert isinstance(result, np.ndarray)
        same(result, expected)

        tensors = [inlay.from_numpy(laid(rng, array)) for array in given]
        result = function(*tensors, **attrs)
        assert isinstance(result, inlay.Tensor)
        same(result.numpy(), expected)
        for argument, array in zip([*arrays, *tensors], given * 2, strict=True):
            assert_bits(np.asarray(argument), array)

        if twin:
            in_place = getattr(inlay, f"{name}_")
            for wrap, others in ((np.asarray, arrays), (inlay.from_numpy, tensors)):
                memory = laid(rng, np.array(given[0]))
                target = wrap(memory)
                assert in_place(target, *others[1:], **attrs) is target
                same(memory, expected)

    return compare


# The five.


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("half", ["tril_indices", "triu_indices"])
def test_triangle_indices(rng, half, dtype) -> None:
    for _ in range(40):
        rows, columns = rng.integers(0, 9, 2).tolist()
        offset = int(rng.integers(-11, 12))
        expected = np.array(getattr(np, half)(rows, offset, columns))
        for attrs in ({}, {"dtype": dtype}):
            result = getattr(inlay, half)(rows, columns, offset, **attrs)
            assert_bits(result.numpy(), expected.astype(attrs.get("dtype", "int64")))
        square = np.array(getattr(np, half)(rows, offset))
        assert_bits(getattr(inlay, half)(rows, offset=offset).numpy(), square)


@each_dtype
def test_slice_scatter(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1, each=4):
        x = bits(rng, dtype, shape)
        axes = rng.permutation(x.ndim)[: rng.integers(1, x.ndim + 1)].tolist()
        key = [slice(None)] * x.ndim
        for axis in axes:
            start, stop = any_bound(rng, shape[axis]), any_bound(rng, shape[axis])
            key[axis] = slice(start, stop, any_step(rng))
        expected = x.copy()
        y = stretched(rng, bits, dtype, x[tuple(key)].shape)
        expected[tuple(key)] = y
        attrs: dict[str, Any] = {
            "axis": [axis - rng.choice([0, x.ndim]) for axis in axes],
            "start": [key[axis].start for axis in axes],
            "stop": [key[axis].stop for axis in axes],
            "step": [key[axis].step for axis in axes],
        }
        if len(axes) == 1:
            attrs = {name: value[0] for name, value in attrs.items()}
        agree("slice_scatter", [x, y], expected, twin=True, **attrs)


@each_dtype
def test_diagonal_and_diagonal_scatter(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=2, each=4):
        x = bits(rng, dtype, shape)
        axis1, axis2 = rng.permutation(x.ndim)[:2].tolist()
        offset = int(rng.integers(-shape[axis1] - 1, shape[axis2] + 2))
        attrs = {"offset": offset, "axis1": axis1 - x.ndim, "axis2": axis2}
        expected = np.diagonal(x, offset, axis1, axis2)
        agree("diagonal", [x], np.array(expected, order="C"), **attrs)

        # NumPy's diagonal can't be written to, so its positions are asked for.
        src = stretched(rng, bits, dtype, expected.shape)
        expected = x.copy()
        matrices = np.moveaxis(expected, (axis1, axis2), (-2, -1))
        positions = np.arange(shape[axis1] * shape[axis2]).reshape(shape[axis1], shape[axis2])
        rows, columns = np.divmod(np.diagonal(positions, offset), max(shape[axis2], 1))
        matrices[..., rows, columns] = src
        agree("diagonal_scatter", [x, src], expected, twin=True, **attrs)


@each_dtype
def test_diagonal_scatter_against_fill_diagonal(rng, agree, dtype) -> None:
    for shape in ((1, 1), (3, 3), (2, 5), (5, 2), (9, 9)):
        x, src = bits(rng, dtype, shape), bits(rng, dtype, (min(shape),))
        expected = x.copy()
        np.fill_diagonal(expected, src)
        agree("diagonal_scatter", [x, src], expected, twin=True)


@each_dtype
def test_masks(rng, agree, dtype) -> None:
    for shape in shapes(rng):
        x = bits(rng, dtype, shape)
        mask = rng.random(thinner(rng, shape)) < rng.choice([0.0, 0.2, 0.5, 0.8, 1.0])
        full = np.broadcast_to(mask, shape)
        count = np.count_nonzero(full)
        extra = int(rng.integers(0, 3))
        source = stretched(rng, bits, dtype, (count + extra,))
        if (count + extra) % 2 == 0 and rng.random() < 0.5:
            source = source.reshape(2, -1)

        expected = x.copy()
        expected[full] = source.reshape(-1)[:count]
        agree("masked_scatter", [x, mask, source], expected, twin=True)
        if source.size:
            placed = x.copy()
            np.place(placed, full, source)
            assert_bits(placed, expected)

        agree("masked_select", [x, mask], x[full])
        assert_bits(np.extract(full, x), x[full])

        number = numbers(rng, dtype, ())
        expected = x.copy()
        np.copyto(expected, number, where=full)
        agree("masked_fill", [x, mask, number], expected, twin=True)
        agree("masked_fill", [x, mask], expected, assert_same, twin=True, value=python(number))


@each_dtype
def test_scatter_overwrites_as_assignment_does(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1, each=5):
        x, axis = bits(rng, dtype, shape), any_axis(rng, len(shape))
        size = shape[axis]
        count = int(rng.integers(0, 2 * size + 2)) if size else 0
        index = any_index(rng, (count,), size)
        updates = stretched(rng, bits, dtype, replaced(shape, axis, count + rng.integers(0, 3)))
        expected = x.copy()
        np.moveaxis(expected, axis, 0)[index] = np.moveaxis(updates, axis, 0)[:count]
        agree("scatter", [x, index, updates], expected, twin=True, axis=axis)
        agree("scatter", [x, index, updates], expected, axis=axis, overwrite=True, reduce="mul")

        if size:
            index = any_index(rng, (), size)
            updates = stretched(rng, bits, dtype, replaced(shape, axis))
            expected = x.copy()
            np.moveaxis(expected, axis, 0)[int(index)] = updates
            agree("scatter", [x, index, updates], expected, twin=True, axis=axis)


# Reductions into places, by `ufunc.at`.

AT = {
    "sum": np.add,
    "add": np.add,
    "mul": np.multiply,
    "multiply": np.multiply,
    "prod": np.multiply,
    "amax": np.maximum,
    "max": np.maximum,
    "amin": np.minimum,
    "min": np.minimum,
}
REDUCES = [*AT, "mean"]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a * b` from real products, each rounded: NumPy fuses those of complex numbers where it can.

    What it gives depends on the processor then, and on the strides.
    """
    if a.dtype.kind != "c":
        return np.multiply(a, b)
    a, b = np.broadcast_arrays(a, b)
    out = np.empty(a.shape, a.dtype)
    out.real = a.real * b.real - a.imag * b.imag
    out.imag = a.real * b.imag + a.imag * b.real
    return out


def reduced(
    x: np.ndarray, index: np.ndarray, updates: np.ndarray, reduce: str, include_self: bool
) -> np.ndarray:
    """Rows of updates reduced into the rows of x that an index of int64 names."""
    if reduce == "mean":
        return averaged(x, index, updates, include_self)
    if str(x.dtype) in SHORT_FLOATS:
        # By choice: NumPy rounds after each step, Inlay reduces in float32 and rounds once. The
        # test of 4096 ones below shows it.
        wide = reduced(x.astype("f4"), index, updates.astype("f4"), reduce, include_self)
        return wide.astype(x.dtype)
    out = x.copy()
    if not include_self:
        # The first that comes takes the place of the old value. To start from 0 would lose the
        # sign of a sum of -0.0.
        first = np.unique(index, return_index=True)[1]
        out[index[first]] = updates[first]
        rest = np.delete(np.arange(len(index)), first)
        index, updates = index[rest], updates[rest]
    if x.dtype.kind == "c" and AT[reduce] is np.multiply:
        for row, update in zip(index, updates, strict=True):
            out[row] = product(out[row], update)
    else:
        AT[reduce].at(out, index, updates)
    return out


def averaged(
    x: np.ndarray, index: np.ndarray, updates: np.ndarray, include_self: bool
) -> np.ndarray:
    """NumPy has no mean of this kind; it is a sum divided by a count, rounded down for integers."""
    exact = {"i": "object", "u": "object"}.get(x.dtype.kind, x.dtype)
    work = np.dtype("f4") if str(x.dtype) in SHORT_FLOATS else np.dtype(exact)
    total = reduced(x.astype(work), index, updates.astype(work), "sum", include_self)
    count = np.bincount(index, minlength=len(x)) + include_self
    named = np.unique(index)
    count = count[named].reshape(-1, *[1] * (x.ndim - 1))
    out = x.copy()
    if work.kind == "O":
        out[named] = (total[named] // count).astype(x.dtype)
    elif x.dtype.kind == "c":
        out.real[named] = total.real[named] / count.astype(total.real.dtype)
        out.imag[named] = total.imag[named] / count.astype(total.real.dtype)
    else:
        out[named] = (total[named] / count.astype(work)).astype(x.dtype)
    return out


@each_self
@each_dtype
def test_scatter_reduces_as_ufunc_at_does(rng, agree, dtype, include_self) -> None:
    for reduce in REDUCES:
        for shape in shapes(rng, least=1, each=1):
            if not defined(dtype, reduce):
                continue
            axis = any_axis(rng, len(shape))
            size = shape[axis]
            count = int(rng.integers(0, 3 * size + 2)) if size else 0
            index = any_index(rng, (count,), size)
            x = without_negative_zeros(numbers(rng, dtype, shape))
            rows = replaced(shape, axis, count)
            updates = without_negative_zeros(stretched(rng, numbers, dtype, rows))
            expected = reduced(
                np.moveaxis(x, axis, 0),
                index.astype("int64") % max(size, 1),
                np.moveaxis(updates, axis, 0),
                reduce,
                include_self,
            )
            agree(
                "scatter",
                [x, index, updates],
                np.ascontiguousarray(np.moveaxis(expected, 0, axis)),
                assert_same,
                twin=True,
                overwrite=False,
                axis=axis,
                reduce=reduce,
                include_self=include_self,
            )


@pytest.mark.parametrize("dtype", SHORT_FLOATS)
def test_short_floats_are_summed_in_float32(dtype) -> None:
    # By choice: `np.add.at` rounds after each step, and gets stuck where 1 is half of the last
    # place. Inlay accumulates in float32 and rounds once.
    stuck = {"float16": 2048, "bfloat16": 256}[dtype]
    x, index, ones = (np.zeros(1, dtype), np.zeros(4096, "i8"), np.ones(4096, dtype))
    theirs = x.copy()
    np.add.at(theirs, index, ones)
    assert theirs == stuck
    assert inlay.scatter(x, index, ones, overwrite=False) == 4096
    assert inlay.put_along_axis(x, index, ones, 0, "add") == 4096


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_among_equal_zeros_the_first_stays(dtype, reduce) -> None:
    # By choice: 0.0 and -0.0 are equal. Inlay keeps the one that came first; which one NumPy keeps
    # depends on the dtype and on the processor's vector instructions.
    for first, second in ((0.0, -0.0), (-0.0, 0.0)):
        x, updates = np.array([first], dtype), np.array([second], dtype)
        theirs = x.copy()
        AT[reduce].at(theirs, [0], updates)
        assert theirs == 0
        ours = inlay.scatter(x, [0], updates, False, reduce=reduce, include_self=True)
        assert_bits(ours, x)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEXES])
def test_a_sum_of_negative_zeros_keeps_its_sign(dtype) -> None:
    # By choice: without the old value Inlay starts from the first update, `np.add.at` needs a 0 to
    # start from, and 0.0 + -0.0 is 0.0.
    zeros = np.full(2, complex(-0.0, -0.0) if dtype in COMPLEXES else -0.0, dtype)
    theirs = np.zeros(1, dtype)
    np.add.at(theirs, [0, 0], zeros)
    assert_bits(theirs, np.zeros(1, dtype))
    assert_bits(inlay.scatter(np.ones(1, dtype), [0, 0], zeros, overwrite=False), zeros[:1])
    assert_bits(inlay.sum(zeros), zeros[0, ...])
    assert np.sum(zeros) == 0  # of either sign, by version


# Single elements along an axis.


def element_arguments(
    rng: np.random.Generator, shape: tuple[int, ...], broadcast: bool
) -> tuple[int, np.ndarray, tuple[int, ...]]:
    """An axis, an index of x's rank, and the shape of what it names."""
    axis = any_axis(rng, len(shape))
    count = int(rng.integers(0, 2 * shape[axis] + 2)) if shape[axis] else 0
    named = replaced(shape, axis, count)
    if broadcast:
        thin = (1 if rng.random() < 0.3 else n for n in named)
        return axis, any_index(rng, replaced(tuple(thin), axis, count), shape[axis]), named
    named = replaced(tuple(int(rng.integers(0, n + 1)) for n in named), axis, count)
    return axis, any_index(rng, named, shape[axis]), named


def grid(index: np.ndarray, named: tuple[int, ...], axis: int, size: int) -> tuple[np.ndarray, ...]:
    """The position in x of every element named."""
    positions = list(np.indices(named))
    positions[axis] = np.broadcast_to(index, named).astype("int64") % max(size, 1)
    return tuple(positions)


@each_dtype
def test_take_along_axis(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x = bits(rng, dtype, shape)
        axis, index, _ = element_arguments(rng, shape, broadcast=True)
        expected = np.take_along_axis(x, index.astype("int64"), axis)
        agree("take_along_axis", [x, index], expected, axis=axis)

        axis, index, named = element_arguments(rng, shape, broadcast=False)
        expected = x[grid(index, named, axis, shape[axis])]
        agree("take_along_axis", [x, index], expected, axis=axis, broadcast=False)


@each_dtype
def test_put_along_axis_assigns(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x = bits(rng, dtype, shape)
        axis, index, named = element_arguments(rng, shape, broadcast=True)
        values = bits(rng, dtype, thinner(rng, named))
        expected = x.copy()
        np.put_along_axis(expected, index.astype("int64"), values, axis)
        agree("put_along_axis", [x, index, values], expected, twin=True, axis=axis)

        axis, index, named = element_arguments(rng, shape, broadcast=False)
        larger = tuple(n + int(rng.integers(0, 2)) for n in named)
        values = stretched(rng, bits, dtype, larger)
        expected = x.copy()
        positions = grid(index, named, axis, shape[axis])
        expected[positions] = values[tuple(map(slice, named))]
        attrs = {"axis": axis, "broadcast": False}
        agree("put_along_axis", [x, index, values], expected, twin=True, **attrs)


@each_self
@each_dtype
def test_put_along_axis_reduces_as_ufunc_at_does(rng, agree, dtype, include_self) -> None:
    for reduce in REDUCES:
        for shape in shapes(rng, least=1, each=1):
            if not defined(dtype, reduce):
                continue
            broadcast = bool(rng.random() < 0.5)
            axis, index, named = element_arguments(rng, shape, broadcast)
            x = without_negative_zeros(numbers(rng, dtype, shape))
            values = without_negative_zeros(numbers(rng, dtype, named))
            flat = np.ravel_multi_index(grid(index, named, axis, shape[axis]), shape)
            expected = reduced(x.ravel(), flat.ravel(), values.ravel(), reduce, include_self)
            agree(
                "put_along_axis",
                [x, index, values],
                expected.reshape(shape),
                assert_same,
                twin=True,
                axis=axis,
                reduce=reduce,
                include_self=include_self,
                broadcast=broadcast,
            )


# The rest of the family.


@each_dtype
def test_additions_to_rows_and_places(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = without_negative_zeros(numbers(rng, dtype, shape)), any_axis(rng, len(shape))
        size = shape[axis]
        index = any_index(rng, (int(rng.integers(0, 2 * size + 2)) if size else 0,), size)
        value = without_negative_zeros(numbers(rng, dtype, replaced(shape, axis, len(index))))
        rows = index.astype("int64") % max(size, 1)
        expected = reduced(
            np.moveaxis(x, axis, 0), rows, np.moveaxis(value, axis, 0), "sum", include_self=True
        )
        expected = np.ascontiguousarray(np.moveaxis(expected, 0, axis))
        attrs = {"axis": axis, "value": laid(rng, value)}
        agree("index_add", [x, index], expected, assert_same, twin=True, **attrs)

        # Positions on the first axes, as rows of one index and as an index for each axis.
        depth = int(rng.integers(1, len(shape) + 1))
        if 0 in shape[:depth]:
            continue
        count = int(rng.integers(0, 9))
        names = np.stack([rng.integers(-n, n, count) for n in shape[:depth]], axis=-1)
        flat = np.ravel_multi_index(
            tuple(names.T % np.array(shape[:depth])[:, None]), shape[:depth]
        )
        value = without_negative_zeros(numbers(rng, dtype, (count, *shape[depth:])))
        matrix = x.reshape(math.prod(shape[:depth]), *shape[depth:])
        expected = reduced(matrix, flat, value, "sum", include_self=True).reshape(shape)
        agree("scatter_nd_add", [x, names, value], expected, assert_same)
        zeros = np.zeros_like(matrix)
        expected_nd = reduced(zeros, flat, value, "sum", include_self=True).reshape(shape)
        agree("scatter_nd", [names, value], expected_nd, assert_same, shape=list(shape))

        attrs = {"indices": tuple(names.T), "value": laid(rng, value)}
        agree("index_put", [x], expected, assert_same, twin=True, accumulate=True, **attrs)
        expected = x.copy()
        expected[tuple(names.T)] = value
        agree("index_put", [x], expected, twin=True, **attrs)


@each_dtype
def test_concat_and_stack(rng, dtype) -> None:
    for shape in shapes(rng):
        arrays = [bits(rng, dtype, shape) for _ in range(rng.integers(1, 4))]
        for name, numpy_says in (("stack", np.stack), ("concat", np.concatenate)):
            rank = len(shape) + (name == "stack")
            if rank == 0:
                continue
            axis = any_axis(rng, rank)
            if name == "concat":
                arrays = [bits(rng, dtype, replaced(shape, axis, n)) for n in range(len(arrays))]
            expected = numpy_says(arrays, axis)
            others = [laid(rng, array) for array in arrays]
            assert_bits(getattr(inlay, name)(others, axis), expected)
            tensors = [inlay.from_numpy(array) for array in others]
            assert_bits(getattr(inlay, name)(tensors, axis).numpy(), expected)


@each_dtype
def test_rows(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=1):
        x, axis = bits(rng, dtype, shape), any_axis(rng, len(shape))
        size = shape[axis]
        index = any_index(rng, (int(rng.integers(0, 2 * size + 2)) if size else 0,), size)
        expected = np.take(x, index.astype("int64"), axis)
        agree("index_select", [x, index], expected, axis=axis)

        number = numbers(rng, dtype, ())
        expected = x.copy()
        np.moveaxis(expected, axis, 0)[index] = number
        agree("index_fill", [x, index], expected, assert_same, twin=True, axis=axis,
              value=python(number))  # fmt: skip

        if size:
            row = int(rng.integers(-size, size))
            values = stretched(rng, bits, dtype, replaced(shape, axis))
            expected = x.copy()
            np.moveaxis(expected, axis, 0)[row] = values
            agree("select_scatter", [x, values], expected, twin=True, axis=axis, index=row)


@each_dtype
def test_triangles(rng, agree, dtype) -> None:
    for shape in shapes(rng, least=2):
        x = bits(rng, dtype, shape)
        for diagonal in (0, *rng.integers(-9, 10, 2).tolist()):
            for half in ("tril", "triu"):
                expected = getattr(np, half)(x, diagonal)
                agree(half, [x], expected, diagonal=diagonal)


@each_dtype
def test_where(rng, agree, dtype) -> None:
    for shape in shapes(rng):
        x, y = (bits(rng, dtype, thinner(rng, shape)) for _ in range(2))
        condition = rng.random(thinner(rng, shape)) < 0.5
        agree("where", [condition, x, y], np.where(condition, x, y))


@each_dtype
def test_shapes_of_views(rng, agree, dtype) -> None:
    for shape in shapes(rng):
        x = bits(rng, dtype, shape)
        perm = rng.permutation(x.ndim).tolist()
        agree("transpose", [x], np.ascontiguousarray(x.transpose(perm)).reshape(
            [shape[axis] for axis in perm]), perm=perm)  # fmt: skip

        thin = bits(rng, dtype, thinner(rng, shape))
        agree("broadcast_to", [thin], np.array(np.broadcast_to(thin, shape)), shape=list(shape))

        sizes = rng.permutation([*shape, 1, 1]).tolist()
        cut = int(rng.integers(0, len(sizes)))
        sizes[cut : cut + 2] = [math.prod(sizes[cut : cut + 2])]
        if x.size and rng.random() < 0.5:
            sizes[rng.integers(0, len(sizes))] = -1
        agree("reshape", [x], x.reshape(sizes), shape=sizes)


# Keys.


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
    # By choice: an integer drops its axis before the index is read, as in PyTorch. NumPy counts it
    # among the index arrays, and moves the axes of those to the front if a slice is in between.
    assert x[0, :, index].shape == (3, 4)
    assert_bits(tensor[0, :, index].numpy(), np.ascontiguousarray(x[0, :, index].T))
    # By choice: one index in a key; NumPy pairs several element by element.
    assert x[index, index].shape == (3, 5)
    with pytest.raises(IndexError, match="expected one tensor at most"):
        tensor[index, index]


# Arithmetic.

ARITHMETIC = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
}
COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_equal": operator.le,
    "greater_than": operator.gt,
    "greater_equal": operator.ge,
}
UNORDERED = {"equal", "not_equal"}


def check_operator(
    rng: np.random.Generator, agree: Any, name: str, operation: Any, dtype: str, numpy_says: Any
) -> None:
    for shape in shapes(rng):
        x, y = (numbers(rng, dtype, thinner(rng, shape)) for _ in range(2))
        expected = np.asarray(numpy_says(x, y))
        agree(name, [x, y], expected, assert_same)
        ours, theirs = inlay.from_numpy(laid(rng, x)), laid(rng, y)
        assert_same(operation(ours, inlay.from_numpy(theirs)).numpy(), expected)
        assert_same(operation(ours, theirs).numpy(), expected)


@pytest.mark.parametrize("name", ARITHMETIC)
@each_dtype
def test_arithmetic(rng, agree, dtype, name) -> None:
    if (dtype, name) == ("bool", "subtract"):
        flags = np.array([True])
        with pytest.raises(TypeError, match="boolean subtract"):
            np.subtract(flags, flags)
        with pytest.raises(TypeError, match=r"subtract: .*bool"):
            inlay.subtract(flags, flags)
        return
    numpy_says = product if name == "multiply" else getattr(np, name)
    check_operator(rng, agree, name, ARITHMETIC[name], dtype, numpy_says)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(d, name) for d in DTYPES for name in COMPARISONS if d in REALS or name in UNORDERED],
)
def test_comparisons(rng, agree, dtype, name) -> None:
    check_operator(rng, agree, name, COMPARISONS[name], dtype, COMPARISONS[name])


@pytest.mark.parametrize("name", COMPARISONS.keys() - UNORDERED)
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_numbers_have_no_order(dtype, name) -> None:
    # By choice: NumPy compares the real parts, and the imaginary ones where those are equal.
    x, y = np.array([1 + 2j], dtype), np.array([1 + 3j], dtype)
    assert COMPARISONS[name](x, y) == COMPARISONS[name](2, 3)
    with pytest.raises(TypeError, match=f"{name}: .*{dtype}"):
        getattr(inlay, name)(x, y)


@pytest.mark.parametrize("keepdim", [True, False], ids=["keepdim", "dropped"])
@each_dtype
def test_sum(rng, agree, dtype, keepdim) -> None:
    for shape in shapes(rng):
        if dtype in ("bool", *INTEGERS):
            x = bits(rng, dtype, shape)
        else:
            # Whole numbers whose sum every dtype holds, so that the order does not matter.
            x = rng.random(shape) < min(1, 200 / math.prod([*shape, 1]) if 0 not in shape else 1)
            x = x.astype(DTYPES[dtype])
        axes = rng.permutation(x.ndim)[: rng.integers(0, x.ndim + 1)].tolist()
        for axis in (None, axes, *axes[:1]):
            numpy_axis = tuple(axis) if isinstance(axis, list) else axis
            expected = np.asarray(np.sum(x, axis=numpy_axis, keepdims=keepdim))
            agree("sum", [x], expected, axis=axis, keepdim=keepdim)


@pytest.mark.parametrize("keepdim", [True, False], ids=["keepdim", "dropped"])
@each_dtype
def test_other_reductions(rng, agree, dtype, keepdim) -> None:
    for shape in shapes(rng):
        axes = rng.permutation(len(shape))[: rng.integers(0, len(shape) + 1)].tolist()
        for axis in (None, axes, *axes[:1]):
            numpy_axis = tuple(axis) if isinstance(axis, list) else axis
            args, attrs = {"axis": numpy_axis, "keepdims": keepdim}, {"axis": axis}
            attrs["keepdim"] = keepdim
            x = without_negative_zeros(numbers(rng, dtype, shape))
            if dtype not in COMPLEXES and x.size:
                agree("amax", [x], np.asarray(np.max(x, **args)), assert_same, **attrs)
                agree("amin", [x], np.asarray(np.min(x, **args)), assert_same, **attrs)
            if dtype not in ("bool", *INTEGERS):
                # Powers of 2 that stay in range, so that the order does not matter.
                x = np.where(rng.random(shape) < 5 / max(x.size, 1), -2, 1).astype(DTYPES[dtype])
            same = assert_equal if dtype in COMPLEXES else assert_bits
            agree("prod", [x], np.asarray(np.prod(x, **args)), same, **attrs)
            if dtype != "bool" and x.size:
                agree("mean", [x], mean_of(x, args), assert_same, **attrs)


def assert_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    """The sign of a part that is 0 depends on the order of a complex product."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert (actual == expected).all()


def mean_of(x: np.ndarray, args: dict[str, Any]) -> np.ndarray:
    """The exact sum divided by the count.

    By choice: NumPy's mean of integers is a float64. Inlay's is of their dtype and rounded down.
    """
    count = np.asarray(np.sum(np.ones(x.shape, int), **args))
    if x.dtype.kind in "iu":
        assert np.mean(x).dtype == np.float64
        total = np.asarray(np.sum(x.astype(object), **args), object)
        return np.asarray(total // count.astype(object), x.dtype)
    if x.dtype.kind == "c":
        parts = [mean_of(part, args) for part in (x.real, x.imag)]
        return np.stack(parts, axis=-1).view(x.dtype)[..., 0]
    work = np.dtype("f4") if str(x.dtype) in SHORT_FLOATS else x.dtype
    return np.asarray(np.sum(x.astype(work), **args) / count.astype(work)).astype(x.dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEXES])
def test_float_sums_are_near_the_exact_one(rng, dtype) -> None:
    # By choice: both add in a tree, but not in the same one, so the last bits differ. NumPy's tree
    # depends on the strides; Inlay's on the shape alone.
    for size in (1, 7, 100, 1000, 30_000):
        x = rng.normal(size=size).astype(DTYPES[dtype])
        parts = [x.real, x.imag] if dtype in COMPLEXES else [x]
        exact = complex(*(math.fsum(part.astype("f8")) for part in parts))
        ours = complex(inlay.to_tensor(x).sum().item())
        step = 2.0 ** -{"float16": 10, "bfloat16": 7, "float32": 22, "complex64": 22}.get(dtype, 51)
        assert abs(ours - exact) <= step * 16 * math.sqrt(size)
        assert abs(complex(np.sum(x.astype("c16"))) - exact) <= 1e-9 * size
        assert inlay.to_tensor(x[::-1])[::-1].sum().item() == inlay.to_tensor(x).sum().item()


# Casts.


def castable(rng: np.random.Generator, dtype: str, to: str, shape: Any) -> np.ndarray:
    """Numbers whose cast C defines: a float becomes an integer only if that can hold it."""
    x = numbers(rng, dtype, shape)
    if to in INTEGERS and dtype in FLOATS:
        low = max(float(np.iinfo(to).min), -60000.0)
        high = min(float(np.iinfo(to).max), 60000.0)
        x = rng.uniform(low, high * 0.99, shape).astype(DTYPES[dtype])
    if to == "bfloat16" and dtype in ("int32", "uint32", "int64", "uint64", "float64"):
        # ml_dtypes goes by way of float32; see the test of double rounding.
        x = x.astype("f4").clip(-(2.0**30), 2.0**30).astype(DTYPES[dtype])
        x = x.astype("f4").astype(DTYPES[dtype]) if dtype == "float64" else x & ~x.dtype.type(0xFF)
    return x


@pytest.mark.parametrize("to", DTYPES)
@each_dtype
def test_cast(rng, agree, dtype, to) -> None:
    if dtype in COMPLEXES and to not in ("bool", *COMPLEXES):
        # By choice: NumPy drops the imaginary part with a warning, Inlay has you say which part.
        # (ml_dtypes drops it without one.)
        ignored = pytest.warns(np.exceptions.ComplexWarning)
        with contextlib.nullcontext() if to == "bfloat16" else ignored:
            assert np.array([1 + 2j], dtype).astype(DTYPES[to]) == 1
        with pytest.raises(TypeError, match=f"cast: .*{to}.*{dtype}"):
            inlay.cast(np.array([1 + 2j], dtype), to)
        return
    for shape in shapes(rng, each=2):
        x = castable(rng, dtype, to, shape)
        agree("cast", [x], x.astype(DTYPES[to]), assert_same, dtype=to)


def test_a_cast_to_bfloat16_rounds_once() -> None:
    # A fault of ml_dtypes: it rounds to float32 first, to a tie that the second rounding then
    # breaks downwards. The number is above the tie.
    for number in (np.array([1 + 2**-8 + 2**-40]), np.array([2**40 + 2**32 + 1])):
        step = 2.0 ** (math.frexp(number[0])[1] - 8)
        below = math.floor(number[0] / step) * step
        assert number[0] - below > step / 2
        assert number.astype(DTYPES["bfloat16"]) == below
        assert inlay.cast(number, "bfloat16") == below + step


@pytest.mark.parametrize("to", INTEGERS)
def test_floats_past_the_ends_of_an_integer_are_cast_to_the_ends(to) -> None:
    # By choice: C leaves this undefined, so NumPy warns and gives what the processor does.
    ends = np.iinfo(to)
    x = np.array([math.inf, -math.inf, 1e30, -1e30, math.nan])
    with np.errstate(invalid="warn"), pytest.warns(RuntimeWarning, match="invalid value"):
        x.astype(to)
    assert inlay.cast(x, to).tolist() == [ends.max, ends.min, ends.max, ends.min, 0]


# Constructors.


@each_dtype
def test_constructors(rng, dtype) -> None:
    for shape in shapes(rng, each=1):
        want = DTYPES[dtype]
        assert_bits(inlay.zeros(list(shape), dtype).numpy(), np.zeros(shape, want))
        assert_bits(inlay.ones(list(shape), dtype).numpy(), np.ones(shape, want))
        number = numbers(rng, dtype, ())
        full = inlay.full(list(shape), python(number), dtype)
        assert_same(full.numpy(), np.full(shape, number, want))
        x = numbers(rng, dtype, shape)
        if 0 not in shape:
            assert_same(inlay.to_tensor(x.tolist(), dtype).numpy(), np.array(x.tolist(), want))


def test_lists_keep_every_integer() -> None:
    integers = [2**63 - 1, 2**64 - 2]
    assert np.array(integers, "u8").tolist() == integers
    assert inlay.scatter(np.zeros(2, "u8"), [0, 1], integers).tolist() == integers
    assert inlay.to_tensor(integers, dtype="uint64").tolist() == integers


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_arange(rng, dtype) -> None:
    want = DTYPES[dtype]
    for _ in range(40):
        start, end, step = rng.integers(0, 100, 3).tolist()
        if want.kind != "u":
            start, end, step = (value - 50 for value in (start, end, step))
        step = step or 1
        if want.kind == "u" and rng.random() < 0.5 and start > end:
            step = -step
        expected = np.array(range(start, end, step), want)
        assert_bits(inlay.arange(start, end, step, dtype=dtype).numpy(), expected)
        assert_bits(np.arange(start, end, step).astype(want), expected)
        if dtype in FLOATS:
            # Sixteenths, so that every number on the way is exact.
            fractions = [value / 16 for value in (start, end, step)]
            expected = np.arange(*fractions).astype(want)
            assert_bits(inlay.arange(*fractions, dtype=dtype).numpy(), expected)
    assert_bits(inlay.arange(5).numpy(), np.arange(5))


def test_arange_rounds_each_number_once() -> None:
    # By choice: NumPy's step is what is left of it after `(start + step) - start`, an error that
    # grows along the way. Inlay's numbers are `start + i * step`.
    exact = np.array([1.0 + i * 0.1 for i in range(10)])
    assert_bits(inlay.arange(1.0, 2.0, 0.1, dtype="float64").numpy(), exact)
    theirs = np.arange(1.0, 2.0, 0.1)
    assert np.abs(theirs - exact).max() > 0
    np.testing.assert_allclose(theirs, exact)


# Where NumPy differs by choice, and where both refuse.


def test_a_short_source_is_refused() -> None:
    # By choice: np.place starts over with its values, which hides a mask that was too large.
    x, mask, source = np.zeros(5), np.ones(5, bool), np.array([1.0, 2.0])
    theirs = x.copy()
    np.place(theirs, mask, source)
    assert theirs.tolist() == [1, 2, 1, 2, 1]
    with pytest.raises(ValueError, match="source has 2 elements, mask selects 5"):
        inlay.masked_scatter_(x, mask, source)
    assert x.tolist() == [0] * 5
    # A boolean assignment refuses it as well, and a long source too; Inlay ignores the rest of it.
    for wrong in (source, np.arange(9.0)):
        with pytest.raises(ValueError, match="cannot assign"):
            theirs[mask] = wrong
    assert inlay.masked_scatter(x, mask, np.arange(9.0)).tolist() == [0, 1, 2, 3, 4]


def test_values_are_neither_stretched_nor_cast_without_being_told() -> None:
    # By choice: NumPy's assignment broadcasts and casts whatever it is given.
    x, row = np.zeros((2, 3), "i4"), np.array([1.9, 2.9, 3.9])
    theirs = x.copy()
    theirs[:] = row
    assert theirs.tolist() == [[1, 2, 3]] * 2
    with pytest.raises(ValueError, match=r"slice_scatter: y has shape \[3\]"):
        inlay.slice_scatter(x, row.astype("i4"))
    with pytest.raises(TypeError, match=r"slice_scatter: y .*float64.*int32"):
        inlay.slice_scatter(x, np.array([row, row]))


def test_a_triangle_needs_a_matrix() -> None:
    # By choice: NumPy makes a matrix of a vector first, by repeating it.
    x = np.array([1, 2, 3])
    assert np.tril(x).tolist() == [[1, 0, 0], [1, 2, 0], [1, 2, 3]]
    with pytest.raises(ValueError, match="tril: x has 1 dimensions, expected at least 2"):
        inlay.tril(x)


def test_offsets_at_the_ends_of_int64() -> None:
    # By choice: NumPy's offset of a diagonal is a C int, and of a triangle it overflows below.
    x = np.zeros((3, 3))
    for offset in (2**63 - 1, -(2**63)):
        with pytest.raises(OverflowError):
            np.diagonal(x, offset)
        assert inlay.diagonal(x, offset).shape == (0,)
        assert inlay.diagonal_scatter(x, np.zeros(0), offset).tolist() == x.tolist()
    assert np.array(np.tril_indices(3, 2**63 - 1)).shape == (2, 9)
    assert inlay.tril_indices(3, offset=2**63 - 1).shape == [2, 9]
    with pytest.raises(OverflowError):
        np.tril_indices(3, -(2**63))
    assert inlay.tril_indices(3, offset=-(2**63)).shape == [2, 0]


@each_dtype
def test_an_index_out_of_range_is_refused_by_both(dtype) -> None:
    x, updates = np.zeros(3, DTYPES[dtype]), np.ones(3, DTYPES[dtype])
    for bad in (3, -4, 2**62, -(2**62)):
        index = np.array([0, 1, bad])
        for numpy_says in (
            lambda index=index: np.take(x, index),
            lambda index=index: np.add.at(x.copy(), index, updates),
            lambda index=index: np.put_along_axis(x.copy(), index, updates, 0),
            lambda index=index: x.copy().__setitem__(index, updates),
        ):
            with pytest.raises(IndexError):
                numpy_says()
        for inlay_says in (
            lambda index=index: inlay.index_select(x, index),
            lambda index=index: inlay.scatter_(x, index, updates),
            lambda index=index: inlay.scatter_(x, index, updates, False),
            lambda index=index: inlay.put_along_axis_(x, index, updates, 0),
            lambda index=index: inlay.index_fill_(x, index, 0, updates[0, ...]),
            lambda index=index: inlay.from_numpy(x).__setitem__(index, updates),
        ):
            with pytest.raises(IndexError, match=rf"index\[2\] is {bad}, .*axis 0 of size 3"):
                inlay_says()
            assert not x.any()


# Sizes at which work is shared among threads.


@pytest.fixture(params=[1, 2, 3, 4])
def threads(request) -> Iterator[int]:
    before = inlay.get_num_threads()
    inlay.set_num_threads(request.param)
    yield request.param
    inlay.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "float64", "complex128"])
def test_large(threads, dtype) -> None:
    rng = np.random.default_rng(7)
    x = numbers(rng, dtype, (300, 1111))
    mask = rng.random(x.shape) < 0.3
    source = numbers(rng, dtype, x.shape)
    expected = x.copy()
    expected[mask] = source.reshape(-1)[: np.count_nonzero(mask)]
    assert_bits(inlay.masked_scatter(x, mask, source), expected)
    assert_bits(inlay.masked_select(x.T, mask.T), x.T[mask.T])

    expected = x.copy()
    expected[:, ::-2] = source[:, ::-2]
    assert_bits(inlay.slice_scatter(x, source[:, ::-2], axis=1, step=-2), expected)

    index = rng.integers(-300, 300, 1000)
    updates = numbers(rng, dtype, (1000, 1111))
    expected = x.copy()
    expected[index] = updates
    assert_bits(inlay.scatter(x, index, updates), expected)
    expected = reduced(x, index % 300, updates, "sum", include_self=True)
    ours = inlay.scatter(x, index, updates, False, include_self=True)
    assert_same(ours, expected)

    index = rng.integers(-1111, 1111, x.shape)
    expected = x.copy()
    np.put_along_axis(expected, index, source, 1)
    assert_bits(inlay.put_along_axis(x, index, source, 1), expected)
    assert_bits(inlay.take_along_axis(x, index, 1), np.take_along_axis(x, index, 1))
    assert_bits(inlay.tril(x, 5), np.tril(x, 5))
    assert_bits(inlay.where(mask, x, source), np.where(mask, x, source))
    assert_same(inlay.add(x.T, source.T), np.add(x.T, source.T))
