"""Calls on Paddle tensors from several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import paddle
import pytest

import inlay

from .support import to_paddle


def together(work: Any, count: int = 4) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(work, k) for k in range(count)]]


def test_threads_have_their_own_graphs() -> None:
    index = np.array([0, 2, 2])

    def work(k: int) -> bool:
        for step in range(40):
            x = to_paddle(np.full((4, 3), 1.0 + k), True)
            u = to_paddle(np.full((3, 3), 2.0 + step), True)
            y = inlay.scatter(x, index, u, overwrite=False, reduce="mul", include_self=True)
            y.sum().backward()
            assert x.grad[2].tolist() == [(2.0 + step) ** 2] * 3
            assert u.grad[1].tolist() == [(1.0 + k) * (2.0 + step)] * 3
        return True

    assert together(work) == [True] * 4


def test_one_tensor_is_read_by_many_threads() -> None:
    x = paddle.arange(200_000, dtype="float32").reshape([400, 500])
    index = np.arange(400)[::-1].copy()
    expected = x.numpy()[::-1]

    def work(k: int) -> bool:
        return all(
            bool((inlay.index_select(x, index).numpy() == expected).all()) for _ in range(20)
        )

    assert together(work) == [True] * 4


def test_threads_write_into_their_own_tensors() -> None:
    def work(k: int) -> tuple[int, float]:
        x = paddle.zeros([1000, 100])
        for _ in range(20):
            inlay.index_add_(x, [k, k + 1], 0, paddle.ones([2, 100]))
        return x.inplace_version, float(x.sum())

    assert together(work) == [(20, 4000.0)] * 4


def test_no_grad_is_per_thread() -> None:
    """The switch of one thread does not reach another one."""
    x = to_paddle(np.ones(3), True)

    def work(k: int) -> bool:
        found = []
        for _ in range(50):
            if k % 2:
                with paddle.no_grad():
                    found.append(inlay.add(x, 1).stop_gradient)
            else:
                found.append(not inlay.add(x, 1).stop_gradient)
        return all(found)

    if not own_switch_is_per_thread():
        pytest.skip("Paddle's own switch is shared by all threads")
    assert together(work) == [True] * 4


def own_switch_is_per_thread() -> bool:
    with paddle.no_grad(), ThreadPoolExecutor(1) as pool:
        return bool(pool.submit(paddle.is_grad_enabled).result())
