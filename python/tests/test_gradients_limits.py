"""Gradients with deep graphs, their memory, and threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest
from gradcheck import Function, grad_list, leaf

import inlay

DEPTH = 100_000
STEPS: dict[str, Function] = {
    "add": lambda y: y + 1.0,
    "multiply": lambda y: y * 1.0,  # saves its inputs
    "view": lambda y: y[...],
    "amax": lambda y: y.amax(0, keepdim=True),  # saves its result
    "in place": lambda y: y.index_add_([0], 0, np.ones(1)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_deep_graphs_need_no_deep_stack(step: Function) -> None:
    found = []

    def run() -> None:
        x = leaf([1.0])
        y = x * 1.0
        for _ in range(DEPTH):
            y = step(y)
        y.backward(retain_graph=True)
        found.append(grad_list(x))
        (g,) = inlay.grad(y, x, create_graph=True)
        found.append(g.tolist())
        del g
        del y
        gc.collect()
        found.append("dropped")

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [[1.0], [1.0], "dropped"]


def test_memory_is_back_after_many_steps() -> None:
    def train(steps: int) -> None:
        rng = np.random.default_rng(0)
        index = inlay.to_tensor(rng.integers(0, 20, 60))
        w, b = leaf(rng.standard_normal((20, 8))), leaf(np.zeros(8))
        for k in range(steps):
            rows = w.index_select(index) * w.index_select(index) + b
            h = inlay.scatter(w, index, rows, overwrite=False, reduce="mean", include_self=True)
            m = inlay.scatter(w, index, rows * 0.1, overwrite=False, reduce="mul")
            h[:2] = m[:2]
            h = h.masked_fill(h.numpy() > 3, 0.0)
            loss = (h * h).mean() + (m * 1e-3).amax()
            handle = h.register_hook(lambda g: g * 1.0)
            if k % 10 == 0:
                (g,) = inlay.grad(loss, w, create_graph=True)
                loss = loss + (g * g).sum()
            if k % 7 != 3:  # some graphs are dropped without a backward
                loss.backward(retain_graph=k % 5 == 0)
            if k % 3 == 0:
                handle.remove()
            if w.grad is not None and b.grad is not None:
                with inlay.no_grad():
                    w[...] = w - w.grad * 1e-3
                    b[...] = b - b.grad * 1e-3
            w.clear_grad()
            b.clear_grad()

    train(3)
    gc.collect()
    before = inlay.memory_stats()["in_use"]
    train(1000)
    gc.collect()
    assert inlay.memory_stats()["in_use"] == before


def test_errors_leave_no_memory_behind() -> None:
    def fail() -> None:
        x = leaf(np.ones(1000))
        h = x * x
        y = (h * h).sum()
        h[0] = 5.0
        with pytest.raises(RuntimeError):
            y.backward()
        y = (x * x).sum()
        x.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.backward()

    fail()
    gc.collect()
    before = inlay.memory_stats()["in_use"]
    for _ in range(100):
        fail()
    gc.collect()
    assert inlay.memory_stats()["in_use"] == before


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    barrier, errors = threading.Barrier(count), []

    def run(k: int) -> None:
        try:
            barrier.wait()
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_threads_with_graphs_of_their_own() -> None:
    def work(k: int) -> None:
        rng = np.random.default_rng(k)
        index = rng.integers(0, 50, 200)
        for _ in range(30):
            x, u = leaf(rng.standard_normal((50, 40))), leaf(rng.standard_normal((200, 40)))
            seed = rng.standard_normal((50, 40))
            y = inlay.scatter(x, index, u, overwrite=False, include_self=True)
            (y * y).backward(seed)
            np.testing.assert_allclose(x.grad.numpy(), 2 * y.numpy() * seed)
            np.testing.assert_allclose(u.grad.numpy(), (2 * y.numpy() * seed)[index])

    in_threads(work)


def test_threads_that_share_a_leaf() -> None:
    # Each of 4 threads adds a gradient of k + 1 25 times: 25 (1 + 2 + 3 + 4) = 250.
    x = leaf(np.zeros(200_000))

    def work(k: int) -> None:
        for _ in range(25):
            (x * float(k + 1)).sum().backward()

    in_threads(work)
    np.testing.assert_array_equal(x.grad.numpy(), np.full(200_000, 250.0))


def test_threads_that_share_a_graph() -> None:
    x = leaf(np.full(10_000, 2.0))
    y = (x * x * x).sum()

    def work(k: int) -> None:
        for _ in range(25):
            (g,) = inlay.grad(y, x, retain_graph=True)
            np.testing.assert_array_equal(g.numpy(), np.full(10_000, 12.0))

    in_threads(work)


def test_threads_with_hooks() -> None:
    x, seen = leaf(np.ones(1000)), []
    x.register_hook(lambda g: seen.append(g.numpy()[0]))
    y = (x * 3).sum()

    def work(k: int) -> None:
        for _ in range(25):
            inlay.grad(y, x, retain_graph=True)

    in_threads(work)
    assert seen == [3.0] * 100
