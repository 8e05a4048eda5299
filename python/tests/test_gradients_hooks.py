"""`no_grad`, and hooks that read and replace gradients."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from gradcheck import grad_list, leaf

import inlay


def test_no_grad_is_a_context_and_a_decorator() -> None:
    x = leaf([1.0])
    assert inlay.is_grad_enabled()
    with inlay.no_grad():
        assert not inlay.is_grad_enabled()
        assert (x * 2).stop_gradient
        with inlay.no_grad():
            assert (x * 2).stop_gradient
        assert not inlay.is_grad_enabled()
    assert inlay.is_grad_enabled()

    @inlay.no_grad()
    def double(x: Any, depth: int = 0) -> Any:
        """Twice."""
        if depth:
            return double(x, depth - 1)
        assert not inlay.is_grad_enabled()
        return x * 2

    assert double(x).stop_gradient
    assert double(x, 3).stop_gradient
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice."
    assert inlay.is_grad_enabled()
    assert not (x * 2).stop_gradient


def test_no_grad_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), inlay.no_grad():
        raise KeyError
    assert inlay.is_grad_enabled()

    @inlay.no_grad()
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert inlay.is_grad_enabled()
    guard = inlay.no_grad()
    with guard, guard:
        assert not inlay.is_grad_enabled()
    assert inlay.is_grad_enabled()


def test_no_grad_belongs_to_its_thread() -> None:
    seen = []
    with inlay.no_grad():
        thread = threading.Thread(target=lambda: seen.append(inlay.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_leaves_may_be_written_without_recording() -> None:
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    with inlay.no_grad():
        x[...] = x - x.grad * 0.5
    assert x.tolist() == [0.0, 0.0]
    assert not x.stop_gradient
    assert x.is_leaf


def test_hooks_of_leaves() -> None:
    x, seen = leaf([1.0, 2.0]), []
    watch = x.register_hook(lambda g: seen.append(g.tolist()))
    double = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert grad_list(x) == [6.0, 6.0]
    watch.remove()
    watch.remove()
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert grad_list(x) == [12.0, 12.0]
    double.remove()
    (x * 3).sum().backward()
    assert grad_list(x) == [15.0, 15.0]


def test_hooks_see_the_whole_gradient_once() -> None:
    # x is used twice, so the hook gets 2 + 3, not the two parts. The same holds for the hook of a
    # computed tensor.
    x, seen = leaf([1.0]), []
    h = x * 1.0
    x.register_hook(lambda g: seen.append(("x", g.tolist())))
    h.register_hook(lambda g: seen.append(("h", g.tolist())))
    (x * 2 + x * 3 + h * 4 + h * 5).backward()
    assert seen == [("h", [9.0]), ("x", [14.0])]


def test_hooks_of_computed_tensors_replace_the_gradient() -> None:
    x = leaf([1.0, 2.0])
    h = x * 3
    handle = h.register_hook(lambda g: g * 10)
    y = (h * h).sum()
    y.backward(retain_graph=True)
    assert grad_list(x) == [180.0, 360.0]
    (g,) = inlay.grad(y, h, retain_graph=True)
    assert g.tolist() == [60.0, 120.0]
    x.clear_grad()
    handle.remove()
    y.backward()
    assert grad_list(x) == [18.0, 36.0]


def test_hooks_that_fail() -> None:
    hooks = {
        "not a Tensor": lambda g: 3.0,
        "shape": lambda g: inlay.zeros([3], dtype="float64"),
        "float32": lambda g: g.cast("float32"),
    }
    for message, hook in hooks.items():
        x = leaf([1.0, 2.0])
        x.register_hook(hook)
        with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
            (x * 2).sum().backward()
        assert x.grad is None
        assert inlay.is_grad_enabled()
    with pytest.raises(ValueError, match="register_hook"):
        inlay.to_tensor([1.0]).register_hook(lambda g: None)
    with pytest.raises(TypeError, match="register_hook: hook is a int, expected a callable"):
        leaf([1.0]).register_hook(3)


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    "error", [OwnError("a", 1), KeyError("b"), KeyboardInterrupt(), SystemExit(3)]
)
def test_what_a_hook_raises_is_what_backward_raises(error: BaseException) -> None:
    def fail(_: inlay.Tensor) -> None:
        raise error

    for of in (lambda x: x, lambda x: x * 2):
        x = leaf([1.0, 2.0])
        y = of(x)
        y.register_hook(fail)
        for backward in (lambda y: y.sum().backward(), lambda y, x=x: inlay.grad(y.sum(), x)):
            with pytest.raises(type(error)) as raised:
                backward(y)
            assert raised.value is error
            assert [entry.name for entry in raised.traceback][-1] == "fail"
        assert x.grad is None
        assert inlay.is_grad_enabled()


def test_hooks_may_run_backward_themselves() -> None:
    x, other = leaf([1.0]), leaf([5.0])
    inner = other * 2
    x.register_hook(lambda g: inner.backward())
    (x * 2).backward()
    assert (grad_list(x), grad_list(other)) == ([2.0], [2.0])
