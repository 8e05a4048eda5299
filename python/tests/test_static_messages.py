"""Rows that a program selects only to scatter them: joined to one step, with the same results."""

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
    """How many steps the last plan has joined to others."""
    text = function.explain()
    return int(text.split(" joined to the next")[0].rsplit(" ", 1)[1])


@pytest.mark.parametrize("reduce", ["sum", "mul", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("more", [0, 4])
def test_joined_is_the_same_as_apart(reduce: str, include_self: bool, more: int) -> None:
    def function(*args: Any) -> Any:
        return messages(*args, reduce=reduce, include_self=include_self)

    traced = inlay.jit(function)
    for entries in (50, 3000, 1):
        args = [inlay.to_tensor(value) for value in arguments(entries, more)]
        np.testing.assert_array_equal(traced(*args).numpy(), function(*args).numpy())
    assert joined(traced) == 1


def test_gradients_are_joined_and_the_same() -> None:
    target = inlay.to_tensor(RNG.random((PLACES, WIDTH), np.float32))

    def slope(x: Any, index: Any, table: Any, sources: Any) -> Any:
        table = table.detach()
        table.stop_gradient = False
        error = messages(x, index, table, sources, reduce="mean") - target
        (gradient,) = inlay.grad((error * error).sum(), table)
        return gradient

    traced = inlay.jit(slope)
    for entries, more in ((50, 0), (50, 3), (7, 0)):
        args = [inlay.to_tensor(value) for value in arguments(entries, more)]
        np.testing.assert_array_equal(traced(*args).numpy(), slope(*args).numpy())
    assert joined(traced) == 2


def test_rows_that_are_padded_beside_are_not_joined() -> None:
    """The gradient of a penalty: selected rows, next to others that have no gradient."""
    edges = inlay.to_tensor(RNG.random((50, 3), np.float32))
    nothing = inlay.zeros([PLACES, WIDTH + 3])

    def penalty(table: Any, sources: Any, index: Any) -> Any:
        table = table.detach()
        table.stop_gradient = False
        rows = inlay.concat([inlay.index_select(table, sources), edges], 1)
        totals = inlay.scatter(nothing, index, rows, False)
        (slope,) = inlay.grad((totals * totals).sum(), table, create_graph=True)
        (again,) = inlay.grad((slope * slope).sum(), table)
        return again

    traced = inlay.jit(penalty)
    _, index, table, sources = arguments()
    args = [inlay.to_tensor(value) for value in (table, sources, index)]
    np.testing.assert_array_equal(traced(*args).numpy(), penalty(*args).numpy())


def test_rows_that_are_written_before_they_are_scattered() -> None:
    def renew(x: Any, index: Any, table: Any, sources: Any) -> Any:
        table = table * 2
        rows = inlay.index_select(table, sources)
        table = inlay.index_fill(table, [0, 3], 0, 7.0)
        return inlay.scatter(x, index, rows, False), table

    traced = inlay.jit(renew)
    args = [inlay.to_tensor(value) for value in arguments()]
    for found, wanted in zip(traced(*args), renew(*args), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    assert joined(traced) == 0
    assert "in place" in traced.explain()


def test_selected_rows_that_others_read_stay() -> None:
    def twice(x: Any, index: Any, table: Any, sources: Any) -> Any:
        rows = inlay.index_select(table, sources)
        return inlay.scatter(x, index, rows, False), rows

    traced = inlay.jit(twice)
    args = [inlay.to_tensor(value) for value in arguments()]
    for found, wanted in zip(traced(*args), twice(*args), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    assert joined(traced) == 0


def test_along_different_axes_is_not_joined() -> None:
    def across(x: Any, index: Any, table: Any, sources: Any) -> Any:
        return inlay.scatter(x, index, inlay.index_select(table, sources, 1), False)

    traced = inlay.jit(across)
    x, index, table, _ = arguments(ROWS)
    args = [inlay.to_tensor(value) for value in (x, index, table, np.arange(WIDTH)[::-1].copy())]
    np.testing.assert_array_equal(traced(*args).numpy(), across(*args).numpy())
    assert joined(traced) == 0


def test_rows_of_the_tensor_that_is_written() -> None:
    def shift(x: Any, index: Any, sources: Any) -> Any:
        x = x * 2
        return messages(x, index, x, sources, reduce="sum", include_self=True)

    traced = inlay.jit(shift)
    x, index, _, _ = arguments(40)
    sources = RNG.integers(0, PLACES, 40)
    args = [inlay.to_tensor(value) for value in (x, index, sources)]
    np.testing.assert_array_equal(traced(*args).numpy(), shift(*args).numpy())
    assert joined(traced) == 1


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
