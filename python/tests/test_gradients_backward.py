"""`backward` and `grad`, tensors that stop gradients, and gradients of gradients."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import grad_list, leaf

import inlay


def test_gradients_stop_unless_they_are_wanted() -> None:
    x = inlay.to_tensor([1.0])
    assert x.stop_gradient
    assert x.is_leaf
    assert x.grad is None
    assert (x * 2).stop_gradient
    assert (x * 2).is_leaf
    for made in [inlay.zeros([2]), inlay.ones([2]), inlay.full([2], 1.0), inlay.arange(2.0)]:
        assert made.stop_gradient
    assert inlay.from_numpy(np.zeros(2)).stop_gradient
    x.stop_gradient = False
    y = x * 2
    assert not x.stop_gradient
    assert not y.stop_gradient
    assert x.is_leaf
    assert not y.is_leaf
    y.backward()
    assert grad_list(x) == [2.0]
    assert y.grad is None


def test_a_computed_tensor_can_be_cut_off() -> None:
    x = leaf([1.0])
    y = x * 2
    y.stop_gradient = True
    assert y.is_leaf
    assert (y * 3).stop_gradient
    y.stop_gradient = False
    (y * 3).backward()
    assert grad_list(y) == [3.0]
    assert x.grad is None


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64"])
def test_only_floats_and_complex_numbers_have_gradients(dtype: str) -> None:
    x = inlay.zeros([2], dtype=dtype)
    with pytest.raises(TypeError, match=f"stop_gradient.*{dtype}"):
        x.stop_gradient = False
    with pytest.raises(TypeError, match=dtype):
        inlay.to_tensor(np.zeros(2, dtype), stop_gradient=False)
    x.stop_gradient = True
    assert leaf([1.0]).cast(dtype).stop_gradient


def test_comparisons_have_no_gradient() -> None:
    x = leaf([1.0, 2.0])
    assert (x > 1).stop_gradient
    assert (x == x).stop_gradient


def test_backward_accumulates_until_it_is_cleared() -> None:
    x = leaf([1.0, 2.0])
    for k in range(1, 4):
        (x * 3).sum().backward()
        assert grad_list(x) == [3.0 * k, 3.0 * k]
    x.clear_grad()
    assert x.grad is None
    x.clear_grad()
    (x * 3).sum().backward()
    assert grad_list(x) == [3.0, 3.0]
    x.grad = None
    assert x.grad is None
    x.grad = inlay.to_tensor(np.array([5.0, 5.0]))
    (x * 3).sum().backward()
    assert grad_list(x) == [8.0, 8.0]
    with pytest.raises(ValueError, match="grad"):
        x.grad = inlay.zeros([3], dtype="float64")
    with pytest.raises(TypeError, match="grad"):
        x.grad = inlay.zeros([2], dtype="float32")


def test_a_collected_gradient_is_its_own_memory() -> None:
    x, seed = leaf([1.0, 2.0]), np.array([1.0, 1.0])
    (x + 0).backward(inlay.from_numpy(seed))
    seed[:] = 9
    assert grad_list(x) == [1.0, 1.0]
    y = leaf([1.0, 2.0])
    (x + y).sum().backward()
    y.grad[...] = 9.0
    assert grad_list(x) == [2.0, 2.0]


def test_gradients_need_no_gradients_themselves() -> None:
    x = leaf([1.0])
    (x * x).backward()
    assert x.grad.stop_gradient
    (g,) = inlay.grad(x * x, x)
    assert g.stop_gradient


def test_detach_shares_memory_but_no_history() -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    d = y.detach()
    assert d.stop_gradient
    assert d.is_leaf
    assert d.data_ptr() == y.data_ptr()
    (d * y).sum().backward()
    assert grad_list(x) == [4.0, 8.0]


def test_writing_to_what_was_detached_is_seen() -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y * y
    y.detach()[0] = 9.0
    with pytest.raises(RuntimeError, match="multiply"):
        z.sum().backward()


def test_a_second_backward_needs_retain_graph() -> None:
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert grad_list(x) == [6.0, 12.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        inlay.grad(y, x)
    assert grad_list(x) == [6.0, 12.0]


def test_a_freed_part_is_an_error_for_graphs_that_share_it() -> None:
    x = leaf([2.0])
    h = x * x
    (h * 2).backward()
    with pytest.raises(RuntimeError, match=r"multiply.*retain_graph"):
        (h * 3).backward()
    assert grad_list(x) == [8.0]


def test_backward_of_many_elements_needs_a_gradient() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="backward: grad"):
        (x * 2).backward()
    with pytest.raises(ValueError, match="grad"):
        inlay.grad(x * 2, x)
    with pytest.raises(ValueError, match="grad"):
        (x * 2).backward(np.ones(3))
    with pytest.raises(TypeError, match="grad"):
        (x * 2).backward(np.ones(2, np.float32))
    assert x.grad is None
    (x * 2).backward([1.0, 10.0])
    assert grad_list(x) == [2.0, 20.0]


def test_backward_needs_a_history() -> None:
    with pytest.raises(ValueError, match="stop_gradient"):
        inlay.to_tensor([1.0]).backward()
    with pytest.raises(ValueError, match="stop_gradient"):
        inlay.grad(inlay.to_tensor([1.0]), leaf([1.0]))


def test_backward_of_a_leaf_is_its_own() -> None:
    x = leaf([1.0])
    x.backward()
    assert grad_list(x) == [1.0]


def test_grad_leaves_the_leaves_alone() -> None:
    x, y = leaf([2.0]), leaf([3.0])
    z = x * x * y
    gx, gy = inlay.grad(z, [x, y], retain_graph=True)
    assert (gx.tolist(), gy.tolist()) == ([12.0], [4.0])
    assert x.grad is None
    assert y.grad is None
    # Computed tensors, several outputs, and the same input twice.
    h = x * 2
    outputs = [h * h, h * y]
    found = inlay.grad(outputs, [h, x, x], grad_outputs=[None, np.array([10.0])])
    assert [g.tolist() for g in found] == [[38.0], [76.0], [76.0]]
    h = x * 2
    (same,) = inlay.grad(h, h)
    assert same.tolist() == [1.0]


def test_grad_leaves_alone_what_is_below_its_inputs() -> None:
    """As in PyTorch, the gradient of h does not visit what h was computed from."""
    x = leaf([2.0])
    h = x * x
    (g,) = inlay.grad(h * 3, h)
    assert g.tolist() == [3.0]
    h.backward()
    assert grad_list(x) == [4.0]


def test_grad_of_an_input_and_of_what_is_made_of_it() -> None:
    # h = x * x, y = h * x: dy/dh = x, dy/dx = 3 x x.
    x = leaf([2.0])
    h = x * x
    gh, gx = inlay.grad(h * x, [h, x])
    assert (gh.tolist(), gx.tolist()) == ([2.0], [12.0])


def test_unused_inputs_are_an_error_unless_allowed() -> None:
    x, other = leaf([2.0]), leaf([1.0])
    y = x * x
    with pytest.raises(ValueError, match="allow_unused"):
        inlay.grad(y, [x, other], retain_graph=True)
    g, none = inlay.grad(y, [x, other], allow_unused=True, retain_graph=True)
    assert g.tolist() == [4.0]
    assert none is None
    with pytest.raises(ValueError, match="allow_unused"):
        inlay.grad(y, inlay.to_tensor([1.0]))


def test_create_graph_to_any_order() -> None:
    # x ** 5 at 2: 80, 160, 240, 240, 120, and then nothing depends on x.
    x = leaf(2.0)
    y = x * x * x * x * x
    found = []
    for _ in range(5):
        (y,) = inlay.grad(y, x, create_graph=True)
        found.append(y.item())
    assert found == [80.0, 160.0, 240.0, 240.0, 120.0]
    last = inlay.grad(y, x, allow_unused=True)[0] if not y.stop_gradient else None
    assert last is None or last.item() == 0


def test_a_gradient_penalty() -> None:
    # L = sum (dy/dx) ** 2 with y = sum x ** 3: (3 x x) ** 2, so dL/dx = 36 x ** 3.
    x = leaf([1.0, 2.0])
    (g,) = inlay.grad((x * x * x).sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert grad_list(x) == [36.0, 288.0]
