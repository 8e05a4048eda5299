"""Operators and `in` with objects that are no tensors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import inlay

FOREIGN = [None, "a", b"a", object(), {}, {1.0}, ..., int, print]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
ORDER = [operator.lt, operator.le, operator.gt, operator.ge]
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv]


@pytest.mark.parametrize("other", FOREIGN, ids=repr)
def test_a_tensor_does_not_equal_another_kind_of_object(other: Any) -> None:
    for tensor in (inlay.to_tensor([1.0, 2.0]), inlay.to_tensor(1)):
        assert (tensor == other) is False
        assert (other == tensor) is False
        assert (tensor != other) is True
        assert (other != tensor) is True
        assert tensor.__eq__(other) is NotImplemented
        assert tensor in [other, tensor]
        assert other not in [tensor]


@pytest.mark.parametrize("other", FOREIGN, ids=repr)
def test_operators_refuse_other_objects_as_python_does(other: Any) -> None:
    tensor = inlay.to_tensor([1.0, 2.0])
    for apply in (*ARITHMETIC, *IN_PLACE, *ORDER):
        for x, y in ((tensor, other), (other, tensor)):
            with pytest.raises(TypeError):
                apply(x, y)
    assert tensor.tolist() == [1, 2]


class Other:
    """A class whose reflected operators take anything."""

    def __radd__(self, other: Any) -> str:
        return f"radd {type(other).__name__}"

    def __rtruediv__(self, other: Any) -> str:
        return f"rtruediv {type(other).__name__}"

    def __eq__(self, other: object) -> Any:
        return "eq"

    def __gt__(self, other: Any) -> str:
        return "gt"

    __hash__ = None


def test_the_other_class_is_asked() -> None:
    tensor = inlay.to_tensor([1.0, 2.0])
    assert tensor + Other() == "radd Tensor"
    assert tensor / Other() == "rtruediv Tensor"
    assert (tensor == Other()) == "eq"
    assert (tensor < Other()) == "gt"
    target = tensor
    target += Other()
    assert target == "radd Tensor"


class Foreign:
    """An array of another library: it has an array protocol, but no operators for tensors."""

    def __dlpack__(self) -> Any:
        raise RuntimeError("on another device")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_arrays_of_other_libraries_are_converted_or_refused_by_name() -> None:
    tensor = inlay.to_tensor([1.0, 2.0])
    for apply in (*ARITHMETIC, *ORDER, operator.eq, operator.ne):
        with pytest.raises(inlay.InlayError, match=r"y is (a .*Foreign|on CUDA)"):
            apply(tensor, Foreign())


def test_an_element_is_found_as_in_numpy() -> None:
    for array in (
        np.array([[1.5, -0.0], [np.nan, 2.0]]),
        np.array([1, 2, 300]),
        np.array([1, 255], "uint8"),
        np.array([True, True]),
        np.array([1 + 2j]),
        np.array(2.0),
        np.zeros((0, 3)),
    ):
        tensor = inlay.to_tensor(array)
        for value in (2.0, 2, 300, -1, 0, True, False, 1.5, 1 + 2j, float("nan"), np.float32(1.5)):
            assert (value in tensor) == (value in array), value
    rows = inlay.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert [9.0, 4.0] in rows
    assert inlay.to_tensor([3.0, 0.0]) in rows
    assert [9.0, 9.0] not in rows
    assert 2.0 in inlay.to_tensor([1, 2], dtype="bfloat16")
    for other in FOREIGN:
        assert other not in rows
