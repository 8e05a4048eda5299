"""Calls that are written for Paddle, by its own keywords, run unchanged and give its results."""

# ruff: noqa: C408 (calls are written as calls)

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import paddle
import pytest
from cases import OPERATIONS

import inlay

from .support import to_paddle

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
ROWS = X[:2] * 10 + 100
MASK = X % 3 == 0
INDEX = np.array([2, 0])
ALONG = np.array([[0, 1, 2, 0], [2, 2, 1, 1]])
Z = (X + 1j * X[::-1]).astype(np.complex64)

# For each operation that Paddle has, calls by its keywords. Arrays become tensors.
CALLS: dict[str, list[dict[str, Any]]] = {
    "add": [dict(x=X, y=X[0], name=None), dict(input=X, other=X[0])],
    "amax": [dict(x=X, axis=1, keepdim=True, name=None), dict(x=X, axis=[0, 1])],
    "amin": [dict(x=X, axis=-1, keepdim=False, name=None), dict(x=X)],
    "arange": [dict(start=0, end=5, step=2, dtype="int64", name=None), dict(end=3, start=1)],
    "broadcast_to": [dict(x=X, shape=[2, 3, 4], name=None), dict(input=X, size=[1, 3, 4])],
    "cast": [dict(x=X, dtype="int64"), dict(x=X, dtype=paddle.float64)],
    "concat": [dict(x=[X, ROWS], axis=0, name=None), dict(tensors=[X, X], dim=1)],
    "diagonal": [dict(x=X, offset=1, axis1=0, axis2=1, name=None)],
    "diagonal_scatter": [dict(x=X, y=X[0, :3], offset=1, axis1=0, axis2=1, name=None)],
    "divide": [dict(x=X, y=X + 1, name=None), dict(input=X, other=X + 2)],
    "equal": [dict(x=X, y=X[0], name=None)],
    "flatten": [dict(x=X, start_axis=0, stop_axis=-1, name=None), dict(x=X, start_dim=0)],
    "full": [dict(shape=[2, 3], fill_value=2.5, dtype="float32", name=None)],
    "full_like": [dict(x=X, fill_value=3, dtype="int32", name=None)],
    "gather_nd": [dict(x=X, index=np.array([[0, 1], [2, 3]]), name=None)],
    "greater_equal": [dict(x=X, y=X[1], name=None)],
    "greater_than": [dict(x=X, y=X[1], name=None)],
    "imag": [dict(x=Z, name=None)],
    "index_add": [dict(x=X, index=INDEX, axis=0, value=ROWS, name=None)],
    "index_add_": [dict(x=X, index=INDEX, axis=0, value=ROWS, name=None)],
    "index_fill": [dict(x=X, index=INDEX, axis=1, value=-1.0, name=None)],
    "index_fill_": [dict(x=X, index=INDEX, axis=1, value=-1.0, name=None)],
    "index_put": [
        dict(x=X, indices=(INDEX, INDEX), value=X[0, :2], accumulate=True, name=None),
        dict(x=X, indices=[INDEX], value=ROWS),
    ],
    "index_put_": [dict(x=X, indices=(INDEX,), value=ROWS, accumulate=False, name=None)],
    "index_select": [dict(x=X, index=INDEX, axis=1, name=None), dict(input=X, index=INDEX, dim=0)],
    "less_equal": [dict(x=X, y=X[1], name=None)],
    "less_than": [dict(x=X, y=X[1], name=None)],
    "masked_fill": [dict(x=X, mask=MASK, value=-5.0, name=None)],
    "masked_fill_": [dict(x=X, mask=MASK, value=-5.0, name=None)],
    "masked_scatter": [dict(x=X, mask=MASK, value=X * 100, name=None)],
    "masked_scatter_": [dict(x=X, mask=MASK, value=X * 100, name=None)],
    "masked_select": [dict(x=X, mask=MASK, name=None)],
    "mean": [dict(x=X, axis=0, keepdim=True, name=None), dict(input=X, dim=1)],
    "multiply": [dict(x=X, y=X, name=None)],
    "negative": [dict(x=X, name=None)],
    "not_equal": [dict(x=X, y=X[1], name=None)],
    "ones": [dict(shape=[2, 3], dtype="int64", name=None)],
    "ones_like": [dict(x=X, dtype="float64", name=None)],
    "prod": [dict(x=X, axis=1, keepdim=True, name=None)],
    "put_along_axis": [
        dict(arr=X, indices=ALONG, values=ROWS, axis=0),
        dict(
            arr=X,
            indices=ALONG,
            values=ROWS,
            axis=0,
            reduce="add",
            include_self=False,
            broadcast=False,
        ),
        dict(arr=X, indices=ALONG, values=9.0, axis=0, reduce="multiply"),
        dict(arr=X, indices=ALONG, values=ROWS, axis=0, reduce="mean", broadcast=False),
    ],
    "real": [dict(x=Z, name=None)],
    "reshape": [dict(x=X, shape=[2, -1], name=None)],
    "scatter": [
        dict(x=X, index=INDEX, updates=ROWS, overwrite=True, name=None),
        dict(x=X, index=np.array([1, 1]), updates=ROWS, overwrite=False),
    ],
    "scatter_": [dict(x=X, index=np.array([1, 1]), updates=ROWS, overwrite=False, name=None)],
    "scatter_nd": [
        dict(index=np.array([[1], [1]]), updates=ROWS, shape=[3, 4], name=None),
    ],
    "scatter_nd_add": [dict(x=X, index=np.array([[1], [1]]), updates=ROWS, name=None)],
    "select_scatter": [dict(x=X, values=X[0] * 10, axis=0, index=1, name=None)],
    "slice_scatter": [
        dict(x=X, value=ROWS, axes=[0], starts=[0], ends=[3], strides=[2], name=None),
        dict(x=X, value=ROWS[:, :2], axes=[0, 1], starts=[0, 1], ends=[2, 4], strides=[1, 2]),
    ],
    "squeeze": [dict(x=X[None], axis=0, name=None), dict(input=X[:, None], dim=1)],
    "stack": [dict(x=[X, X], axis=1, name=None), dict(tensors=[X, X], dim=0)],
    "subtract": [dict(x=X, y=X[0], name=None)],
    "sum": [dict(x=X, axis=1, keepdim=True, name=None), dict(x=X)],
    "take_along_axis": [
        dict(arr=X, indices=ALONG, axis=0, broadcast=False),
        dict(arr=X, indices=ALONG[:, :1], axis=0, broadcast=True),
    ],
    "transpose": [dict(x=X, perm=[1, 0], name=None)],
    "tril": [dict(x=X, diagonal=1, name=None)],
    "tril_indices": [dict(row=3, col=4, offset=1, dtype="int64")],
    "triu": [dict(x=X, diagonal=-1, name=None)],
    "triu_indices": [dict(row=3, col=None, offset=0, dtype="int32")],
    "unsqueeze": [dict(x=X, axis=[0, 2], name=None)],
    "where": [dict(condition=MASK, x=X, y=-X, name=None)],
    "zeros": [dict(shape=[2, 3], dtype="float64", name=None)],
    "zeros_like": [dict(x=X, dtype=None, name=None)],
}

# Arguments that Inlay's operations don't have, whatever they are called.
BEYOND = {
    "alpha": "multiply value first",
    "rounding_mode": "round the result",
    "dtype": "cast the result of a reduction",
    "out": "use the in-place form, or assign the result",
    "device": "results are on the CPU",
    "requires_grad": "set stop_gradient of the result",
    "pin_memory": "results are on the CPU",
}


def tensors_of(call: dict[str, Any]) -> dict[str, Any]:
    def convert(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return to_paddle(value)
        if isinstance(value, (list, tuple)) and isinstance(value[0], np.ndarray):
            return type(value)(map(to_paddle, value))
        return value

    return {name: convert(value) for name, value in call.items()}


@pytest.mark.parametrize(
    ("name", "call"), [(name, call) for name, calls in CALLS.items() for call in calls]
)
def test_calls_by_keyword_give_the_results_of_paddle(name: str, call: dict[str, Any]) -> None:
    ours = getattr(inlay, name)(**tensors_of(call))
    given = tensors_of(call)
    # Paddle's index_put_ crashes if its first argument is passed by keyword.
    first = [given.pop("x")] if name.endswith("_") else []
    theirs = getattr(paddle, name)(*first, **given)
    if not isinstance(ours, paddle.Tensor):
        ours = paddle.to_tensor(ours.numpy())
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def public_names() -> list[str]:
    twins = [operation.twin for operation in OPERATIONS.values() if operation.twin]
    return [name for name in [*OPERATIONS, *twins] if hasattr(paddle, name)]


def test_every_operation_that_paddle_has_is_called() -> None:
    assert sorted(CALLS) == sorted(public_names())


@pytest.mark.parametrize("name", public_names())
def test_every_keyword_of_paddle_is_taken(name: str) -> None:
    """A keyword of a new version of Paddle fails here."""
    known = set()
    for argument in OPERATIONS[name.removesuffix("_")].arguments:
        known |= {argument.name, *argument.aliases}
    if name == "scatter_":  # its signature is hidden behind *args
        return
    theirs = inspect.signature(getattr(paddle, name)).parameters
    assert set(theirs) - known - set(BEYOND) == set()


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("put_along_axis", dict(indices=ALONG, values=ROWS, axis=0)),
        ("slice_scatter", dict(value=ROWS, axes=[0], starts=[0], ends=[2], strides=[1])),
        ("index_add", dict(index=INDEX, axis=0, value=ROWS)),
        ("masked_scatter", dict(mask=MASK, value=X)),
    ],
)
def test_the_keywords_are_those_of_the_methods(method: str, call: dict[str, Any]) -> None:
    x = to_paddle(X)
    theirs = getattr(x, method)(**tensors_of(call))
    ours = getattr(inlay, method)(x, **tensors_of(call))
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
