"""Copies, pickles and gradients: what `copy`, `deepcopy` and pickle do with `stop_gradient`."""

from __future__ import annotations

import copy
import pickle

import pytest

import inlay

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def leaf() -> inlay.Tensor:
    return inlay.to_tensor([1.0, 2.0], stop_gradient=False)


@pytest.mark.parametrize("stop", [True, False])
def test_the_copy_of_a_leaf_is_a_leaf_of_its_own(stop: bool) -> None:
    tensor = inlay.to_tensor([1.0, 2.0], stop_gradient=stop)
    pickled = [pickle.loads(pickle.dumps(tensor, protocol)) for protocol in PROTOCOLS]
    for copied in (copy.copy(tensor), copy.deepcopy(tensor), *pickled):
        assert copied.stop_gradient is stop
        assert copied.is_leaf
        if not stop:
            (copied * copied).sum().backward()
            assert copied.grad.tolist() == [2, 4]
            assert tensor.grad is None


def test_clone_and_copy_are_recorded() -> None:
    for way in (inlay.Tensor.clone, inlay.Tensor.copy):
        x = leaf()
        y = way(x)
        assert not y.is_leaf
        (y * y).sum().backward()
        assert x.grad.tolist() == [2, 4]


def test_the_copy_of_a_computed_tensor_shares_its_history() -> None:
    x = leaf()
    y = copy.copy(x * 2)
    assert not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_deep_copy_has_the_gradient_and_not_the_history() -> None:
    x = leaf()
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    assert copied.grad.tolist() == [2, 4]
    x.clear_grad()
    assert copied.grad.tolist() == [2, 4]
    assert copy.copy(x).grad is None
    with pytest.raises(inlay.InlayRuntimeError, match=r"deepcopy: .*detach\(\).*clone\(\)"):
        copy.deepcopy(x * 2)
    assert copy.deepcopy((x * 2).detach()).stop_gradient


def test_a_deep_copy_keeps_what_is_shared() -> None:
    x = leaf()
    first, second = copy.deepcopy([x, {"same": x}])
    assert first is second["same"]
    assert first is not x
    memo: dict[int, object] = {}
    assert x.__deepcopy__(memo) is x.__deepcopy__(memo) is memo[id(x)]


def test_a_computed_tensor_is_pickled_without_its_history() -> None:
    x = leaf()
    y = pickle.loads(pickle.dumps(x * 2))
    assert y.is_leaf
    assert not y.stop_gradient
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]
    assert x.grad is None


def test_pickles_of_older_versions_are_loaded() -> None:
    rebuild, parts = inlay.to_tensor([1.0, 2.0]).__reduce__()
    assert len(parts) == 3
    assert rebuild(*parts).stop_gradient
    assert rebuild(*parts, False).requires_grad
    old = (
        b"\x80\x04cinlay._inlay\n_rebuild\n(C\x08\x00\x00\x80?\x00\x00\x00@"
        b"\x8c\x07float32K\x02\x85tR."
    )
    tensor = pickle.loads(old)
    assert tensor.tolist() == [1, 2]
    assert tensor.stop_gradient


def test_a_damaged_pickle_does_not_make_integers_differentiable() -> None:
    rebuild, parts = inlay.to_tensor([1, 2]).__reduce__()
    with pytest.raises(inlay.InlayTypeError, match="float or complex"):
        rebuild(*parts, False)
