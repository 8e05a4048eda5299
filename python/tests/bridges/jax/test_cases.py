"""Runs the cases in `testdata` with JAX arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import OPERATIONS, SYNTAX, Case, all_cases, assert_same

import inlay

CASES = [case for case in all_cases() if case.tensors and case.op not in SYNTAX]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    arrays = {name: jnp.asarray(array) for name, array in case.tensors.items()}
    inputs, attrs = case.arguments(arrays)
    op = getattr(inlay, case.op)
    if case.error is not None:
        with pytest.raises(case.error) as caught:
            op(*inputs, **attrs)
        assert isinstance(caught.value, inlay.InlayError)
        assert all(word in str(caught.value) for word in case.words), str(caught.value)
    else:
        result = op(*inputs, **attrs)
        assert isinstance(result, jax.Array)
        assert_same(np.asarray(result), case.expect)
    for name, array in case.tensors.items():
        assert_same(np.asarray(arrays[name]), array)


def test_every_operation_with_tensors_has_cases() -> None:
    without = {"astype", "full_like", "ones_like", "zeros_like"}
    kinds = ("Tensor", "Operand", "Tensors", "Mask")
    takes = {
        op.name for op in OPERATIONS.values() if any(arg.kind in kinds for arg in op.arguments)
    }
    assert takes - {case.op for case in CASES} <= without


WRITES = [op for op in OPERATIONS.values() if op.twin is not None]


@pytest.mark.parametrize("op", WRITES, ids=lambda op: op.name)
def test_a_write_in_place_is_refused(op: Any) -> None:
    case = next(case for case in CASES if case.op == op.name and case.expect is not None)
    arrays = {name: jnp.asarray(array) for name, array in case.tensors.items()}
    inputs, attrs = case.arguments(arrays)
    with pytest.raises(inlay.InlayTypeError, match=rf"{op.twin}: .*JAX.*use inlay\.{op.name}"):
        getattr(inlay, op.twin)(*inputs, **attrs)


REPRESENTATIVE = {case.op: case for case in CASES if case.expect is not None and not case.dtype}
REPRESENTATIVE |= {
    case.op: case for case in CASES if case.expect is not None and case.dtype == "float32"
}


@pytest.mark.parametrize("case", REPRESENTATIVE.values(), ids=lambda case: case.op)
def test_compiled_case(case: Case) -> None:
    """The case inside of `jax.jit`, with all tensors traced."""

    def call(arrays: dict[str, Any]) -> Any:
        inputs, attrs = case.arguments(arrays)
        return getattr(inlay, case.op)(*inputs, **attrs)

    arrays = {name: jnp.asarray(array) for name, array in case.tensors.items()}
    if case.op == "masked_select":
        with pytest.raises(jax.errors.ConcretizationTypeError, match=r"masked_select.*size="):
            jax.jit(call)(arrays)
        return
    shape = jax.eval_shape(call, arrays)
    assert (shape.shape, shape.dtype) == (case.expect.shape, case.expect.dtype)
    assert_same(np.asarray(jax.jit(call)(arrays)), case.expect)
