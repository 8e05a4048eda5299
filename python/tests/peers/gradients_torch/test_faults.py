"""Cases in which PyTorch is wrong, with the results of both."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from gradcheck import grad_list, hessian, leaf
from gradient_pairs import Function

import inlay

from .pairs import at, ignores_beta

pytestmark = ignores_beta

nan = math.nan

REDUCERS = {
    "scatter_reduce": lambda x, index, u, reduce, include_self: x.scatter_reduce(
        0, at(index), u, reduce, include_self=include_self
    ),
    "index_reduce": lambda x, index, u, reduce, include_self: x.index_reduce(
        0, at(index), u, reduce, include_self=include_self
    ),
}
each_reducer = pytest.mark.parametrize("peer", REDUCERS.values(), ids=REDUCERS.keys())


def torch_leaf(values: Any, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def scatter(x: Any, index: Any, u: Any, reduce: str, include_self: bool) -> Any:
    return inlay.scatter(x, index, u, overwrite=False, reduce=reduce, include_self=include_self)


@each_reducer
@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_ties_without_self(peer: Function, reduce: str) -> None:
    # Two updates tie, and self, which is also 3, is not included: 1/2 + 1/2. PyTorch counts self as
    # a third tie but gives it no gradient, so a third of the gradient is lost.
    x, u = torch_leaf([3.0]), torch_leaf([3.0, 3.0])
    peer(x, [0, 0], u, reduce, False).backward()
    assert (x.grad.tolist(), u.grad.tolist()) == ([0.0], [1 / 3, 1 / 3])

    x, u = leaf([3.0]), leaf([3.0, 3.0])
    scatter(x, [0, 0], u, reduce, False).backward()
    assert (grad_list(x), grad_list(u)) == ([0.0], [0.5, 0.5])


@each_reducer
@pytest.mark.parametrize("include_self", [True, False])
def test_products_that_underflow_on_the_way(peer: Function, include_self: bool) -> None:
    # d/du0 = 1e-25 * 1e20 = 1e-5. PyTorch divides the product, which is 0 in float32, by u0.
    values = [1e-25, 1e-25, 1e20]
    x, u = torch_leaf([1.0], torch.float32), torch_leaf(values, torch.float32)
    peer(x, [0, 0, 0], u, "prod", include_self).backward()
    assert u.grad.tolist() == [0.0, 0.0, 0.0]

    x, u = leaf([1.0], "float32"), leaf(values, "float32")
    scatter(x, [0, 0, 0], u, "mul", include_self).backward()
    np.testing.assert_allclose(grad_list(u), [1e-5, 1e-5, 0.0], rtol=1e-6)


@each_reducer
def test_products_that_overflow_on_the_way(peer: Function) -> None:
    # d/du0 = 1e30 * 1e-30 * 1e-30 = 1e-30, d/du2 = 1e30. PyTorch computes inf / u0 and inf / u2.
    values = [1e30, 1e30, 1e-30, 1e-30]
    x, u = torch_leaf([1.0], torch.float32), torch_leaf(values, torch.float32)
    peer(x, [0] * 4, u, "prod", False).backward()
    assert u.grad.tolist() == [math.inf] * 4

    u = leaf(values, "float32")
    scatter(np.ones(1, np.float32), [0] * 4, u, "mul", False).backward()
    np.testing.assert_allclose(grad_list(u), [1e-30, 1e-30, 1e30, 1e30], rtol=1e-6)


def test_whole_products_that_underflow_on_the_way() -> None:
    values = [1e-25, 1e-25, 1e20, 1.0]
    u = torch_leaf(values, torch.float32)
    u.prod().backward()
    assert u.grad.tolist() == [0.0] * 4

    u = leaf(values, "float32")
    u.prod().backward()
    np.testing.assert_allclose(grad_list(u), [1e-5, 1e-5, 0.0, 1e-30], rtol=1e-6)


@each_reducer
@pytest.mark.parametrize("include_self", [True, False])
def test_double_backward_with_two_zeros(peer: Function, include_self: bool) -> None:
    # d2(abc)/(da db) = c = 5 at a = b = 0 (times self, 1). PyTorch raises an error.
    values = [0.0, 0.0, 5.0]
    x, u = torch_leaf([1.0]), torch_leaf(values)
    (g,) = torch.autograd.grad(peer(x, [0, 0, 0], u, "prod", include_self), u, create_graph=True)
    with pytest.raises(RuntimeError, match="Double backward is unsupported"):
        torch.autograd.grad(g.sum(), u)

    x, u = inlay.to_tensor(np.ones(1)), leaf(values)
    y = scatter(x, [0, 0, 0], u, "mul", include_self)
    assert hessian(y, [u]) == [[0, 5, 0], [5, 0, 0], [0, 0, 0]]


@each_reducer
def test_nan_in_one_slot_of_a_maximum(peer: Function) -> None:
    # The result at place 0 is the NaN of u0, and u1 = 1 does not contribute. PyTorch divides 0 by 0
    # there, because NaN equals nothing. The result at place 1 is u2 = 2.
    x, u = torch_leaf([0.0, 0.0]), torch_leaf([nan, 1.0, 2.0])
    peer(x, [0, 0, 1], u, "amax", False).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [nan, nan, 1.0])

    u = leaf([nan, 1.0, 2.0])
    scatter(np.zeros(2), [0, 0, 1], u, "amax", False).sum().backward()
    assert grad_list(u) == [1.0, 0.0, 1.0]


@each_reducer
def test_nan_as_a_factor(peer: Function) -> None:
    # d(ab)/da = b = 2, even if a is NaN. PyTorch divides NaN by NaN.
    x, u = torch_leaf([1.0]), torch_leaf([nan, 2.0])
    peer(x, [0, 0], u, "prod", False).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [nan, nan])

    u = leaf([nan, 2.0])
    scatter(np.ones(1), [0, 0], u, "mul", False).sum().backward()
    np.testing.assert_array_equal(u.grad.numpy(), [2.0, nan])


def written(x: torch.Tensor, index: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    y = x * 1.0
    y[index] = u
    return y


OVERWRITES: dict[str, tuple[Function, Function]] = {
    "scatter": (
        lambda x, i, u: x.scatter(0, i, u),
        lambda x, i, u: inlay.put_along_axis(x, i, u, 0),
    ),
    "index_copy": (lambda x, i, u: x.index_copy(0, i, u), inlay.scatter),
    "index_put": (
        lambda x, i, u: x.index_put((i,), u),
        lambda x, i, u: inlay.index_put(x, [i], u),
    ),
    "setitem": (written, lambda x, i, u: inlay.index_put(x, [i], u)),
}


@pytest.mark.parametrize(("peer", "ours"), OVERWRITES.values(), ids=OVERWRITES.keys())
def test_duplicates_that_overwrite(peer: Function, ours: Function) -> None:
    # Entries 0, 1 and 3 write place 2, which keeps the last. The others are not in the result.
    # PyTorch gives all three the full gradient.
    index, seed = [2, 2, 0, 2], np.array([10.0, 20.0, 30.0])
    x, u = torch_leaf([0.0] * 3), torch_leaf([1.0, 2.0, 3.0, 4.0])
    y = peer(x, torch.tensor(index), u)
    y.backward(torch.tensor(seed))
    assert y.tolist() == [3.0, 0.0, 4.0]
    assert (x.grad.tolist(), u.grad.tolist()) == ([0, 20, 0], [30, 30, 10, 30])

    x, u = leaf([0.0] * 3), leaf([1.0, 2.0, 3.0, 4.0])
    y = ours(x, index, u)
    y.backward(seed)
    assert y.tolist() == [3.0, 0.0, 4.0]
    assert (grad_list(x), grad_list(u)) == ([0, 20, 0], [0, 0, 10, 30])


def put(x: Any, index: Any, u: Any, reduce: str) -> Any:
    return inlay.put_along_axis(x, index, u, 0, reduce, include_self=False, broadcast=False)


def test_updates_longer_than_the_index() -> None:
    # The tail is never read, so its gradient is 0. PyTorch's scatter fails in backward, and its
    # product gives the unused updates a gradient.
    for peer in [
        lambda x, i, u: x.scatter(0, i, u),
        lambda x, i, u: x.scatter_reduce(0, i, u, "sum"),
        lambda x, i, u: x.scatter_reduce(0, i, u, "mean"),
    ]:
        x, u = torch_leaf([0.0, 0.0]), torch_leaf([1.0, 2.0, 3.0])
        y = peer(x, torch.tensor([1]), u)
        with pytest.raises(RuntimeError, match="invalid gradient"):
            y.sum().backward()
    x, u = torch_leaf([0.0, 0.0]), torch_leaf([1.0, 2.0, 3.0])
    x.scatter_reduce(0, torch.tensor([1]), u, "prod", include_self=False).sum().backward()
    assert u.grad.tolist() == [1.0, 1 / 2, 1 / 3]

    for reduce in ["assign", "sum", "mean", "mul", "amax"]:
        u = leaf([1.0, 2.0, 3.0])
        put(np.zeros(2), [1], u, reduce).sum().backward()
        assert grad_list(u) == [1.0, 0.0, 0.0]
        u = leaf([1.0, 2.0, 3.0])
        options = {"overwrite": True}
        if reduce != "assign":
            options = {"overwrite": False, "reduce": reduce}
        inlay.scatter(np.zeros(2), [1], u, **options).sum().backward()
        assert grad_list(u) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("dtype", "stuck"), [(torch.float16, 2048.0), (torch.bfloat16, 256.0)], ids=["f16", "bf16"]
)
def test_short_gradients_of_many(dtype: torch.dtype, stuck: float) -> None:
    # 4096 contributions of 1. PyTorch adds in 16 bits, where 2048 + 1 = 2048 and 256 + 1 = 256.
    count = 4096
    zeros = torch.zeros(count, dtype=torch.long)
    for peer in [lambda x: x.index_select(0, zeros), lambda x: x[zeros]]:
        x = torch_leaf([1.0, 1.0], dtype)
        peer(x).sum().backward()
        assert x.grad.tolist() == [stuck, 0.0]
    x = torch_leaf([1.0], dtype)
    y = x
    for _ in range(count - 1):
        y = y + x
    y.backward()
    assert x.grad.tolist() == [stuck]

    name = str(dtype).removeprefix("torch.")
    for ours in [
        lambda x: x.index_select(np.zeros(count, int)),
        lambda x: x[inlay.to_tensor(np.zeros(count, int))],
    ]:
        x = inlay.to_tensor([1.0, 1.0], dtype=name)
        x.stop_gradient = False
        ours(x).sum().backward()
        assert grad_list(x) == [count, 0.0]
    x = inlay.to_tensor([1.0], dtype=name)
    x.stop_gradient = False
    y = x
    for _ in range(count - 1):
        y = y + x
    y.backward()
    assert grad_list(x) == [count]


def test_complex_products_that_are_scattered() -> None:
    # The gradient of Re(abc) at a is conj(bc). PyTorch has no such gradient.
    values = [1 + 2j, 3 - 4j, 1j]
    x, u = torch.ones(1, dtype=torch.complex128), torch_leaf(values, torch.complex128)
    with pytest.raises(NotImplementedError, match="complex"):
        x.scatter_reduce(0, torch.tensor([0, 0, 0]), u, "prod")

    u = leaf(values)
    scatter(np.ones(1, complex), [0, 0, 0], u, "mul", True).backward()
    a, b, c = values
    assert grad_list(u) == [(b * c).conjugate(), (a * c).conjugate(), (a * b).conjugate()]
    # PyTorch's `prod` of the same factors agrees.
    u = torch_leaf(values, torch.complex128)
    u.prod().real.backward()
    assert u.grad.resolve_conj().tolist() == [
        (b * c).conjugate(),
        (a * c).conjugate(),
        (a * b).conjugate(),
    ]


def test_complex_slices_and_selections() -> None:
    # The gradient is the seed at the written places. PyTorch has no such gradient.
    x, v = torch_leaf([0, 0, 0], torch.complex128), torch_leaf([1j], torch.complex128)
    with pytest.raises(NotImplementedError, match="complex"):
        torch.slice_scatter(x, v, 0, 1, 2)
    with pytest.raises(NotImplementedError, match="complex"):
        torch.select_scatter(x, v[0], 0, 1)

    seed = np.array([1 + 1j, 2 + 2j, 3 + 3j])
    for write in [
        lambda x, v: inlay.slice_scatter(x, v, 0, 1, 2),
        lambda x, v: inlay.select_scatter(x, v[0], 0, 1),
    ]:
        x, v = leaf([0j, 0j, 0j]), leaf([1j])
        write(x, v).backward(seed)
        assert (grad_list(x), grad_list(v)) == ([1 + 1j, 0, 3 + 3j], [2 + 2j])


def test_negative_indices_of_index_fill() -> None:
    # Places 0 and 2 take the value, so its gradient is 10 + 30. PyTorch accepts -1 in the forward
    # pass, and fails in the backward pass.
    x, v = torch_leaf([0.0] * 3), torch_leaf(5.0)
    y = x.index_fill(0, torch.tensor([0, -1]), v)
    assert y.tolist() == [5.0, 0.0, 5.0]
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        y.sum().backward()

    x, v = leaf([0.0] * 3), leaf(5.0)
    inlay.index_fill(x, [0, -1], 0, v).backward(np.array([10.0, 20.0, 30.0]))
    assert (grad_list(x), grad_list(v)) == ([0, 20, 0], 40.0)
