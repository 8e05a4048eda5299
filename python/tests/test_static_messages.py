"""Tests that a row selection whose only user is a scatter is joined to the scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import inlay
from inlay import static

RNG = np.random.default_rng(11)
ROWS, PLACES, WIDTH = 9, 6, 20


def messages(x: Any, index: Any, table: Any, sources: Any, **options: Any) -> Any:
    return inlay.scatter(x, index, inlay.index_select(table, sources), False, **options)


def arguments(entries: int = 50, more: int = 0) -> tuple[np.ndarray, ...]:
    return (
        RNG.random((PLACES, WIDTH), np.float32),
        RNG.integers(-PLACES, PLACES, entries),
        RNG.random((ROWS, WIDTH), np.float32),
        RNG.integers(-ROWS, ROWS, entries + more),
    )


def joined(function: Any) -> int:
    """The number of steps in the last plan that are joined to others."""
    text = function.explain()
    return int(text.split(" joined to the next")[0].rsplit(" ", 1)[1])


def check(function: Any, joins: int, *many: tuple[Any, ...]) -> Any:
    """Checks that a traced function gives the same result, and how many steps its plan joins."""
    traced = inlay.jit(function)
    for values in many:
        args = [inlay.to_tensor(value) for value in values]
        found, wanted = traced(*args), function(*args)
        if isinstance(found, inlay.Tensor):
            found, wanted = (found,), (wanted,)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert joined(traced) == joins
    return traced


def leaf(tensor: Any) -> Any:
    tensor = tensor.detach()
    tensor.stop_gradient = False
    return tensor


@pytest.mark.parametrize("reduce", ["sum", "mul", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("more", [0, 4])
def test_joined_is_the_same_as_apart(reduce: str, include_self: bool, more: int) -> None:
    def function(*args: Any) -> Any:
        return messages(*args, reduce=reduce, include_self=include_self)

    check(function, 1, *(arguments(entries, more) for entries in (50, 3000, 1)))


def test_gradients_are_joined_and_the_same() -> None:
    target = inlay.to_tensor(RNG.random((PLACES, WIDTH), np.float32))

    def slope(x: Any, index: Any, table: Any, sources: Any) -> Any:
        table = leaf(table)
        error = messages(x, index, table, sources, reduce="mean") - target
        (gradient,) = inlay.grad((error * error).sum(), table)
        return gradient

    check(slope, 2, arguments(50), arguments(50, 3), arguments(7))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("first", [False, True])
def test_rows_that_are_padded_on_other_sides(axis: int, first: bool) -> None:
    """The second gradient of `concat` pads rows before, after, or on another axis."""
    others = RNG.random((50, 3) if axis == 1 else (50, WIDTH), np.float32)
    whole = RNG.random((50, WIDTH + 3) if axis == 1 else (100, WIDTH), np.float32)

    def padded(x: Any, index: Any, table: Any, sources: Any, others: Any, whole: Any) -> Any:
        rows, whole = leaf(inlay.index_select(table, sources)), leaf(whole)
        both = inlay.concat([others, rows] if first else [rows, others], axis)
        (part,) = inlay.grad(both, rows, whole, create_graph=True)
        (padding,) = inlay.grad(part, whole, inlay.index_select(table, sources))
        return inlay.scatter(x, index, padding, False)

    _, index, table, sources = arguments(50 if axis == 1 else 40)
    x = RNG.random((PLACES, WIDTH + 3 * axis), np.float32)
    sources = RNG.integers(-ROWS, ROWS, 50)
    traced = inlay.jit(padded)
    args = [inlay.to_tensor(value) for value in (x, index, table, sources, others, whole)]
    np.testing.assert_array_equal(traced(*args).numpy(), padded(*args).numpy())


def test_rows_that_are_written_before_they_are_scattered() -> None:
    def renew(x: Any, index: Any, table: Any, sources: Any) -> Any:
        table = table * 2
        rows = inlay.index_select(table, sources)
        table = inlay.index_fill(table, [0, 3], 0, 7.0)
        return inlay.scatter(x, index, rows, False), table

    assert "in place" in check(renew, 0, arguments()).explain()


def test_selected_rows_that_others_read_stay() -> None:
    def twice(x: Any, index: Any, table: Any, sources: Any) -> Any:
        rows = inlay.index_select(table, sources)
        return inlay.scatter(x, index, rows, False), rows

    check(twice, 0, arguments())


def test_along_different_axes_is_not_joined() -> None:
    def across(x: Any, index: Any, table: Any, sources: Any) -> Any:
        return inlay.scatter(x, index, inlay.index_select(table, sources, 1), False)

    check(across, 0, (*arguments(ROWS)[:3], np.arange(WIDTH)[::-1].copy()))


def test_rows_of_the_tensor_that_is_written() -> None:
    def shift(x: Any, index: Any, sources: Any) -> Any:
        x = x * 2
        return messages(x, index, x, sources, reduce="sum", include_self=True)

    check(shift, 1, (*arguments(40)[:2], RNG.integers(0, PLACES, 40)))


def test_errors_are_those_of_each_line() -> None:
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None, None], "float32")
        index = static.data("index", [None], "int64")
        table = static.data("table", [None, None], "float32")
        sources = static.data("sources", [None], "int64")
        rows = inlay.index_select(table, sources, name="read")
        y = inlay.scatter(x, index, rows, False, name="add")
    names = ("x", "index", "table", "sources")
    feed = dict(zip(names, arguments(), strict=True))
    run = static.Executor().run
    far = np.where(np.arange(50) == 20, ROWS, 0)
    with pytest.raises(IndexError, match=r"index_select: index\[20\] is 9.*'read', test_static_m"):
        run(program, {**feed, "sources": far}, [y])
    far = np.where(np.arange(50) == 30, -PLACES - 1, 0)
    with pytest.raises(IndexError, match=r"scatter: index\[30\] is -7.*'add', test_static_m"):
        run(program, {**feed, "index": far}, [y])
    with pytest.raises(ValueError, match=r"scatter: updates.*'add', test_static_m"):
        run(program, {**feed, "sources": np.zeros(49, int)}, [y])
    wanted = messages(*(inlay.to_tensor(value) for value in feed.values()))
    np.testing.assert_array_equal(run(program, feed, [y])[0], wanted.numpy())
