"""In-place calls on Paddle tensors: version counters, leaves, gradients, all or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest

import inlay

from .support import to_paddle

INDEX = np.array([2, 0])


def tensors(x_grad: bool, u_grad: bool) -> tuple[paddle.Tensor, paddle.Tensor]:
    x = to_paddle(np.arange(12.0).reshape(4, 3), x_grad)
    return x, to_paddle(np.arange(6.0).reshape(2, 3) + 20, u_grad)


def test_the_write_is_counted_for_all_views() -> None:
    x, u = tensors(False, False)
    row, flat, detached = x[0], x.reshape([12]), x.detach()
    assert inlay.scatter_(x, INDEX, u) is x
    assert [t.inplace_version for t in (x, row, flat, detached)] == [1, 1, 1, 1]
    assert row.tolist() == [23, 24, 25]
    inlay.masked_fill_(row, row > 0, 0.0)
    assert x.inplace_version == 2
    assert x[0].tolist() == [0, 0, 0]


def own_scatter(x: Any, u: Any) -> Any:
    return x.scatter_(paddle.to_tensor(INDEX), u)


def inlay_scatter(x: Any, u: Any) -> Any:
    return inlay.scatter_(x, INDEX, u)


@pytest.mark.parametrize(("x_grad", "u_grad"), [(True, True), (True, False), (False, True)])
def test_a_tensor_with_history_is_written_as_by_paddle(x_grad: bool, u_grad: bool) -> None:
    found = []
    for scatter in (own_scatter, inlay_scatter):
        leaf, u = tensors(x_grad, u_grad)
        x = leaf * 2
        assert scatter(x, u) is x
        (x * x).sum().backward()
        state = [x.stop_gradient, x.is_leaf, x.inplace_version, x.tolist()]
        found.append([*state, *(t.grad.tolist() if t.grad is not None else 0 for t in (leaf, u))])
    assert found[0] == found[1]


def test_a_leaf_without_gradient_becomes_part_of_the_graph() -> None:
    x, u = tensors(False, True)
    inlay.scatter_(x, INDEX, u, overwrite=False, reduce="mul", include_self=True)
    assert not x.stop_gradient
    x.sum().backward()
    assert u.grad.tolist() == [[6, 7, 8], [0, 1, 2]]


def test_a_strided_leaf_without_gradient_becomes_part_of_the_graph() -> None:
    base, u = paddle.zeros([3, 4]), to_paddle(np.ones((2, 3)), True).astype("float32")
    x = base.t()
    inlay.scatter_(x, INDEX, u)
    assert base.tolist() == [[1, 0, 1, 0]] * 3
    assert not x.stop_gradient
    (grad,) = paddle.grad([(x * x).sum()], [u])
    assert grad.tolist() == [[2, 2, 2]] * 2


@pytest.mark.parametrize("scatter", [own_scatter, inlay_scatter])
def test_a_leaf_that_requires_a_gradient_is_not_written(scatter: Callable[..., Any]) -> None:
    x, u = tensors(True, False)
    with pytest.raises(ValueError, match=r"[Ll]eaf"):
        scatter(x, u)
    if scatter is inlay_scatter:  # Paddle has written before it raises
        assert x.tolist() == np.arange(12.0).reshape(4, 3).tolist()
        assert x.inplace_version == 0
    version = x.inplace_version
    with paddle.no_grad():
        scatter(x, u)
    assert x[0].tolist() == [23, 24, 25]
    assert x.inplace_version == version + 1
    assert x.is_leaf
    assert not x.stop_gradient


def test_the_message_about_leaves() -> None:
    x, u = tensors(True, False)
    with pytest.raises(inlay.InlayValueError) as raised:
        inlay.scatter_(x, INDEX, u)
    assert str(raised.value) == (
        "scatter: x is a leaf that requires a gradient, so it can't be written in place; call "
        "inlay.scatter, or write inside of paddle.no_grad()"
    )


@pytest.mark.parametrize("x_grad", [True, False])
def test_nothing_is_written_if_the_call_fails(x_grad: bool) -> None:
    leaf, u = tensors(x_grad, True)
    x = leaf * 1
    before = x.tolist()
    with pytest.raises(IndexError, match=r"scatter: index\[1\] is 9"):
        inlay.scatter_(x, [0, 9], u)
    assert x.tolist() == before
    assert x.inplace_version == 0
    assert x.stop_gradient == (not x_grad)
    if x_grad:
        x.sum().backward()
        assert leaf.grad.tolist() == np.ones((4, 3)).tolist()


def test_values_that_the_gradient_needs_are_not_to_be_written() -> None:
    leaf, u = tensors(True, True)
    x = leaf * 1
    y = inlay.scatter(x, INDEX, u, overwrite=False, reduce="mul", include_self=True)
    inlay.masked_fill_(x, x > 3, 0.0)
    # Paddle wraps errors of a backward pass.
    with pytest.raises(OSError, match=r"scatter: a tensor that the gradient needs was written"):
        y.sum().backward()
    assert leaf.grad is None


def test_paddle_notices_writes_to_values_that_it_needs() -> None:
    leaf, u = tensors(True, False)
    x = leaf * 1
    y = x * x
    inlay.scatter_(x, INDEX, u)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


def test_values_that_the_gradient_does_not_need_may_be_written() -> None:
    leaf, u = tensors(True, True)
    x = leaf * 1
    y = inlay.scatter(x, INDEX, u)
    inlay.masked_fill_(x, x > 3, 0.0)
    y.sum().backward()
    assert leaf.grad.tolist() == [[0] * 3, [1] * 3, [0] * 3, [1] * 3]
    assert u.grad.tolist() == [[1] * 3] * 2


def test_two_writes_in_a_row() -> None:
    leaf, u = tensors(True, True)
    x = leaf * 1
    for _ in range(2):
        inlay.scatter_(x, [1, 1], u, overwrite=False, reduce="mul", include_self=True)
    x.sum().backward()
    expected = leaf.detach().clone()
    values = u.detach().numpy()
    product = values.prod(0)
    assert leaf.grad[1].tolist() == (product**2).tolist()
    ours = 2 * expected[1].numpy() * product * product / values
    np.testing.assert_allclose(u.grad.numpy(), ours)


def test_arguments_may_share_memory_with_the_target() -> None:
    x = paddle.arange(6, dtype="float32")
    inlay.slice_scatter_(x, x[0:4], start=2, stop=6)
    assert x.tolist() == [0, 1, 0, 1, 2, 3]


def test_expanded_tensors_are_not_written() -> None:
    """Several elements share one place in memory."""
    x = paddle.as_strided(paddle.zeros([3]), [2, 3], [0, 1])
    with pytest.raises(ValueError, match="overlap"):
        inlay.masked_fill_(x, paddle.ones([2, 3], dtype="bool"), 1.0)
    assert x.tolist() == [[0, 0, 0]] * 2


def test_parameters_train() -> None:
    layer = paddle.nn.Linear(3, 3)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
    losses = []
    for _ in range(5):
        y = layer(paddle.ones([4, 3]))
        inlay.scatter_(y, INDEX, np.zeros((2, 3), np.float32))
        loss = (y * y).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 2
