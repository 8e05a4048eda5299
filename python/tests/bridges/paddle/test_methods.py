"""`inlay.paddle.install` and `uninstall`: methods of `paddle.Tensor`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle
import pytest
from cases import OPERATIONS

import inlay
import inlay.paddle

from .support import to_paddle

CLASSES = (paddle.Tensor, paddle.pir.Value)
BEFORE = [dict(owner.__dict__) for owner in CLASSES]
X = np.arange(12.0, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def installed() -> Iterator[None]:
    inlay.paddle.install()
    yield
    inlay.paddle.uninstall()
    assert [dict(owner.__dict__) for owner in CLASSES] == BEFORE


def names() -> list[str]:
    methods = [operation for operation in OPERATIONS.values() if operation.is_method]
    return [name for o in methods for name in (o.name, o.twin) if name is not None]


LACKING = [name for name in names() if name not in BEFORE[0]]


def test_what_paddle_lacks() -> None:
    """A new version of Paddle may have more."""
    assert sorted(LACKING) == [
        "diagonal_scatter_",
        "full_like",
        "index_copy",
        "index_copy_",
        "index_get",
        "ones_like",
        "select_scatter_",
        "slice_scatter_",
        "zeros_like",
    ]


def test_nothing_is_installed_by_default() -> None:
    assert not any(hasattr(paddle.Tensor, name) for name in LACKING)


@pytest.mark.usefixtures("installed")
def test_every_operation_is_a_method() -> None:
    for name in names():
        for owner in CLASSES:
            assert hasattr(owner, name)
    own = [name for name in names() if name not in LACKING and name not in ("scatter", "scatter_")]
    for name in own:
        assert paddle.Tensor.__dict__[name] is BEFORE[0][name]


@pytest.mark.usefixtures("installed")
def test_methods_call_the_operations() -> None:
    x = to_paddle(X)
    assert x.zeros_like().tolist() == np.zeros((3, 4)).tolist()
    assert x.full_like(2, dtype="int32").dtype == paddle.int32
    assert x.index_get([[2, 0]]).tolist() == X[[2, 0]].tolist()
    copied = x.index_copy(index=[1], axis=0, value=np.zeros((1, 4), np.float32))
    assert copied[1].tolist() == [0] * 4
    assert x.slice_scatter_(np.zeros((3, 2), np.float32), axis=1, start=0, stop=2) is x
    assert x.inplace_version == 1
    assert x.tolist() == (X * [0, 0, 1, 1]).tolist()
    assert x.diagonal_scatter_(np.ones(3, np.float32))[1, 1] == 1
    assert x.select_scatter_(np.zeros(4, np.float32), 0, 2)[2].tolist() == [0] * 4


@pytest.mark.usefixtures("installed")
def test_methods_have_gradients() -> None:
    x = to_paddle(X, True)
    x.index_copy([1], 0, np.zeros((1, 4), np.float32)).sum().backward()
    assert x.grad.tolist() == [[1] * 4, [0] * 4, [1] * 4]


@pytest.mark.usefixtures("installed")
def test_methods_have_the_documentation_of_the_operations() -> None:
    assert paddle.Tensor.slice_scatter_.__name__ == "slice_scatter_"
    assert paddle.Tensor.index_copy.__doc__ == inlay.index_copy.__doc__


INDEX, ROWS = paddle.to_tensor([2, 0]), paddle.ones([2, 4]) * 7
COLUMNS = paddle.ones([3, 2]) * 7
ALONG = paddle.to_tensor([[0, 1, 2, 0]])


@pytest.mark.parametrize(
    ("args", "keywords"),
    [
        ((INDEX, ROWS), {}),
        ((INDEX, ROWS, False), {}),
        ((INDEX, ROWS, True, None), {}),
        ((INDEX, ROWS, False, "label"), {}),
        ((INDEX,), {"updates": ROWS, "overwrite": False}),
        ((), {"index": INDEX, "updates": ROWS, "name": None}),
        ((0, ALONG, ROWS[:1]), {}),
        ((0,), {"index": ALONG, "src": ROWS[:1], "reduce": "add"}),
        ((), {"dim": 0, "index": ALONG, "src": ROWS[:1]}),
        ((), {"dim": 0, "index": ALONG, "value": 5.0}),
    ],
)
@pytest.mark.parametrize("name", ["scatter", "scatter_"])
def test_calls_of_paddles_own_scatter_go_there(name: str, args: Any, keywords: Any) -> None:
    expected = BEFORE[0][name](to_paddle(X), *args, **keywords)
    inlay.paddle.install()
    try:
        result = getattr(to_paddle(X), name)(*args, **keywords)
    finally:
        inlay.paddle.uninstall()
    assert result.tolist() == expected.tolist()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("args", "keywords"),
    [
        ((INDEX, COLUMNS), {"axis": 1}),
        ((INDEX, COLUMNS, True, 1), {}),
        ((INDEX, COLUMNS), {"dim": -1}),
        ((INDEX, ROWS, False), {"reduce": "mul"}),
        ((INDEX, ROWS, False, 0, "amax"), {"include_self": True}),
        ((), {"index": INDEX, "updates": COLUMNS, "dim": 1}),
    ],
)
def test_scatter_takes_more_arguments(args: Any, keywords: Any) -> None:
    def plain(value: Any) -> Any:
        return value.numpy() if isinstance(value, paddle.Tensor) else value

    named = {name: plain(value) for name, value in keywords.items()}
    expected = inlay.scatter(X, *map(plain, args), **named)
    x = to_paddle(X)
    assert x.scatter(*args, **keywords).tolist() == expected.tolist()
    assert x.tolist() == X.tolist()
    assert x.scatter_(*args, **keywords) is x
    assert x.tolist() == expected.tolist()


def test_installing_twice_is_installing_once() -> None:
    inlay.paddle.install()
    inlay.paddle.install()
    inlay.paddle.uninstall()
    assert [dict(owner.__dict__) for owner in CLASSES] == BEFORE
    inlay.paddle.uninstall()
    assert [dict(owner.__dict__) for owner in CLASSES] == BEFORE


def test_methods_that_someone_replaced_are_left_alone() -> None:
    def own(self: Any) -> str:
        return "own"

    inlay.paddle.install()
    paddle.Tensor.index_copy = own
    inlay.paddle.uninstall()
    assert paddle.Tensor.index_copy is own
    del paddle.Tensor.index_copy
    assert [dict(owner.__dict__) for owner in CLASSES] == BEFORE


SCRIPT = """
import warnings; warnings.simplefilter("ignore")
import paddle, inlay.paddle
inlay.paddle.install()

@paddle.jit.to_static(full_graph=True)
def step(x, u):
    y = x.index_copy(paddle.to_tensor([1]), 0, u)
    return y.scatter(paddle.to_tensor([0]), u, axis=0, overwrite=False, include_self=True).sum()

x, u = paddle.ones([3, 2]), paddle.ones([1, 2])
x.stop_gradient = u.stop_gradient = False
loss = step(x, u)
loss.backward()
print(float(loss), x.grad.tolist(), u.grad.tolist())
"""


def test_methods_work_in_static_graphs(tmp_path) -> None:
    script = tmp_path / "methods.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "8.0 [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]] [[2.0, 2.0]]"
