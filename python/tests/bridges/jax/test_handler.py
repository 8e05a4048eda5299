"""The handler called in ways in which the bridge does not call it: errors, no crashes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import inlay.jax  # noqa: F401  (registers the handler)

X = jnp.arange(6, dtype=np.float32).reshape(3, 2)
FAILED = (jax.errors.JaxRuntimeError, ValueError)


def handler(*inputs: Any, like: Any = X, count: int = 1, **attributes: Any) -> Any:
    shapes = [jax.ShapeDtypeStruct(like.shape, like.dtype)] * count
    call = jax.ffi.ffi_call("inlay_function", shapes, has_side_effect=True)
    results = jax.jit(lambda *inputs: call(*inputs, **attributes))(*inputs)
    return [np.asarray(result) for result in results]


def test_a_right_call() -> None:
    np.testing.assert_array_equal(handler(X, text="tril(@)")[0], np.tril(X))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "no string attribute text"),
        ({"text": np.int32(3)}, "no string attribute text"),
        ({"txt": "tril(@)"}, "no string attribute text"),
        ({"text": ""}, "function"),
        ({"text": "frobnicate(@)"}, "frobnicate"),
        ({"text": "tril(@"}, "tril"),
        ({"text": "tril(@) and more"}, "end of the text"),
        ({"text": "vjp(1; " * 1000 + "tril(@)" + ")" * 1000}, "nested"),
        ({"text": "tril(@)\n9:float64:2,2"}, "too few inputs"),
        ({"text": "tril(@)\n0:float64"}, "is no input"),
        ({"text": "tril(@)\n0:float64:99999999999999999999"}, "is no input"),
        ({"text": "tril(@)\n0:float64:3,2"}, "takes 1 tensors, got 2"),
        ({"text": "add(@, @)"}, "takes 2 tensors, got 1"),
        ({"text": "sum(@)"}, "the result"),
        ({"text": "cast(@, dtype='int32')"}, "int32"),
    ],
)
def test_bad_calls(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(FAILED, match=message):
        handler(X, **attributes)


def test_bad_numbers_of_buffers() -> None:
    with pytest.raises(FAILED, match="1 results"):
        handler(X, count=2, text="tril(@)")
    with pytest.raises(FAILED, match="1 results"):
        handler(X, count=0, text="tril(@)")
    with pytest.raises(FAILED, match="got 0"):
        handler(text="tril(@)")
    with pytest.raises(FAILED, match="got 40"):
        handler(*[X] * 40, text="tril(@)")


def test_dtypes_that_inlay_does_not_have() -> None:
    x = jnp.ones((3, 2), jnp.float8_e5m2)
    with pytest.raises(FAILED, match="dtype"):
        handler(x, text="tril(@)")


def test_inputs_that_are_left_out() -> None:
    """The gradient of `tril` reads only the shape of its input, and not its result."""
    found = handler(X, text="vjp(1; tril(@))\n0:float32:3,2\n1:float32:3,2")
    np.testing.assert_array_equal(found[0], np.tril(X))


def test_empty_and_zero_dimensional_buffers() -> None:
    empty = jnp.zeros((0, 2))
    np.testing.assert_array_equal(handler(empty, like=empty, text="tril(@)")[0], empty)
    assert handler(X, like=jnp.float32(0), text="sum(@)")[0] == 15
