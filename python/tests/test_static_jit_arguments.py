"""Arguments of traced functions: arrays of any kind, containers, constants, keywords."""

from __future__ import annotations

import array
import dataclasses
import enum
import functools
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import inlay


def counted(function: Callable[..., Any]) -> tuple[Any, list[Any]]:
    """The function under `jit`, and a list that grows with each trace."""
    calls: list[Any] = []

    def traced(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return function(*args, **kwargs)

    return inlay.jit(traced), calls


class Wrapped:
    """An array of another library. It can be hashed, as PyTorch's can."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)


class WithArray(Wrapped):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)


class WithInterface(Wrapped):
    @property
    def __array_interface__(self) -> Any:
        return self.values.__array_interface__


class WithDLPack(Wrapped):
    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("kind", [WithArray, WithInterface, WithDLPack])
def test_arrays_of_other_libraries_are_no_constants(kind: Any) -> None:
    twice, calls = counted(lambda x: x * 2)
    x = kind([1.0, 2.0])
    assert twice(x).tolist() == [2.0, 4.0]
    x.values[0] = 7.0
    result = twice(x)
    assert result.tolist() == [14.0, 4.0]
    assert isinstance(result, np.ndarray)
    assert isinstance(twice(np.ones(2)), np.ndarray)
    assert len(calls) == 1


@pytest.mark.parametrize("kind", [bytearray, lambda x: memoryview(bytearray(x))])
def test_buffers_are_no_constants(kind: Any) -> None:
    twice = inlay.jit(lambda x: x + x)
    x = kind(b"\1\2")
    assert twice(x).tolist() == [2, 4]
    x[0] = 7
    assert twice(x).tolist() == [14, 4]
    assert twice(array.array("d", [1.5])).tolist() == [3.0]


def test_an_array_that_can_not_be_read_is_refused_with_the_reason() -> None:
    class OfGradients(Wrapped):
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise RuntimeError("use x.detach()")

    with pytest.raises(
        TypeError, match=r"x\[0\] is a .*OfGradients, which gives no array: use x.detach"
    ):
        inlay.jit(lambda x: x)([OfGradients([1.0])])


def test_byte_order_and_masks_are_as_in_eager_code() -> None:
    twice = inlay.jit(lambda x, n: x * n)
    for _ in range(2):
        assert twice(np.array([1.0, 2.0], ">f8"), 2.0).tolist() == [2.0, 4.0]
        assert inlay.jit(lambda x: x * 2)(np.array([1, 2], ">i2")).tolist() == [2, 4]
    with pytest.raises(TypeError, match="masked array"):
        twice(np.ma.masked_array([1.0], [True]), 2.0)
    with pytest.raises(TypeError, match="dtype object"):
        twice(np.array([None]), 2.0)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Settings:
    scale: Any
    weights: Any = None


@dataclasses.dataclass
class State:
    values: Any
    step: int = 0


def test_containers_of_tensors_are_taken_apart() -> None:
    def total(x: Any) -> Any:
        if isinstance(x, dict):
            return functools.reduce(lambda a, b: a + b, map(total, x.values()))
        if isinstance(x, list | tuple):
            return functools.reduce(lambda a, b: a + b, map(total, x))
        return x.sum()

    jitted, calls = counted(total)
    one, two = np.ones(2), np.full((2, 2), 2.0)
    for x in [[one, two], (one, two), Pair(one, two), {"a": one, "b": (two,)}, [[one], [[two]]]]:
        traces = len(calls)
        assert jitted(x) == 10.0
        assert len(calls) == traces + 1
        assert jitted(x) == 10.0
        assert len(calls) == traces + 1
    assert jitted(OrderedDict(a=one, b=two)) == 10.0
    assert jitted(defaultdict(list, a=one, b=two)) == 10.0
    assert isinstance(jitted([inlay.ones([2])]), inlay.Tensor)


def test_values_of_containers_are_not_constants() -> None:
    jitted, calls = counted(lambda x: x["w"] * x["layers"][0])
    w, first = np.ones(2), np.ones(2)
    for value in [1.0, 2.0]:
        w[:] = value
        assert jitted({"w": w, "layers": [first]}).tolist() == [value, value]
    assert len(calls) == 1


def test_the_order_of_a_dict_is_kept() -> None:
    jitted = inlay.jit(lambda x: list(x) + list(x.values()))
    one, two = np.ones(1), np.zeros(1)
    assert jitted({"a": one, "b": two}) == ["a", "b", 1.0, 0.0]
    assert jitted({"b": two, "a": one}) == ["b", "a", 0.0, 1.0]


def test_dataclasses_are_taken_apart() -> None:
    jitted, calls = counted(lambda cfg, x: x * cfg.scale + cfg.weights)
    x, w = np.ones(2), np.zeros(2)
    assert jitted(Settings(2.0, w), x).tolist() == [2.0, 2.0]
    w[:] = 1.0
    assert jitted(Settings(2.0, w), x).tolist() == [3.0, 3.0]
    assert len(calls) == 1
    assert jitted(Settings(3.0, w), x).tolist() == [4.0, 4.0]
    assert len(calls) == 2


def test_slices_and_none_are_constants() -> None:
    jitted, calls = counted(lambda x, at, more: x[at] if more is None else x[at] + more)
    x = np.arange(4.0)
    for _ in range(2):
        assert jitted(x, slice(1, 3), None).tolist() == [1.0, 2.0]
        assert jitted(x, slice(1, None), None).tolist() == [1.0, 2.0, 3.0]
        assert jitted(x, slice(1, 3), 1).tolist() == [2.0, 3.0]
        assert jitted(x, (slice(0, 1), None), None).tolist() == [[0.0]]
        assert jitted(x, ..., None).tolist() == x.tolist()
    assert len(calls) == 5


class Mode(enum.Enum):
    ADD = 1
    MUL = 2


class Level(enum.IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    "values",
    [
        [1, 1.0, True, np.float32(1), np.float64(1), np.int64(1), "1", b"1", 1 + 0j, Level.ONE],
        [0.0, -0.0, 0j, -0j, np.float64(0.0), np.float64(-0.0)],
        [(1,), (1.0,), [1], [1.0], Pair(1, 2), Pair(1.0, 2), (1, 2)],
        [Settings(1), Settings(1.0), Settings((1,)), Settings((True,)), State(1), State(1.0)],
        [{1: 2}, {1.0: 2}, {True: 2}, {1: 2.0}, OrderedDict({1: 2})],
        [{1}, {1.0}, frozenset([1]), frozenset([True]), frozenset([(1,)]), frozenset([(1.0,)])],
        [slice(1), slice(1.0), slice(True), range(1), range(0, 3, 2), range(0, 4, 2)],
        [Mode.ADD, Mode.MUL, float, int, abs, len, np.add, inlay.float32, np.dtype("f4")],
        [Decimal("1"), Decimal("1.0"), Fraction(1), Fraction(1, 2)],
        [functools.partial(abs), functools.partial(max, 1), functools.partial(max, 1.0)],
    ],
)
def test_constants_that_differ_have_traces_of_their_own(values: list[Any]) -> None:
    seen, calls = counted(lambda x, value: (x, repr(value)))
    for _ in range(2):
        for value in values:
            assert seen(np.ones(1), value)[1] == repr(value)
    assert len(calls) == len(values)


def test_equal_constants_share_a_trace() -> None:
    seen, calls = counted(lambda x, value: x)
    for make in [
        lambda: Settings((1, {"a": [2]})),
        lambda: {"a": Pair(1, {2, 3})},
        lambda: Mode(1),
    ]:
        before = len(calls)
        seen(np.ones(1), make())
        seen(np.ones(1), make())
        assert len(calls) == before + 1


def test_singletons_stay_themselves() -> None:
    class Missing:
        pass

    missing = Missing()
    jitted = inlay.jit(lambda x, value: x if value is missing else x * value)
    assert jitted(np.ones(1), missing).tolist() == [1.0]
    assert jitted(np.ones(1), 3.0).tolist() == [3.0]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (np.random.default_rng(0), "value is a numpy.random._generator.Generator"),
        ({"a": [threading.Lock()]}, r"value\['a'\]\[0\] is a _thread.lock"),
        (Settings(iter([1])), "value.scale is a list_iterator"),
        ((x for x in [1]), "value is a generator"),
        ({inlay.ones([1])}, "value is a set"),
    ],
)
def test_values_that_may_change_unseen_are_refused_by_name(value: Any, where: str) -> None:
    @inlay.jit
    def function(x: Any, value: Any) -> Any:
        return x

    with pytest.raises(TypeError, match=f"jit: {where}, whose changes can't be seen"):
        function(np.ones(1), value)


def test_a_list_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="jit: an argument contains itself"):
        inlay.jit(lambda x: x)(loop)


def test_arguments_by_name_and_by_position_share_a_trace() -> None:
    calls = []

    @inlay.jit
    def power(x: Any, n: int = 2, *, scale: float = 1.0) -> Any:
        calls.append(n)
        return functools.reduce(lambda a, b: a * b, [x] * n) * scale

    x = np.array([3.0])
    assert power(x, 2) == power(x, n=2) == power(x=x, n=2) == power(n=2, x=x) == 9.0
    assert len(calls) == 1
    assert power(x) == power(x=x) == 9.0
    assert len(calls) == 2
    assert power(x, scale=2.0) == power(scale=2.0, x=x) == 18.0
    assert len(calls) == 3
    with pytest.raises(TypeError, match="multiple values"):
        power(x, x=x)
    with pytest.raises(TypeError, match="unexpected keyword"):
        power(x, m=2)


def test_a_parameter_that_is_only_positional_is_not_passed_by_name() -> None:
    @inlay.jit
    def function(x: Any, /, **more: Any) -> Any:
        return x + more["x"]

    assert function(np.ones(1), x=2.0).tolist() == [3.0]
    with pytest.raises(TypeError, match="positional"):
        function(x=np.ones(1))


def test_only_functions_are_traced() -> None:
    with pytest.raises(TypeError, match="jit: function is a int, expected a function"):
        inlay.jit(5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="generator"):

        @inlay.jit
        def numbers(x: Any) -> Any:
            yield x


def test_changes_of_lists_and_dicts_stay_inside_of_the_function() -> None:
    @inlay.jit
    def function(items: Any, named: Any) -> Any:
        items.append(named.pop("x"))
        return items

    for x in [np.ones(1), inlay.ones([1]), inlay.ones([1]).detach()]:
        if isinstance(x, inlay.Tensor):
            x.stop_gradient = False
        items, named = [x], {"x": x, "n": 1}
        assert len(function(items, named)) == 2
        assert len(items) == 1
        assert list(named) == ["x", "n"]
