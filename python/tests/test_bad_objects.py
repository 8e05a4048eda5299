"""Tests that wrong objects for every kind of argument give a clear error and never a crash."""

from __future__ import annotations

import collections
import decimal
import fractions
import threading
from typing import Any

import numpy as np
import pytest

import inlay


class RaisingArray:
    """Raises an exception for every attribute."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise self.error

    def __len__(self) -> int:
        raise self.error

    def __index__(self) -> int:
        raise self.error

    def __float__(self) -> float:
        raise self.error


class LyingArray:
    def __array__(self, *_: Any, **__: Any) -> Any:
        return "not an array"


class LyingClass:
    """Has array protocols that return wrong values."""

    @property
    def __class__(self) -> type:
        return np.ndarray


class LyingInterface:
    __array_interface__ = {"version": 3, "shape": (3,), "typestr": "<f8", "data": (8, False)}  # noqa: RUF012


class Everything:
    """Has every attribute. The value of each is the object itself."""

    def __getattr__(self, _: str) -> Everything:
        return self

    def __call__(self, *_: Any, **__: Any) -> Everything:
        return self


class EveryAttribute(type):
    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


class RaisingClass(metaclass=EveryAttribute):
    pass


class RaisingText:
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__


def recursive() -> list:
    items: list = []
    items.append(items)
    return items


def deep(levels: int) -> list:
    items: list = [1.0]
    for _ in range(levels):
        items = [items]
    return items


NOT_ARRAYS = {
    "None": None,
    "text": "1",
    "bytes": b"1",
    "dict": {0: 1},
    "set": {1},
    "object": object(),
    "type": int,
    "function": len,
    "module": np,
    "generator": (n for n in range(3)),
    "iterator": iter([1]),
    "ellipsis": ...,
    "slice": slice(3),
    "dtype": inlay.float32,
    "numpy dtype": np.dtype("f4"),
    "deque": collections.deque([1]),
    "decimal": decimal.Decimal(1),
    "fraction": fractions.Fraction(1),
    "lying class": LyingClass(),
    "lying interface": LyingInterface(),
    "everything": Everything(),
    "raising class": RaisingClass(),
    "raising text": RaisingText(),
    "capsule": inlay.to_tensor(1).__dlpack__(),
}

BAD_LISTS = {
    "ragged": [[1.0], [1.0, 2.0]],
    "recursive": recursive(),
    "deep": deep(200),
    "very deep": deep(100_000),
    "of text": ["a"],
    "of None": [None],
    "of objects": [object()],
    "of dicts": [{}],
    "of lying arrays": [LyingArray(), LyingArray()],
    "of everything": [Everything()],
    "of raising values": [RaisingArray(ValueError("mine"))],
    "of raising keys": [RaisingArray(KeyError("mine"))],
    "of raising memory": [[RaisingArray(RuntimeError("mine"))]],
    "of huge integers": [2**64],
    "of times": [np.datetime64("2020-01-01")],
}

X = np.zeros(3)
INDEX = np.array([0])
UPDATES = np.ones(1)


def calls(bad: Any) -> dict[str, Any]:
    """Calls with the bad object as each argument."""
    return {
        "x": lambda: inlay.scatter(bad, INDEX, UPDATES),
        "index": lambda: inlay.scatter(X, bad, UPDATES),
        "updates": lambda: inlay.scatter(X, INDEX, bad),
        "mask": lambda: inlay.masked_scatter(X, bad, UPDATES),
        "source": lambda: inlay.masked_scatter(X, X == 0, bad),
        "value": lambda: inlay.masked_fill(X, X == 0, bad),
        "data": lambda: inlay.to_tensor(bad),
    }


PLACES = list(calls(None))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", NOT_ARRAYS)
def test_what_is_no_array_is_named(kind, place) -> None:
    bad = NOT_ARRAYS[kind]
    with pytest.raises(inlay.InlayTypeError) as raised:
        calls(bad)[place]()
    text = str(raised.value)
    assert f": {place} is a " in text
    assert type(bad).__name__ in text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", BAD_LISTS)
def test_lists_that_are_no_arrays_are_refused(kind, place) -> None:
    with pytest.raises(inlay.InlayError) as raised:
        calls(BAD_LISTS[kind])[place]()
    assert isinstance(raised.value, TypeError | ValueError | RuntimeError)
    assert place in str(raised.value)


@pytest.mark.parametrize("place", PLACES)
def test_interrupts_pass_through(place) -> None:
    for error in (KeyboardInterrupt(), MemoryError(), SystemExit()):
        with pytest.raises(type(error)) as raised:
            calls([RaisingArray(error)])[place]()
        assert raised.value is error


def test_foreign_errors_stay_as_the_cause() -> None:
    error = ValueError("mine")
    with pytest.raises(inlay.InlayValueError, match="scatter: updates: mine") as raised:
        inlay.scatter(X, INDEX, [RaisingArray(error)])
    assert raised.value.__cause__ is error


class LyingCapsule:
    def __dlpack__(self, **_: Any) -> None: ...


LYING = {
    "array": (LyingArray(), "__array__ returned a str, expected an array"),
    "capsule": (LyingCapsule(), "__dlpack__ returned a NoneType, expected a capsule"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", LYING)
def test_protocols_that_return_something_else_are_refused(kind, place) -> None:
    bad, words = LYING[kind]
    for argument in (bad, [bad, bad], [[bad], [bad]]):
        with pytest.raises(inlay.InlayTypeError, match=f": {place}: {words}"):
            calls(argument)[place]()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([1.0, 2.0], "x is a list, expected a Tensor or a NumPy array"),
        (1.0, "x is a float"),
        (np.float64(1), "x is a numpy.float64"),
        (None, "x is a NoneType"),
        (LyingArray(), "x is a .*LyingArray, which may give a copy"),
        (LyingCapsule(), "x: __dlpack__ returned a NoneType"),
        (np.zeros(3, dtype=np.dtype("f8").newbyteorder()), "byte order"),
        (np.ma.masked_array(np.zeros(3), mask=[1, 0, 0]), "masked"),
        (np.broadcast_to(np.zeros(()), (3,)), "read-only"),
        (np.array(["a"] * 3), "<U1"),
    ],
    ids=repr,
)
def test_in_place_targets_are_what_can_be_written(bad, words) -> None:
    with pytest.raises(inlay.InlayError, match=words):
        inlay.scatter_(bad, INDEX, UPDATES)


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        ("bool", 1, TypeError),
        ("int32", 1.0, TypeError),
        ("int32", [1.5], TypeError),
        ("int32", 1j, TypeError),
        ("float32", 1j, TypeError),
        ("float32", [1j], TypeError),
        ("int8", 128, ValueError),
        ("int8", [0, -129], ValueError),
        ("uint8", -1, ValueError),
        ("uint8", [-1], ValueError),
        ("uint64", [2**63, 2**64], ValueError),
        ("uint64", -1, ValueError),
        ("int64", 2**63, ValueError),
        ("int64", [2**63], ValueError),
        ("float32", 10**400, ValueError),
        ("bool", True, None),
        ("int8", True, None),
        ("int8", [-128], None),
        ("int8", 127, None),
        ("uint64", 2**64 - 1, None),
        ("uint64", [2**64 - 1], None),
        ("float16", 1, None),
        ("float16", [1], None),
        ("float32", 2**70, None),
        ("complex64", 1, None),
        ("complex64", [1.5], None),
        ("complex64", 1j, None),
        ("bfloat16", [True], None),
        ("bfloat16", 1.5, None),
        ("int32", [], None),
    ],
    ids=repr,
)
def test_numbers_and_lists_take_the_dtype_that_they_meet(dtype, value, error) -> None:
    x = np.zeros(2, dtype=np.dtype(dtype))
    count = len(value) if isinstance(value, list) else 1
    mask = np.arange(2) < count
    if error is None:
        expected = x.copy()
        expected[mask] = value
        got = inlay.masked_scatter(x, mask, value)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, expected)
    else:
        with pytest.raises(inlay.InlayError) as raised:
            inlay.masked_scatter(x, mask, value)
        assert isinstance(raised.value, error)
        assert "masked_scatter: source" in str(raised.value)
        if not isinstance(value, list):
            with pytest.raises(inlay.InlayError, match="masked_fill: value"):
                inlay.masked_fill(x, mask, value)


def test_lists_are_read_as_the_argument_asks() -> None:
    assert inlay.scatter(X, [], np.zeros(0)).tolist() == [0, 0, 0]
    assert inlay.scatter(X, range(2), [1, 2]).tolist() == [1, 2, 0]
    assert inlay.scatter(X, (1,), (5,)).tolist() == [0, 5, 0]
    assert inlay.scatter([0, 0, 0], [0], [7]).tolist() == [7, 0, 0]
    assert inlay.scatter(X, 2, 4).tolist() == [0, 0, 4]
    assert inlay.masked_scatter(np.zeros(0), [], []).tolist() == []
    for index in ([True], [0.0], True, 1.5):
        with pytest.raises(inlay.InlayTypeError, match="scatter: index has dtype"):
            inlay.scatter(X, index, UPDATES)
    for mask in ([0, 1, 0], 1, 0.5):
        with pytest.raises(inlay.InlayTypeError, match="masked_scatter: mask has dtype"):
            inlay.masked_scatter(X, mask, UPDATES)


def test_one_tensor_makes_the_result_a_tensor() -> None:
    tensor = inlay.to_tensor
    assert type(inlay.scatter(X, INDEX, UPDATES)) is np.ndarray
    assert type(inlay.scatter([0.0], [0], [1.0])) is np.ndarray
    assert type(inlay.scatter(tensor(X), INDEX, UPDATES)) is inlay.Tensor
    assert type(inlay.scatter(X, tensor(INDEX), UPDATES)) is inlay.Tensor
    assert type(inlay.scatter(X, INDEX, tensor(UPDATES))) is inlay.Tensor


def test_in_place_functions_return_the_object_given() -> None:
    array, tensor = np.zeros(3), inlay.to_tensor(np.zeros(3))
    for target in (array, tensor):
        assert inlay.scatter_(target, INDEX, UPDATES) is target
    assert array.tolist() == tensor.tolist() == [1, 0, 0]
    # The same holds if another argument is a tensor.
    assert inlay.scatter_(array, inlay.to_tensor(INDEX), UPDATES) is array


def test_results_share_no_memory_with_the_arguments() -> None:
    x = np.zeros(3)
    result = inlay.scatter(x, np.zeros(0, dtype=int), np.zeros(0))
    assert not np.shares_memory(result, x)
    assert result.flags.writeable
    assert result.flags.c_contiguous


def test_an_index_that_another_thread_changes_is_never_followed_out_of_bounds() -> None:
    n = 1 << 16
    x, updates, index = np.zeros(n), np.ones(n), np.arange(n)
    stop = threading.Event()

    def disturb() -> None:
        while not stop.is_set():
            index[::7] = 2**62
            index[::7] = np.arange(0, n, 7)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for _ in range(200):
            try:
                result = inlay.scatter(x, index, updates)
            except inlay.InlayIndexError:
                continue
            assert set(np.unique(result)) <= {0.0, 1.0}
    finally:
        stop.set()
        thread.join()
