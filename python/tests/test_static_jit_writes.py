"""In-place writes in traced functions: they don't change arguments, whatever the arguments are."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import inlay


def recorded(values: Any) -> inlay.Tensor:
    return inlay.to_tensor(values, dtype="float64", stop_gradient=False)


def tensor(values: Any) -> inlay.Tensor:
    return inlay.to_tensor(values, dtype="float64")


KINDS = [
    pytest.param(np.array, id="array"),
    pytest.param(tensor, id="tensor"),
    pytest.param(recorded, id="leaf"),
    pytest.param(lambda values: recorded(values) * 1.0, id="computed"),
]


@pytest.mark.parametrize("weight", KINDS)
@pytest.mark.parametrize("make", KINDS)
def test_writes_do_not_change_arguments(make: Any, weight: Any) -> None:
    @inlay.jit
    def function(x: Any, w: Any) -> Any:
        x[0] = 7.0
        x.index_fill_([1], 0, 8.0)
        return x * w

    x, w = make([1.0, 1.0, 1.0]), weight([2.0, 2.0, 2.0])
    arrays = isinstance(x, np.ndarray) and isinstance(w, np.ndarray)
    for _ in range(2):
        result = function(x, w)
        assert result.tolist() == [14.0, 16.0, 2.0]
        assert x.tolist() == [1.0, 1.0, 1.0]
        assert type(result) is (np.ndarray if arrays else inlay.Tensor)


def test_gradients_flow_to_an_argument_that_is_written() -> None:
    @inlay.jit
    def function(x: Any, w: Any) -> Any:
        x[0] = 7.0
        return x * w

    x, w = recorded([1.0, 2.0]), recorded([3.0, 4.0])
    function(x, w).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0]
    assert w.grad.tolist() == [7.0, 2.0]


def test_only_arguments_that_are_written_are_copied() -> None:
    addresses = []

    @inlay.jit
    def function(x: Any, y: Any, w: Any) -> Any:
        addresses.append((x.data_ptr(), y.data_ptr()))
        y[0] = 0.0
        return (x + y) * w

    x, y, w = tensor([1.0]), tensor([2.0]), recorded([3.0])
    assert function(x, y, w).tolist() == [3.0]
    assert function(x, y, w).tolist() == [3.0]
    # The first call runs twice, because it finds the write.
    assert len(addresses) == 3
    assert all(address == x.data_ptr() for address, _ in addresses)
    assert [address == y.data_ptr() for _, address in addresses] == [True, False, False]


@pytest.mark.parametrize("make", [np.array, tensor])
def test_views_and_arrays_of_an_argument_are_protected(make: Any) -> None:
    @inlay.jit
    def function(x: Any, w: Any) -> Any:
        x[1:].index_fill_([0], 0, 8.0)
        x.numpy()[0] = 7.0
        return x * w

    x = make([1.0, 1.0, 1.0])
    assert function(x, recorded([1.0])).tolist() == [7.0, 8.0, 1.0]
    assert x.tolist() == [1.0, 1.0, 1.0]
    x[0] = 2.0
    assert x.tolist() == [2.0, 1.0, 1.0]


def test_an_error_that_the_function_handles_does_not_hide_a_write() -> None:
    @inlay.jit
    def function(x: Any, w: Any) -> Any:
        try:
            x[0] = 7.0
        except Exception:
            return w
        return x * w

    assert function(tensor([1.0]), recorded([2.0])).tolist() == [14.0]


def test_an_interrupt_is_not_hidden_by_a_write() -> None:
    @inlay.jit
    def function(x: Any, w: Any) -> Any:
        try:
            x[0] = 7.0
        finally:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        function(tensor([1.0]), recorded([2.0]))


def test_an_argument_that_is_given_twice_counts_as_two() -> None:
    @inlay.jit
    def function(x: Any, y: Any, w: Any) -> Any:
        x[0] = 7.0
        return (x - y) * w

    x = tensor([1.0])
    assert function(x, x, tensor([2.0])).tolist() == [12.0]
    assert function(x, x, recorded([2.0])).tolist() == [12.0]


def test_an_inner_function_does_not_write_for_the_outer_one() -> None:
    @inlay.jit
    def inner(x: Any) -> Any:
        x[0] = 7.0
        return x

    @inlay.jit
    def outer(x: Any, w: Any) -> Any:
        y = inner(x)
        y[1] = 8.0
        return x * w, y * w

    for w in [np.array([2.0, 2.0]), recorded([2.0, 2.0])]:
        x = tensor([1.0, 1.0])
        first, second = outer(x, w)
        assert first.tolist() == [2.0, 2.0]
        assert second.tolist() == [14.0, 16.0]
        assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("make", KINDS)
def test_results_share_no_memory(make: Any) -> None:
    function = inlay.jit(lambda x, w: (x, x.reshape([-1]), w, w))
    x = make([1.0, 1.0])
    results = function(x, recorded([1.0, 1.0]))
    with inlay.no_grad():
        results[0][0] = 5.0
        results[2][0] = 6.0
    assert x.tolist() == [1.0, 1.0]
    assert results[1].tolist() == [1.0, 1.0]
    assert results[3].tolist() == [1.0, 1.0]
    assert results[3].stop_gradient is False


def test_donated_arguments_may_still_be_written() -> None:
    @inlay.jit(donate=True)
    def inner(x: Any) -> Any:
        return inlay.index_fill(x, [0], 0, 7.0)

    @inlay.jit
    def outer(x: Any, w: Any) -> Any:
        return inner(x) * w

    x = tensor([1.0, 1.0])
    assert outer(x, recorded([1.0])).tolist() == [7.0, 1.0]
    assert x.tolist() == [1.0, 1.0]


class Layer:
    def __init__(self) -> None:
        self.cache = tensor([0.0, 0.0])
        self.weight = recorded([1.0, 2.0])

    @inlay.jit
    def forward(self, x: Any) -> Any:
        self.cache[0] = 7.0
        return (self.cache + x) * self.weight


def test_writes_to_attributes_of_self_do_not_change_them() -> None:
    layer = Layer()
    for _ in range(2):
        assert layer.forward(np.ones(2)).tolist() == [8.0, 2.0]
        with inlay.no_grad():
            assert layer.forward(np.ones(2)).tolist() == [8.0, 2.0]
    assert layer.cache.tolist() == [0.0, 0.0]
    gc.collect()
