"""Results of traced functions: their structure, and symbolic tensors that must not escape."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import inlay


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Open:
    values: Any
    count: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        self.double = self.values * 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    values: Any
    name: str = "frozen"


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    values: Any


def recorded(x: list[float]) -> inlay.Tensor:
    return inlay.to_tensor(x, dtype="float64", stop_gradient=False)


@pytest.mark.parametrize("make", [np.array, recorded], ids=["traced", "recorded"])
def test_results_keep_their_types(make: Any) -> None:
    @inlay.jit
    def function(x: Any) -> Any:
        return [
            Open(x),
            Frozen(x + 1),
            Slotted(x + 2),
            Pair(x + 3, None),
            {"a": (x + 4,), 2: [x + 5]},
            OrderedDict(a=x + 6),
            defaultdict(list, a=x + 7),
            slice(1, 2),
            Fraction(1, 2),
            np.float32,
        ]

    for _ in range(2):
        got = function(make([1.0]))
        kinds = [Open, Frozen, Slotted, Pair, dict, OrderedDict, defaultdict, slice, Fraction, type]
        assert [type(part) for part in got] == kinds
        assert got[0].values.tolist() == [1.0]
        assert got[0].double.tolist() == [2.0]
        assert got[0].count == 0
        assert got[1].values.tolist() == [2.0]
        assert got[1].name == "frozen"
        assert got[2].values.tolist() == [3.0]
        assert got[3].left.tolist() == [4.0]
        assert got[3].right is None
        assert got[4]["a"][0].tolist() == [5.0]
        assert got[4][2][0].tolist() == [6.0]
        assert got[5]["a"].tolist() == [7.0]
        assert got[6]["a"].tolist() == [8.0]
        assert got[6].default_factory is list
        assert type(got[0].values) is (np.ndarray if make is np.array else inlay.Tensor)


def test_results_are_made_anew_for_each_call() -> None:
    function = inlay.jit(lambda x: {"x": x, "names": ["a"]})
    function(np.ones(1))["names"].append("b")
    assert function(np.ones(1))["names"] == ["a"]


class Holder:
    def __init__(self, x: Any) -> None:
        self.x = x


def rows(x: Any) -> Iterator[Any]:
    yield x


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (rows, "the result is a generator"),
        (lambda x: [1, map(str, [x])], r"the result\[1\] is a map"),
        (lambda x: {"a": Holder(x)}, r"the result\['a'\] is a .*Holder"),
        (lambda x: Holder(1), "the result is a .*Holder"),
        (lambda x: Frozen(lambda: x), "the result.values is a function"),
        (lambda x: x.sum, "the result is a builtin_function_or_method"),
        (lambda x: {x}, "the result is a set"),
    ],
)
@pytest.mark.parametrize("make", [np.array, recorded], ids=["traced", "recorded"])
def test_results_that_would_hide_tensors_are_refused_by_name(
    result: Any, text: str, make: Any
) -> None:
    function = inlay.jit(lambda x: result(x))
    with pytest.raises(TypeError, match=f"jit: {text}: return tensors, constants"):
        function(make([1.0]))


def test_a_symbolic_tensor_can_not_be_used_after_its_trace() -> None:
    leaked = []

    @inlay.jit
    def function(x: Any) -> Any:
        leaked.append(x)
        return x * 2

    function(np.ones(2))
    for use in [lambda x: x + 1, lambda x: x.sum(), lambda x: function(x), lambda x: x[0]]:
        with pytest.raises(ValueError, match="symbolic tensor of a traced function that has ret"):
            use(leaked[0])
    with pytest.raises(RuntimeError, match="the tensor is symbolic"):
        leaked[0].numpy()
    with pytest.raises(ValueError, match="different programs"):
        inlay.jit(lambda y: y + leaked[0])(np.ones(2))
    assert function(np.ones(2)).tolist() == [2.0, 2.0]


def test_arrays_that_a_function_makes_are_returned_as_the_arguments_are() -> None:
    function = inlay.jit(lambda x: (x, np.arange(2)))
    assert isinstance(function(np.ones(1))[1], np.ndarray)
    assert isinstance(function(inlay.ones([1]))[1], inlay.Tensor)
    assert isinstance(function(recorded([1.0]))[1], inlay.Tensor)
