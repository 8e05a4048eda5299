"""Naive reference implementations of every operation: loops over elements, no cleverness.

They are the oracle of the tests, so they are written to be obviously right rather than fast.
Same signatures as in `inlay`, NumPy arrays in, a fresh array out; nothing is done in place.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes  # noqa: F401  (makes NumPy know "bfloat16")
import numpy as np

Array = np.ndarray
Position = tuple[int, ...]

INTEGERS = ["uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEXES = ["complex64", "complex128"]
DTYPES = {name: np.dtype(name) for name in ["bool", *INTEGERS, *FLOATS, *COMPLEXES]}
BOOL, INT64, UINT64 = DTYPES["bool"], DTYPES["int64"], DTYPES["uint64"]
FLOAT32, FLOAT64 = DTYPES["float32"], DTYPES["float64"]

REDUCES = {"add": "sum", "prod": "mul", "multiply": "mul", "max": "amax", "min": "amin"}
REDUCES |= {name: name for name in ["sum", "mul", "mean", "amax", "amin"]}


# Numbers.


def kind(dtype: np.dtype) -> str:
    return {"b": "bool", "u": "integer", "i": "integer", "c": "complex"}.get(dtype.kind, "float")


def dtype_named(op: str, dtype: Any) -> np.dtype:
    if str(dtype) not in DTYPES:
        raise TypeError(f"{op}: dtype is {dtype}, expected one of {', '.join(DTYPES)}")
    return DTYPES[str(dtype)]


def limits(dtype: np.dtype) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def wrapped(value: int, dtype: np.dtype) -> Any:
    low, high = limits(dtype)
    return dtype.type((value - low) % (high - low + 1) + low)


def rounded(value: float, dtype: np.dtype) -> Any:
    """`value`, an int or a float, in a float dtype: rounded once, to nearest, ties to even."""
    with np.errstate(all="ignore"):
        guess = dtype.type(float(value))
        if dtype == FLOAT64 or value == 0 or not math.isfinite(value):
            return guess
        infinity = dtype.type(math.inf)
        near = [guess, np.nextafter(guess, infinity), np.nextafter(guess, -infinity)]
    beyond = 2**16 if dtype == DTYPES["float16"] else 2**128  # where infinity would stand

    def error(number: Any) -> tuple[Fraction, int]:
        exact = math.copysign(min(abs(float(number)), beyond), float(number))
        odd = int(np.array(number).view(f"uint{8 * dtype.itemsize}")) & 1
        return abs(Fraction(exact) - Fraction(value)), odd

    return min(near, key=error)


def plain(number: Any) -> Any:
    """The exact value as a Python int, float or complex."""
    return {"float": float, "complex": complex}.get(kind(number.dtype), int)(number)


def converted(number: Any, dtype: np.dtype) -> Any:
    """The rule of `cast` for one number; a complex one doesn't become real."""
    value, want = plain(number), kind(dtype)
    if want == "bool":
        return dtype.type(value != 0)
    if want == "complex":
        part = FLOAT32 if dtype.itemsize == 8 else FLOAT64
        return dtype.type(complex(rounded(value.real, part), rounded(value.imag, part)))
    if want == "float":
        return rounded(value, dtype)
    if isinstance(value, int):
        return wrapped(value, dtype)
    low, high = limits(dtype)
    if not math.isfinite(value):
        return dtype.type(high if value > 0 else low if value < 0 else 0)
    return dtype.type(min(max(int(value), low), high))


def scalar(op: str, name: str, value: Any, dtype: np.dtype) -> Any:
    """A Python number given as an argument, in the dtype of the tensor it goes into."""
    ranks = ["bool", "integer", "float", "complex"]
    given = {bool: "bool", int: "integer", float: "float", complex: "complex"}[type(value)]
    if ranks.index(given) > ranks.index(kind(dtype)):
        raise TypeError(f"{op}: {name} is {value}, which dtype {dtype} can't hold")
    if kind(dtype) == "integer" and not limits(dtype)[0] <= value <= limits(dtype)[1]:
        raise ValueError(f"{op}: {name} is {value}, which dtype {dtype} can't hold")
    if given == "integer" and kind(dtype) == "float":
        return rounded(value, dtype)
    return dtype.type(value) if given == "integer" else converted(np.array(value)[()], dtype)


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which floats and complex numbers are computed before they are rounded once."""
    return FLOAT32 if kind(dtype) == "float" and dtype.itemsize == 2 else dtype


def product(a: Any, b: Any) -> Any:
    if kind(a.dtype) != "complex":
        return a * b
    real, imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    return a.dtype.type(complex(real, imag))


def reduction(numbers: Sequence[Any], how: str, dtype: np.dtype) -> Any:
    """One or more numbers of `dtype` made one, in order."""
    if how == "assign":
        return numbers[-1]
    if kind(dtype) == "bool":
        return dtype.type(any(numbers) if how in ("sum", "amax") else all(numbers))
    if how in ("amax", "amin"):
        best = numbers[0]
        for number in numbers:
            if number != number:  # NaN
                return number
            if (number > best) if how == "amax" else (number < best):
                best = number
        return best
    if kind(dtype) == "integer":
        total = 1 if how == "mul" else 0
        for number in numbers:
            total = total * int(number) if how == "mul" else total + int(number)
        return wrapped(total // len(numbers) if how == "mean" else total, dtype)
    work = wide(dtype)
    with np.errstate(all="ignore"):
        total = work.type(numbers[0])
        for number in numbers[1:]:
            next_one = work.type(number)
            total = product(total, next_one) if how == "mul" else total + next_one
        if how == "mean" and kind(dtype) == "complex":
            count = total.real.dtype.type(len(numbers))
            total = complex(total.real / count, total.imag / count)
        elif how == "mean":
            total = total / work.type(len(numbers))
        return dtype.type(total)


# Checks that operations share.


def check_integers(op: str, **values: Any) -> None:
    for name, value in values.items():
        if not hasattr(value, "__index__"):
            raise TypeError(f"{op}: {name} is {value!r}, expected an integer")


def check_axis(op: str, axis: int, rank: int, name: str = "axis") -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"{op}: {name} {axis} is out of range for rank {rank}")
    return axis % rank


def check_rank(op: str, name: str, x: Array, least: int) -> None:
    if x.ndim < least:
        raise ValueError(f"{op}: {name} has rank {x.ndim}, expected at least {least}")


def check_shape(op: str, name: str, x: Array, expected: Any, good: bool | None = None) -> None:
    if not (list(x.shape) == expected if good is None else good):
        raise ValueError(f"{op}: {name} has shape {list(x.shape)}, expected {expected}")


def check_same_dtype(op: str, name: str, y: Array, x: Array, x_name: str = "x") -> None:
    if y.dtype != x.dtype:
        raise TypeError(f"{op}: {name} has dtype {y.dtype}, {x_name} has dtype {x.dtype}")


def check_kind(op: str, name: str, x: Array, expected: str) -> None:
    if kind(x.dtype) != expected:
        raise TypeError(f"{op}: {name} has dtype {x.dtype}, expected {expected}")


def is_undefined(how: str, dtype: np.dtype) -> bool:
    return (how, kind(dtype)) in (("mean", "bool"), ("amax", "complex"), ("amin", "complex"))


def check_reduce(op: str, reduce: str, dtype: np.dtype, more: str = "") -> str:
    if reduce not in REDUCES:
        names = f"{more}sum, mul, mean, amax, amin (or add, prod, multiply, max, min)"
        raise ValueError(f'{op}: reduce is "{reduce}", expected one of {names}')
    how = REDUCES[reduce]
    if is_undefined(how, dtype):
        raise TypeError(f'{op}: reduce "{reduce}" is not defined for x of dtype {dtype}')
    return how


def place(op: str, name: str, value: int, axis: int, size: int) -> int:
    if not -size <= value < size:
        raise IndexError(f"{op}: {name} is {value}, out of range for axis {axis} of size {size}")
    return value % size


def places(op: str, index: Array, axis: int, size: int) -> Array:
    """The index with its range checked and its negatives counted from the end."""
    check_kind(op, "index", index, "integer")
    out = np.zeros(index.shape, np.int64)
    for p in np.ndindex(index.shape):
        out[p] = place(op, f"index{list(p)}" if p else "index", int(index[p]), axis, size)
    return out


def flat_index(
    op: str, x: Array, index: Array, axis: int, ranks: Sequence[int] = (1,)
) -> tuple[int, list[int]]:
    """What scatter, index_select and index_fill ask of x, axis and an index that names rows."""
    check_rank(op, "x", x, 1)
    axis = check_axis(op, axis, x.ndim)
    check_shape(op, "index", index, f"rank {' or '.join(map(str, ranks))}", index.ndim in ranks)
    return axis, places(op, index, axis, x.shape[axis]).reshape(-1).tolist()


def element_index(op: str, x: Array, index: Array, axis: int, broadcast: bool) -> tuple[int, Array]:
    """What put_along_axis and take_along_axis ask of x, axis and an index of x's rank."""
    check_rank(op, "x", x, 1)
    axis = check_axis(op, axis, x.ndim)
    check_shape(op, "index", index, f"rank {x.ndim}", index.ndim == x.ndim)
    if broadcast:
        index = stretched(op, "index", index, swap_in(x.shape, axis, index.shape[axis]))
    fits = all(index.shape[d] <= x.shape[d] for d in range(x.ndim) if d != axis)
    check_shape(op, "index", index, f"at most {list(x.shape)} off axis {axis}", fits)
    return axis, places(op, index, axis, x.shape[axis])


def stretched(op: str, name: str, x: Array, shape: Sequence[int]) -> Array:
    """`x` broadcast to `shape`, copied."""
    lead = len(shape) - x.ndim
    fits = lead >= 0 and min(shape, default=0) >= 0
    fits = fits and all(x.shape[d] in (1, shape[lead + d]) for d in range(x.ndim))
    check_shape(op, name, x, f"one that broadcasts to {list(shape)}", fits)
    out = np.zeros(shape, x.dtype)
    for p in np.ndindex(*shape):
        out[p] = x[tuple(0 if x.shape[d] == 1 else p[lead + d] for d in range(x.ndim))]
    return out


def stretched_mask(op: str, mask: Array, shape: Sequence[int]) -> Array:
    check_kind(op, "mask", mask, "bool")
    return stretched(op, "mask", mask, shape)


def together(op: str, *tensors: Array) -> list[Array]:
    try:
        shape = np.broadcast_shapes(*(t.shape for t in tensors))
    except ValueError:
        shapes = " and ".join(str(list(t.shape)) for t in tensors)
        raise ValueError(f"{op}: shapes {shapes} don't broadcast together") from None
    return [stretched(op, "an input", t, shape) for t in tensors]


def without(values: Sequence[int], *axes: int) -> list[int]:
    return [value for d, value in enumerate(values) if d not in axes]


def swap_in(position: Position, axis: int, value: int) -> Position:
    return (*position[:axis], value, *position[axis + 1 :])


def write(x: Array, writes: list[tuple[Position, Any]], how: str, include_self: bool) -> Array:
    """`x` after the writes: each place named becomes the reduction of what was sent there."""
    sent: dict[Position, list[Any]] = {}
    for position, number in writes:
        sent.setdefault(position, [x[position]] if include_self else []).append(number)
    out = np.array(x, order="C")
    for position, numbers in sent.items():
        out[position] = reduction(numbers, how, x.dtype)
    return out


# The five.


def tril_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = None) -> Array:
    return triangle("tril_indices", row, col, offset, dtype)


def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = None) -> Array:
    return triangle("triu_indices", row, col, offset, dtype)


def triangle(op: str, row: Any, col: Any, offset: Any, dtype: Any) -> Array:
    col = row if col is None else col
    check_integers(op, row=row, col=col, offset=offset)
    for name, value in (("row", row), ("col", col)):
        if value < 0:
            raise ValueError(f"{op}: {name} is {value}, expected at least 0")
    want = INT64 if dtype is None else dtype_named(op, dtype)
    if kind(want) != "integer":
        raise TypeError(f"{op}: dtype is {want}, expected an integer dtype")
    # Only the rows and columns that the triangle touches are visited: there may be 2**63 others.
    lower = op == "tril_indices"
    rows = range(max(0, -offset), row) if lower else range(min(row, col - offset))
    if len(rows) > 2**20 and col > 2**20:
        raise ValueError(f"{op}: row is {row} and col is {col}, the result is too large")
    pairs = []
    for r in rows if col else ():
        columns = range(min(col, r + offset + 1)) if lower else range(max(0, r + offset), col)
        pairs += [(r, c) for c in columns]
    largest = max((max(pair) for pair in pairs), default=0)
    if largest > limits(want)[1]:
        raise ValueError(f"{op}: dtype {want} can't hold the largest index, {largest}")
    return np.array(pairs, want).reshape(len(pairs), 2).T.copy()


def diagonal_map(
    op: str, name: str, x: Array, offset: int, axis1: int, axis2: int
) -> tuple[list[int], dict[Position, Position]]:
    """The diagonal's shape, and from each position in it the position in `x`."""
    check_rank(op, name, x, 2)
    check_integers(op, offset=offset)
    axis1, axis2 = check_axis(op, axis1, x.ndim, "axis1"), check_axis(op, axis2, x.ndim, "axis2")
    if axis1 == axis2:
        raise ValueError(f"{op}: axis1 and axis2 are both axis {axis1}")
    steps = [(i, i + offset) for i in range(x.shape[axis1]) if 0 <= i + offset < x.shape[axis2]]
    rest = without(x.shape, axis1, axis2)
    positions = {}
    for p in np.ndindex(*rest):
        for k, (i, j) in enumerate(steps):
            others = iter(p)
            here = (i if d == axis1 else j if d == axis2 else next(others) for d in range(x.ndim))
            positions[(*p, k)] = tuple(here)
    return [*rest, len(steps)], positions


def diagonal(x: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    shape, positions = diagonal_map("diagonal", "x", x, offset, axis1, axis2)
    out = np.zeros(shape, x.dtype)
    for there, here in positions.items():
        out[there] = x[here]
    return out


def diagonal_scatter(
    input: Array, src: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, name: Any = None
) -> Array:
    shape, positions = diagonal_map("diagonal_scatter", "input", input, offset, axis1, axis2)
    check_same_dtype("diagonal_scatter", "src", src, input, "input")
    check_shape("diagonal_scatter", "src", src, shape)
    out = np.array(input, order="C")
    for there, here in positions.items():
        out[here] = src[there]
    return out


def slice_scatter(
    x: Array, y: Array, axis: Any = 0, start: Any = None, stop: Any = None, step: Any = 1,
    name: Any = None,
) -> Array:  # fmt: skip
    op = "slice_scatter"
    check_rank(op, "x", x, 1)
    check_same_dtype(op, "y", y, x)
    axes = axis if isinstance(axis, list) else [axis]
    lists = []
    for label, value in (("start", start), ("stop", stop), ("step", step)):
        lists.append(value if isinstance(value, list) else [value] * len(axes))
        if len(lists[-1]) != len(axes):
            raise ValueError(f"{op}: {label} has length {len(lists[-1])}, axis has {len(axes)}")
    axes = [check_axis(op, a, x.ndim) for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{op}: axis is {axis}, an axis is given twice")
    taken = [range(size) for size in x.shape]
    for a, first, last, stride in zip(axes, *lists, strict=True):
        check_integers(op, start=first or 0, stop=last or 0, step=stride)
        if stride == 0:
            raise ValueError(f"{op}: step is 0")
        taken[a] = range(*slice(first, last, stride).indices(x.shape[a]))
    check_shape(op, "y", y, [len(indices) for indices in taken])
    out = np.array(x, order="C")
    for p in np.ndindex(y.shape):
        out[tuple(taken[d][p[d]] for d in range(x.ndim))] = y[p]
    return out


def masked_scatter(input: Array, mask: Array, source: Array, name: Any = None) -> Array:
    op = "masked_scatter"
    check_same_dtype(op, "source", source, input, "input")
    mask = stretched_mask(op, mask, input.shape)
    true = [p for p in np.ndindex(input.shape) if mask[p]]
    supply = [source[p] for p in np.ndindex(source.shape)]
    if len(supply) < len(true):
        raise ValueError(f"{op}: source has {len(supply)} elements, mask selects {len(true)}")
    out = np.array(input, order="C")
    for k, p in enumerate(true):
        out[p] = supply[k]
    return out


def scatter(
    x: Array, index: Array, updates: Array, overwrite: bool = True, axis: int = 0,
    reduce: str = "sum", name: Any = None, *, include_self: bool = False,
) -> Array:  # fmt: skip
    how = "assign" if overwrite else check_reduce("scatter", reduce, x.dtype)
    writes = writes_of_rows("scatter", x, index, axis, "updates", updates)
    return write(x, writes, how, include_self)


def writes_of_rows(
    op: str, x: Array, index: Array, axis: int, name: str, updates: Array
) -> list[tuple[Position, Any]]:
    """What goes where if `updates[i]` goes to the row that `index[i]` names."""
    axis, rows = flat_index(op, x, index, axis, ranks=(0, 1))
    check_same_dtype(op, name, updates, x)
    if index.ndim == 0:
        check_shape(op, name, updates, without(x.shape, axis))
        updates = np.expand_dims(updates, axis)
    expected = swap_in(x.shape, axis, len(rows))
    good = without(updates.shape, axis) == without(x.shape, axis) and updates.ndim == x.ndim
    good = good and updates.shape[axis] >= len(rows)
    check_shape(op, name, updates, f"{list(expected)}, or more along axis {axis}", good)
    return [(swap_in(p, axis, rows[p[axis]]), updates[p]) for p in np.ndindex(*expected)]


# The rest of the family: writes.


def put_along_axis(
    x: Array, index: Array, values: Array, axis: int, reduce: str = "assign",
    include_self: bool = True, broadcast: bool = True,
) -> Array:  # fmt: skip
    op = "put_along_axis"
    axis, where_to = element_index(op, x, index, axis, broadcast)
    check_same_dtype(op, "values", values, x)
    how = "assign" if reduce == "assign" else check_reduce(op, reduce, x.dtype, "assign, ")
    if broadcast:
        values = stretched(op, "values", values, where_to.shape)
    fits = values.ndim == x.ndim and all(np.array(values.shape) >= np.array(where_to.shape))
    check_shape(op, "values", values, f"at least {list(where_to.shape)}", fits)
    writes = [(swap_in(p, axis, int(i)), values[p]) for p, i in np.ndenumerate(where_to)]
    return write(x, writes, how, include_self)


def masked_fill(x: Array, mask: Array, value: Any) -> Array:
    mask = stretched_mask("masked_fill", mask, x.shape)
    number = scalar("masked_fill", "value", value, x.dtype)
    out = np.array(x, order="C")
    for p in np.ndindex(x.shape):
        if mask[p]:
            out[p] = number
    return out


def index_fill(x: Array, index: Array, axis: int, value: Any) -> Array:
    axis, rows = flat_index("index_fill", x, index, axis)
    number = scalar("index_fill", "value", value, x.dtype)
    out = np.array(x, order="C")
    for p in np.ndindex(x.shape):
        if p[axis] in rows:
            out[p] = number
    return out


def select_scatter(x: Array, values: Array, axis: int, index: int) -> Array:
    op = "select_scatter"
    check_rank(op, "x", x, 1)
    axis = check_axis(op, axis, x.ndim)
    check_same_dtype(op, "values", values, x)
    row = place(op, "index", index, axis, x.shape[axis])
    check_shape(op, "values", values, without(x.shape, axis))
    out = np.array(x, order="C")
    for p in np.ndindex(values.shape):
        out[(*p[:axis], row, *p[axis:])] = values[p]
    return out


def index_add(x: Array, index: Array, axis: int, value: Array) -> Array:
    return write(x, writes_of_rows("index_add", x, index, axis, "value", value), "sum", True)


def index_put(x: Array, indices: Sequence[Array], value: Array, accumulate: bool = False) -> Array:
    op = "index_put"
    if not 1 <= len(indices) <= x.ndim:
        raise ValueError(f"{op}: indices has length {len(indices)}, x has rank {x.ndim}")
    if len(indices) == 1 and indices[0].dtype == BOOL:
        [mask] = indices
        check_shape(op, "mask", mask, list(x.shape[: mask.ndim]))
        true = [p for p in np.ndindex(mask.shape) if mask[p]]
        index = np.array(true, INT64).reshape(len(true), mask.ndim)
    else:
        checked = [places(op, index, d, x.shape[d]) for d, index in enumerate(indices)]
        index = np.stack(together(op, *checked), axis=-1)
    check_same_dtype(op, "value", value, x)
    value = stretched(op, "value", value, [*index.shape[:-1], *x.shape[index.shape[-1] :]])
    return write(x, writes_nd(index, value), "sum" if accumulate else "assign", True)


def writes_nd(index: Array, updates: Array) -> list[tuple[Position, Any]]:
    """What goes where if the last axis of a checked index lists places on the first axes."""
    lead = index.ndim - 1
    return [((*index[p[:lead]].tolist(), *p[lead:]), updates[p]) for p in np.ndindex(updates.shape)]


def scatter_nd(index: Array, updates: Array, shape: Any) -> Array:
    sizes = shape if isinstance(shape, list) else [shape]
    if min(sizes, default=0) < 0:
        raise ValueError(f"scatter_nd: shape is {sizes}, expected sizes of at least 0")
    return scatter_nd_add(np.zeros(sizes, updates.dtype), index, updates, op="scatter_nd")


def scatter_nd_add(x: Array, index: Array, updates: Array, op: str = "scatter_nd_add") -> Array:
    check_kind(op, "index", index, "integer")
    check_rank(op, "index", index, 1)
    depth = index.shape[-1]
    if not 1 <= depth <= x.ndim:
        raise ValueError(f"{op}: index has {depth} on its last axis, x has rank {x.ndim}")
    checked = [places(op, index[..., d], d, x.shape[d]) for d in range(depth)]
    check_same_dtype(op, "updates", updates, x)
    check_shape(op, "updates", updates, [*index.shape[:-1], *x.shape[depth:]])
    return write(x, writes_nd(np.stack(checked, axis=-1), updates), "sum", True)


# The rest of the family: reads.


def index_select(x: Array, index: Array, axis: int = 0) -> Array:
    axis, rows = flat_index("index_select", x, index, axis)
    out = np.zeros(swap_in(x.shape, axis, len(rows)), x.dtype)
    for p in np.ndindex(out.shape):
        out[p] = x[swap_in(p, axis, rows[p[axis]])]
    return out


def take_along_axis(x: Array, index: Array, axis: int, broadcast: bool = True) -> Array:
    axis, where_from = element_index("take_along_axis", x, index, axis, broadcast)
    out = np.zeros(where_from.shape, x.dtype)
    for p in np.ndindex(out.shape):
        out[p] = x[swap_in(p, axis, int(where_from[p]))]
    return out


def masked_select(x: Array, mask: Array) -> Array:
    mask = stretched_mask("masked_select", mask, x.shape)
    return np.array([x[p] for p in np.ndindex(x.shape) if mask[p]], x.dtype)


def tril(x: Array, diagonal: int = 0) -> Array:
    check_integers("tril", diagonal=diagonal)
    return half("tril", x, lambda r, c: c - r <= diagonal)


def triu(x: Array, diagonal: int = 0) -> Array:
    check_integers("triu", diagonal=diagonal)
    return half("triu", x, lambda r, c: c - r >= diagonal)


def half(op: str, x: Array, keep: Callable[[int, int], bool]) -> Array:
    check_rank(op, "x", x, 2)
    out = np.zeros(x.shape, x.dtype)
    for p in np.ndindex(x.shape):
        if keep(p[-2], p[-1]):
            out[p] = x[p]
    return out


# Slicing. NumPy says what a key means, but for the errors: it is asked about positions in `x`.


def selected(op: str, x: Array, key: tuple) -> Array:
    """The row-major positions in `x` that the key selects, in the shape it selects them."""
    items, axis = list(key), 0
    total = len([None for item in items for _ in range(axes_used(item))])
    if total > x.ndim or len([item for item in items if item is Ellipsis]) > 1:
        raise IndexError(f"{op}: the key has {total} indices, x has rank {x.ndim}")
    for i, item in enumerate(items):
        if is_mask(item):
            check_shape(op, "mask", item, list(x.shape[axis : axis + item.ndim]))
        elif isinstance(item, np.ndarray):
            items[i] = places(op, item, axis, x.shape[axis])
        elif isinstance(item, int):
            place(op, "index", item, axis, x.shape[axis])
        elif isinstance(item, slice) and item.step == 0:
            raise ValueError(f"{op}: step is 0")
        axis += x.ndim - total if item is Ellipsis else axes_used(item)
    return np.asarray(np.arange(x.size).reshape(x.shape)[tuple(items)])


def is_mask(item: Any) -> bool:
    return isinstance(item, np.ndarray) and item.dtype == BOOL


def axes_used(item: Any) -> int:
    return 0 if item is None or item is Ellipsis else item.ndim if is_mask(item) else 1


def getitem(x: Array, key: tuple) -> Array:
    positions = selected("getitem", x, key)
    return np.array([x.flat[p] for p in positions.flat], x.dtype).reshape(positions.shape)


def setitem(x: Array, value: Array, key: tuple) -> Array:
    positions = selected("setitem", x, key)
    check_same_dtype("setitem", "value", value, x)
    value = stretched("setitem", "value", value, positions.shape)
    out = np.array(x, order="C")
    for p in np.ndindex(positions.shape):
        out.flat[positions[p]] = value[p]
    return out


# Shape and dtype.


def cast(x: Array, dtype: Any) -> Array:
    want = dtype_named("cast", dtype)
    if kind(x.dtype) == "complex" and kind(want) in ("integer", "float"):
        raise TypeError(f"cast: x has dtype {x.dtype}, which can't become {want}")
    out = np.zeros(x.shape, want)
    for p in np.ndindex(x.shape):
        out[p] = converted(x[p], want)
    return out


def reshape(x: Array, shape: Sequence[int]) -> Array:
    known = math.prod(n for n in shape if n != -1)
    text = f"reshape: shape is {list(shape)}, x has {x.size} elements"
    if list(shape).count(-1) > 1 or any(n < -1 for n in shape):
        raise ValueError(f"{text}; expected sizes of at least 0 and at most one -1")
    if -1 in shape and (known == 0 or x.size % known != 0):
        raise ValueError(f"{text}; the -1 can't be inferred")
    sizes = [x.size // known if n == -1 else n for n in shape]
    if math.prod(sizes) != x.size:
        raise ValueError(text)
    return np.array([x[p] for p in np.ndindex(x.shape)], x.dtype).reshape(sizes)


def transpose(x: Array, perm: Sequence[int]) -> Array:
    if len(perm) != x.ndim:
        raise ValueError(f"transpose: perm has length {len(perm)}, x has rank {x.ndim}")
    axes = [check_axis("transpose", axis, x.ndim) for axis in perm]
    if len(set(axes)) != len(axes):
        raise ValueError(f"transpose: perm is {list(perm)}, an axis is given twice")
    out = np.zeros([x.shape[axis] for axis in axes], x.dtype)
    for p in np.ndindex(out.shape):
        out[p] = x[tuple(p[axes.index(d)] for d in range(x.ndim))]
    return out


def broadcast_to(x: Array, shape: Sequence[int]) -> Array:
    return stretched("broadcast_to", "x", x, shape)


def concat(x: Sequence[Array], axis: int = 0, op: str = "concat") -> Array:
    if not x:
        raise ValueError(f"{op}: x is empty, expected at least one tensor")
    check_rank(op, "x", x[0], 1)
    axis = check_axis(op, axis, x[0].ndim)
    starts = [0]
    for part in x:
        check_same_dtype(op, "x", part, x[0], "the first of them")
        good = part.ndim == x[0].ndim and without(part.shape, axis) == without(x[0].shape, axis)
        check_shape(op, "x", part, f"{list(x[0].shape)} but for axis {axis}", good)
        starts.append(starts[-1] + part.shape[axis])
    out = np.zeros(swap_in(x[0].shape, axis, starts[-1]), x[0].dtype)
    for part, start in zip(x, starts, strict=False):
        for p in np.ndindex(part.shape):
            out[swap_in(p, axis, start + p[axis])] = part[p]
    return out


def stack(x: Sequence[Array], axis: int = 0) -> Array:
    if not x:
        raise ValueError("stack: x is empty, expected at least one tensor")
    axis = check_axis("stack", axis, x[0].ndim + 1)
    for part in x:
        check_shape("stack", "x", part, list(x[0].shape))
    return concat([np.expand_dims(part, axis) for part in x], axis, op="stack")


# Pointwise, and reductions.


def where(condition: Array, x: Array, y: Array) -> Array:
    check_kind("where", "condition", condition, "bool")
    check_same_dtype("where", "y", y, x)
    condition, x, y = together("where", condition, x, y)
    out = np.zeros(x.shape, x.dtype)
    for p in np.ndindex(x.shape):
        out[p] = x[p] if condition[p] else y[p]
    return out


def pointwise(op: str, x: Array, y: Array, want: np.dtype, one: Callable[[Any, Any], Any]) -> Array:
    check_same_dtype(op, "y", y, x)
    x, y = together(op, x, y)
    out = np.zeros(x.shape, want)
    with np.errstate(all="ignore"):
        for p in np.ndindex(x.shape):
            out[p] = one(x[p], y[p])
    return out


def add(x: Array, y: Array) -> Array:
    return pointwise("add", x, y, x.dtype, lambda a, b: reduction([a, b], "sum", x.dtype))


def multiply(x: Array, y: Array) -> Array:
    return pointwise("multiply", x, y, x.dtype, lambda a, b: reduction([a, b], "mul", x.dtype))


def subtract(x: Array, y: Array) -> Array:
    def one(a: Any, b: Any) -> Any:
        if kind(x.dtype) == "integer":
            return wrapped(int(a) - int(b), x.dtype)
        return x.dtype.type(wide(x.dtype).type(a) - wide(x.dtype).type(b))

    if x.dtype == y.dtype == BOOL:
        raise TypeError("subtract: x has dtype bool, expected a number")
    return pointwise("subtract", x, y, x.dtype, one)


def divide(x: Array, y: Array) -> Array:
    want = FLOAT64 if kind(x.dtype) in ("bool", "integer") else x.dtype

    def one(a: Any, b: Any) -> Any:
        if kind(want) == "complex":
            return want.type(quotient(a, b))
        return want.type(wide(want).type(a) / wide(want).type(b))

    return pointwise("divide", x, y, want, one)


def quotient(a: Any, b: Any) -> complex:
    """Smith's way, as in NumPy: scaled, so that no square overflows."""
    if b.real == 0 and b.imag == 0:
        return complex(a.real / abs(b.real), a.imag / abs(b.real))
    if abs(b.real) >= abs(b.imag):
        ratio = b.imag / b.real
        scale = b.real.dtype.type(1) / (b.real + b.imag * ratio)
        return complex((a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale)
    ratio = b.real / b.imag
    scale = b.real.dtype.type(1) / (b.imag + b.real * ratio)
    return complex((a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale)


def comparison(op: str, holds: Callable[[Any, Any], bool]) -> Callable[[Array, Array], Array]:
    def compare(x: Array, y: Array) -> Array:
        if x.dtype == y.dtype and kind(x.dtype) == "complex" and op not in ("equal", "not_equal"):
            raise TypeError(f"{op}: x has dtype {x.dtype}, which has no order")
        return pointwise(op, x, y, BOOL, lambda a, b: holds(plain(a), plain(b)))

    return compare


equal = comparison("equal", operator.eq)
not_equal = comparison("not_equal", operator.ne)
less_than = comparison("less_than", operator.lt)
less_equal = comparison("less_equal", operator.le)
greater_than = comparison("greater_than", operator.gt)
greater_equal = comparison("greater_equal", operator.ge)


def lanes(
    op: str, x: Array, axis: Any, keepdim: bool
) -> tuple[list[int], dict[Position, list[Any]]]:
    """The shape of a reduction's result, and for each place in it the numbers that meet there."""
    axes = list(range(x.ndim)) if axis is None else axis if isinstance(axis, list) else [axis]
    axes = [check_axis(op, a, x.ndim) for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"{op}: axis is {axis}, an axis is given twice")
    kept = [1 if d in axes else n for d, n in enumerate(x.shape)]
    shape = kept if keepdim else without(x.shape, *axes)
    numbers: dict[Position, list[Any]] = {p: [] for p in np.ndindex(*shape)}
    for p in np.ndindex(x.shape):
        there = [0 if d in axes else i for d, i in enumerate(p)]
        numbers[tuple(there if keepdim else without(p, *axes))].append(x[p])
    return shape, numbers


def reduced(op: str, x: Array, how: str, want: np.dtype, axis: Any, keepdim: bool) -> Array:
    """One number after the other, so that floats may differ from a tree in the last bits."""
    shape, numbers = lanes(op, x, axis, keepdim)
    if is_undefined(how, x.dtype):
        raise TypeError(f"{op}: x has dtype {x.dtype}, for which {op} is not defined")
    of_none = {"sum": 0, "mul": 1}
    if how == "mean" and kind(want) in ("float", "complex"):
        of_none["mean"] = complex(math.nan, math.nan) if kind(want) == "complex" else math.nan
    out = np.zeros(shape, want)
    for p, lane in numbers.items():
        if not lane and how not in of_none:
            raise ValueError(f"{op}: x has shape {list(x.shape)}, expected at least one element")
        lane = [want.type(number) for number in lane]
        out[p] = reduction(lane, how, want) if lane else want.type(of_none[how])
    return out


def in_64_bits(dtype: np.dtype) -> np.dtype:
    return {"b": INT64, "i": INT64, "u": UINT64}.get(dtype.kind, dtype)


def sum(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("sum", x, "sum", in_64_bits(x.dtype), axis, keepdim)


def mean(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("mean", x, "mean", x.dtype, axis, keepdim)


def prod(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("prod", x, "mul", in_64_bits(x.dtype), axis, keepdim)


def amax(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("amax", x, "amax", x.dtype, axis, keepdim)


def amin(x: Array, axis: Any = None, keepdim: bool = False) -> Array:
    return reduced("amin", x, "amin", x.dtype, axis, keepdim)


# Constructors.


def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, op: str = "full") -> Array:
    by_type = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}
    want = dtype_named(op, by_type[type(fill_value)] if dtype is None else dtype)
    if any(n < 0 for n in shape):
        raise ValueError(f"{op}: shape is {list(shape)}, expected sizes of at least 0")
    if math.prod(shape) * want.itemsize >= 2**63:
        raise ValueError(f"{op}: shape is {list(shape)}, which is too large")
    number = scalar(op, "fill_value", fill_value, want)
    return np.array([number] * math.prod(shape), want).reshape(shape)


def zeros(shape: Sequence[int], dtype: Any = "float32") -> Array:
    return full(shape, False, dtype, op="zeros")


def ones(shape: Sequence[int], dtype: Any = "float32") -> Array:
    return full(shape, True, dtype, op="ones")


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    start, end = (0, start) if end is None else (start, end)
    whole = all(isinstance(value, int) for value in (start, end, step))
    want = (INT64 if whole else FLOAT32) if dtype is None else dtype_named("arange", dtype)
    for name, value in (("start", start), ("end", end), ("step", step)):
        if not math.isfinite(value):
            raise ValueError(f"arange: {name} is {value}, expected a finite number")
    if step == 0:
        raise ValueError("arange: step is 0")
    if kind(want) not in ("integer", "float"):
        raise TypeError(f"arange: dtype is {want}, expected a real dtype")
    length = -((start - end) // step) if whole else math.ceil((end - start) / step)
    numbers = [start + i * step for i in range(max(0, length))]
    return np.array([scalar("arange", "a value", number, want) for number in numbers], want)
