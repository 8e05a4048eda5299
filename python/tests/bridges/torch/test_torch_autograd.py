"""What torch's autograd promises: hooks, retained graphs, version counters, leaves, checkpoints."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from indexed_writes import WRITES
from torch.utils.checkpoint import checkpoint

import inlay

INDEX = torch.tensor([1, 3, 1])


def samples() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.rand(4, 3, requires_grad=True), torch.rand(3, 3, requires_grad=True)


def product(x: Any, u: Any) -> Any:
    return inlay.scatter(x, INDEX, u, overwrite=False, reduce="mul", include_self=True)


def test_hooks_and_retained_gradients() -> None:
    x, u = samples()
    y = product(x, u)
    y.retain_grad()
    seen = []
    y.register_hook(lambda grad: seen.append(grad.clone()))
    x.register_hook(lambda grad: grad * 2)
    y.sum().backward()
    assert torch.equal(seen[0], torch.ones(4, 3))
    assert torch.equal(y.grad, torch.ones(4, 3))
    (plain,) = torch.autograd.grad(
        product(x.detach().requires_grad_(), u.detach()).sum(), x, allow_unused=True
    )
    assert plain is None
    again = x.detach().requires_grad_()
    product(again, u).sum().backward()
    torch.testing.assert_close(x.grad, 2 * again.grad)


def test_a_graph_is_freed_unless_it_is_retained() -> None:
    x, u = samples()
    y = product(x, u).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    torch.testing.assert_close(x.grad, 2 * first)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_a_saved_tensor_that_was_changed_is_an_error() -> None:
    x, u = samples()
    v = u * 1
    y = product(x, v)
    v.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_inlays_own_write_to_a_saved_tensor_is_an_error() -> None:
    x, u = samples()
    v = u * 1
    y = product(x, v)
    with torch.no_grad():
        inlay.index_fill_(v, torch.tensor([0]), 0, 0.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_tensor_whose_values_are_not_needed_may_change() -> None:
    x, u = samples()
    v = u * 1
    y = inlay.scatter(x, INDEX, v)
    v.add_(1)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([1.0, 0, 1, 0])[:, None].expand(4, 3))


def test_only_needed_tensors_are_kept() -> None:
    x, u = samples()
    v = u * 1
    y = inlay.scatter(x, INDEX, v, overwrite=False)
    gone = weakref.ref(v)
    del v
    gc.collect()
    assert gone() is None
    y.sum().backward()
    assert u.grad is not None


def test_saved_tensors_pass_through_hooks() -> None:
    x, u = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    index = torch.tensor([2, 0])
    packed: list[Any] = []

    def pack(tensor: Any) -> Any:
        packed.append(tensor)
        return tensor.tolist()

    with torch.autograd.graph.saved_tensors_hooks(pack, torch.tensor):
        y = inlay.scatter(x, index, u, overwrite=False, include_self=True)
    (got,) = torch.autograd.grad(y, u, torch.tensor([10.0, 20.0, 30.0]))
    assert (got.tolist(), len(packed)) == ([30.0, 10.0], 1)
    assert torch.equal(packed[0], index)


@pytest.mark.parametrize("made", ["expanded", "strided", "conjugated"])
def test_gradients_that_are_not_contiguous(made: str) -> None:
    dtype = torch.complex64 if made == "conjugated" else torch.float32
    x = torch.ones(2, 3, dtype=dtype, requires_grad=True)
    u = torch.ones(1, 3, dtype=dtype, requires_grad=True)
    upstream = {
        "expanded": lambda: torch.tensor(2.0).expand(2, 3),
        "strided": lambda: torch.arange(12.0).reshape(3, 4)[:, ::2].T,
        "conjugated": lambda: torch.complex(torch.rand(2, 3), torch.rand(2, 3)).conj(),
    }[made]()
    y = inlay.scatter(x, torch.tensor([1]), u, overwrite=False, include_self=True)
    got = torch.autograd.grad(y, (x, u), upstream)
    torch.testing.assert_close(got[0], upstream.resolve_conj())
    torch.testing.assert_close(got[1], upstream[1:].resolve_conj())


def test_a_gradient_of_another_shape_is_an_error() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    node = inlay.tril(x).grad_fn
    with pytest.raises(ValueError, match=r"^tril: grad has shape \[1, 3\], expected \[2, 3\]"):
        node.apply(torch.ones(1, 3))


def test_arguments_that_are_no_tensors_are_saved_for_the_gradient() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    for factor in (2.0, np.full((2, 3), 2.0, np.float32), inlay.full([2, 3], 2.0)):
        (got,) = torch.autograd.grad(inlay.multiply(factor, x), x, torch.ones(2, 3))
        assert got.tolist() == [[2.0] * 3] * 2
    index = np.array([1])
    y = inlay.index_select(x, index)
    index[0] = 0  # what was saved is a copy
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [[0.0] * 3, [1.0] * 3]


def test_a_later_write_to_a_saved_tensor_of_inlay_changes_no_gradient() -> None:
    x, factor = torch.ones(2, 3, requires_grad=True), inlay.full([2, 3], 2.0)
    y = inlay.multiply(factor, x)
    inlay.masked_fill_(factor, np.ones((2, 3), bool), 7.0)
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize("kind", [np.asarray, inlay.to_tensor])
@pytest.mark.parametrize("way", WRITES)
def test_a_later_write_to_an_index_changes_no_gradient(kind: Any, way: str) -> None:
    index = kind(np.array([0, 2]))
    x, updates = torch.zeros(4, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    y = WRITES[way](x, index, updates)
    index[0] = 3
    (got,) = torch.autograd.grad(y, updates, torch.arange(12.0).reshape(4, 3))
    assert got.tolist() == [[0, 1, 2], [6, 7, 8]]


def test_gradients_can_be_written() -> None:
    x = torch.rand(2, 3, requires_grad=True)
    (got,) = torch.autograd.grad(inlay.mean(x), x)
    assert got.is_contiguous()
    got.add_(torch.arange(6.0).reshape(2, 3))
    torch.testing.assert_close(got, torch.arange(6.0).reshape(2, 3) + 1 / 6)


def test_an_argument_that_can_be_read_once_is_read_once() -> None:
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = inlay.reshape(x, iter([3, 2]))
    assert torch.autograd.grad(y, x, torch.ones(3, 2))[0].tolist() == [[1.0] * 3] * 2
    assert torch.autograd.grad(inlay.sum(x, iter([0])).sum(), x)[0].tolist() == [[1.0] * 3] * 2


def test_the_tangent_of_a_gradient() -> None:
    from torch.autograd import forward_ad

    x = torch.ones(2, 2, requires_grad=True)
    y = inlay.tril(x)
    with forward_ad.dual_level():
        upstream = forward_ad.make_dual(torch.ones(2, 2), torch.full((2, 2), 5.0))
        (got,) = torch.autograd.grad(y, x, upstream)
        assert forward_ad.unpack_dual(got).tangent.tolist() == [[5.0, 0.0], [5.0, 5.0]]


def test_large_calls_are_recorded() -> None:
    x, u = torch.rand(300, 200, requires_grad=True), torch.rand(100, 200, requires_grad=True)
    index = torch.randperm(300)[:100]
    upstream = torch.rand(300, 200)
    y = inlay.scatter(x, index, u, overwrite=False, include_self=True)
    got = torch.autograd.grad(y, (x, u), upstream)
    torch.testing.assert_close(y, x.index_add(0, index, u))
    assert torch.equal(got[0], upstream)
    assert torch.equal(got[1], upstream[index])


def test_double_backward() -> None:
    x, u = samples()
    (gradient,) = torch.autograd.grad((product(x, u) ** 2).sum(), x, create_graph=True)
    gradient.sum().backward()
    assert u.grad is not None
    assert x.grad is not None


def test_only_one_input_needs_a_gradient() -> None:
    x, u = samples()
    product(x.detach(), u).sum().backward()
    assert x.grad is None
    assert u.grad is not None


def test_integers_have_no_gradient() -> None:
    x, _ = samples()
    assert not inlay.greater_than(x, 0.5).requires_grad
    assert not inlay.cast(x, "int64").requires_grad


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant: bool) -> None:
    x, u = samples()
    product(x, u).sin().sum().backward()
    expected, x.grad = x.grad, None
    checkpoint(lambda x: product(x, u).sin(), x, use_reentrant=reentrant).sum().backward()
    torch.testing.assert_close(x.grad, expected)


def test_a_leaf_can_be_written_only_without_gradient() -> None:
    x, u = samples()
    before = x.detach().clone()
    with pytest.raises(RuntimeError, match=r"scatter_: x is a leaf Variable that requires grad"):
        inlay.scatter_(x, INDEX, u)
    with pytest.raises(RuntimeError, match="view of a leaf Variable that requires grad"):
        inlay.scatter_(x[:, :2], INDEX, u[:, :2])
    assert torch.equal(x, before)
    with torch.no_grad():
        inlay.scatter_(x, INDEX, u)
        inlay.index_add_(x[:, :2], INDEX, 0, u[:, :2])
    assert x.is_leaf
    assert x.requires_grad
    assert x._version == 2


@pytest.mark.parametrize("made", ["no_grad", "unbind"])
def test_views_that_torch_does_not_let_write(made: str) -> None:
    x, u = samples()
    base = torch.stack([x, x])
    if made == "unbind":
        view = base.unbind()[0]
    else:
        with torch.no_grad():
            view = base[0]
    before = base.detach().clone()
    with pytest.raises(RuntimeError, match="does not permit to be modified in place"):
        inlay.scatter_(view, INDEX, u)
    assert torch.equal(base, before)


def test_a_target_that_overlaps_itself_is_an_error() -> None:
    target = torch.zeros(3).expand(4, 3)
    with pytest.raises(ValueError, match="scatter: x has elements that overlap"):
        inlay.scatter_(target, INDEX, torch.ones(3, 3))
    assert target._version == 0


def test_a_failed_write_changes_nothing() -> None:
    x, u = samples()
    for target in (torch.zeros(4, 3), torch.zeros(4, 3) * x.detach(), x * 1):
        before, version = target.detach().clone(), target._version
        with pytest.raises(IndexError, match="scatter"):
            inlay.scatter_(target, torch.tensor([0, 1, 9]), u)
        assert torch.equal(target, before)
        assert target._version == version


def test_a_source_that_overlaps_the_target() -> None:
    x = torch.arange(12.0).reshape(4, 3)
    expected = inlay.scatter(x.clone(), INDEX, x[:3].clone())
    inlay.scatter_(x, INDEX, x[:3])
    assert torch.equal(x, expected)


def test_inference_mode() -> None:
    x, u = samples()
    with torch.inference_mode():
        y = inlay.scatter(x, INDEX, u)
        assert y.is_inference()
        inlay.scatter_(y, INDEX, u)
    with pytest.raises(RuntimeError, match="inference tensor"):
        inlay.scatter_(y, INDEX, u)


def test_in_place_write_of_a_tensor_into_one_without_gradient() -> None:
    _, u = samples()
    target = torch.zeros(4, 3)
    result = inlay.scatter_(target, INDEX, u, overwrite=False, include_self=True)
    assert result is target
    assert target.requires_grad
    target.sum().backward()
    assert torch.equal(u.grad, torch.ones(3, 3))


def test_parameters_and_gradients_are_independent_tensors() -> None:
    """A gradient is not a view of another tensor, because optimizers write into gradients."""
    x, y = (torch.nn.Parameter(torch.rand(3)) for _ in range(2))
    z = inlay.add(x, y)
    seed = torch.ones(3)
    z.backward(seed)
    x.grad.mul_(5)
    assert torch.equal(y.grad, torch.ones(3))
    assert torch.equal(seed, torch.ones(3))


def test_threads() -> None:
    results: list[Any] = [None] * 8

    def work(k: int) -> None:
        x = torch.full((100, 8), float(k), requires_grad=True)
        for _ in range(20):
            x.grad = None
            inlay.scatter(x, torch.arange(50), torch.zeros(50, 8)).sum().backward()
        results[k] = x.grad.sum().item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [400.0] * 8
