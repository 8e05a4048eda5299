"""Hooks that refer to their own tensors: the garbage collector finds these cycles."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradcheck import grad_list, leaf

import inlay


class Token:
    """An object whose end can be observed."""


def of_leaf(token: Token) -> None:
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: (x, token))  # type: ignore[arg-type, return-value]


def of_computed(token: Token) -> None:
    y = leaf([1.0, 2.0]) * 2
    y.register_hook(lambda g: (y, token))  # type: ignore[arg-type, return-value]


def of_result(token: Token) -> None:
    # The hook of the leaf is kept alive by the graph of the result, which the hook refers to.
    held: list[Any] = [token]
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: held)  # type: ignore[arg-type, return-value]
    held.append(x + 1)


def of_method(token: Token) -> None:
    class Model:
        def __init__(self) -> None:
            self.token = token
            self.weight = leaf([1.0, 2.0])
            self.handle = self.weight.register_hook(self.scale)

        def scale(self, grad: inlay.Tensor) -> inlay.Tensor:
            return grad * 2

    model = Model()
    (model.weight * 3).sum().backward()
    assert grad_list(model.weight) == [6.0, 6.0]


def of_two(token: Token) -> None:
    x, y = leaf([1.0]), leaf([2.0])
    x.register_hook(lambda g: (y, token))  # type: ignore[arg-type, return-value]
    y.register_hook(lambda g: (x, token))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("make", [of_leaf, of_computed, of_result, of_method, of_two])
def test_a_cycle_is_collected(make: Callable[[Token], None]) -> None:
    token = Token()
    gone = weakref.ref(token)
    make(token)
    del token
    gc.collect()
    assert gone() is None


def test_a_hook_that_the_graph_needs_is_kept() -> None:
    seen: list[Any] = []

    def loss(x: inlay.Tensor) -> inlay.Tensor:
        y = x * 2
        y.register_hook(lambda g: seen.append((y.shape, g.tolist())))
        return y.sum()

    x = leaf([1.0, 2.0])
    z = loss(x)
    for _ in range(3):
        gc.collect()
    z.backward()
    assert seen == [([2], [1.0, 1.0])]


def test_a_tensor_that_is_in_use_keeps_its_hooks() -> None:
    seen: list[Any] = []
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: seen.append(x))
    gc.collect()
    x.sum().backward()
    assert len(seen) == 1
    assert seen[0] is x


def test_a_removed_hook_is_let_go() -> None:
    x, token = leaf([1.0]), Token()
    gone = weakref.ref(token)
    handle = x.register_hook(lambda g, token=token: None)  # type: ignore[misc]
    del token
    handle.remove()
    assert gone() is None


def test_collections_while_threads_work() -> None:
    """A thread without the GIL changes reference counts while another one collects."""
    stop = threading.Event()
    failed: list[BaseException] = []
    x = leaf(np.ones(200_000))
    seen: list[float] = []
    x.register_hook(lambda g: seen.append(float(g[0])) or x)  # type: ignore[func-returns-value]

    def work() -> None:
        try:
            while not stop.is_set():
                (x * 2).sum()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
    (x * 2).sum().backward()
    assert seen == [2.0]


def test_many_cycles_leave_no_memory_behind() -> None:
    script = """
import gc, resource, inlay
def cycle():
    x = inlay.to_tensor([1.0], stop_gradient=False)
    x.register_hook(lambda g: x)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2_000):
    cycle()
gc.collect()
before = peak()
for _ in range(50_000):
    cycle()
grown = peak() - before
unit = 1 if __import__("sys").platform == "darwin" else 1024
assert grown * unit < 16 << 20, grown
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
