"""PyTorch's names for gradients: `requires_grad`, `requires_grad_`, `retain_grads`."""

from __future__ import annotations

import pytest

import inlay


def leaf() -> inlay.Tensor:
    return inlay.to_tensor([1.0, 2.0], stop_gradient=False)


def test_requires_grad_is_the_opposite_of_stop_gradient() -> None:
    x = inlay.to_tensor([1.0, 2.0])
    assert not x.requires_grad
    x.requires_grad = True
    assert not x.stop_gradient
    y = x * 2
    assert y.requires_grad
    assert not y.detach().requires_grad
    x.stop_gradient = True
    assert not x.requires_grad
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad
    x.requires_grad_(requires_grad=True)
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_only_floats_require_a_gradient() -> None:
    x = inlay.to_tensor([1, 2])
    for require in (x.requires_grad_, lambda: setattr(x, "requires_grad", True)):
        with pytest.raises(inlay.InlayTypeError, match="float or complex"):
            require()
    x.requires_grad = False
    with pytest.raises(TypeError, match="bool"):
        x.requires_grad_("yes")


@pytest.mark.parametrize("name", ["retain_grads", "retain_grad"])
def test_a_computed_tensor_retains_its_gradient(name: str) -> None:
    x = leaf()
    y = x * x
    z = y * 3
    getattr(y, name)()
    loss = (z * z).sum()
    loss.backward(retain_graph=True)
    assert y.grad.tolist() == [18, 72]
    assert z.grad is None
    assert x.grad.tolist() == [36, 288]
    loss.backward()
    assert y.grad.tolist() == [36, 144]
    y.clear_grad()
    assert y.grad is None


def test_a_retained_gradient_is_that_after_hooks() -> None:
    x = leaf()
    y = x * 2
    y.retain_grads()
    y.register_hook(lambda grad: grad * 10)
    y.sum().backward()
    assert y.grad.tolist() == [10, 10]
    assert x.grad.tolist() == [20, 20]


def test_an_in_place_write_moves_the_retained_gradient() -> None:
    x = leaf()
    y = x * 2
    y.retain_grads()
    y[0] = 5.0
    (y * y).sum().backward()
    assert y.grad.tolist() == [10, 8]
    assert x.grad.tolist() == [0, 16]


def test_a_leaf_retains_its_gradient_anyway() -> None:
    x = leaf()
    x.retain_grads()
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]
    with pytest.raises(inlay.InlayValueError, match=r"retain_grads: .*stop_gradient"):
        inlay.to_tensor([1.0]).retain_grads()


def test_grad_fills_no_retained_gradient() -> None:
    x = leaf()
    y = x * x
    y.retain_grads()
    inlay.grad(y.sum(), x)
    assert y.grad is None


def test_flags_of_backward_are_read_as_other_flags() -> None:
    x = leaf()
    loss = (x * x).sum()
    loss.backward(retain_graph=1)
    loss.backward(None, True)
    loss.backward(retain_graph=0)
    assert x.grad.tolist() == [6, 12]
    with pytest.raises(inlay.InlayTypeError, match="backward: retain_graph is a str, expected"):
        loss.backward(retain_graph="yes")
