"""Tests of the table of operations, and of what each operation in it must have."""

from __future__ import annotations

import builtins
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import OPERATIONS, Case, all_cases, assert_same
from test_cases import call

import inlay
from inlay import static

STUB = (Path(inlay.__file__).parent / "_inlay.pyi").read_text(encoding="utf-8")
EXAMPLES: dict[str, Case] = {}
for one in all_cases():
    # Only a case of floats can have gradients.
    better = one.op not in EXAMPLES or one.dtype == "float64" != EXAMPLES[one.op].dtype
    if one.expect is not None and better:
        EXAMPLES[one.op] = one

each = pytest.mark.parametrize("op", OPERATIONS.values(), ids=lambda op: op.name)


@each
def test_it_has_cases(op: inlay.Operation) -> None:
    assert op.name in EXAMPLES


@each
def test_it_is_documented_with_an_example(op: inlay.Operation) -> None:
    function = getattr(inlay, op.name)
    assert ">>>" in function.__doc__
    assert op.summary
    assert op.doc.strip() in function.__doc__
    if op.is_method:
        assert getattr(inlay.Tensor, op.name).__doc__ == function.__doc__
    if op.twin:
        assert "in place" in getattr(inlay, op.twin).__doc__


@each
def test_its_signature_is_the_declared_one(op: inlay.Operation) -> None:
    names = [op.name, *([op.twin] if op.twin else [])]
    for name in names:
        parameters = list(inspect.signature(getattr(inlay, name)).parameters.values())
        assert [one.name for one in parameters] == [one.name for one in op.arguments]
        for parameter, argument in zip(parameters, op.arguments, strict=True):
            assert (parameter.default is inspect.Parameter.empty) == argument.required
            assert argument.required or parameter.default == argument.default
            assert (parameter.kind is inspect.Parameter.KEYWORD_ONLY) == argument.keyword_only
        if op.is_method:
            method = inspect.signature(getattr(inlay.Tensor, name))
            assert list(method.parameters)[1:] == [one.name for one in op.arguments[1:]]


@each
def test_it_has_stubs(op: inlay.Operation) -> None:
    for name in (op.name, op.twin):
        if name:
            assert f"\ndef {name}(" in STUB
            assert (f"    def {name}(" in STUB) == op.is_method
            assert name in inlay.__all__ or hasattr(builtins, name)


def given(case: Case, make: Any) -> dict[str, Any]:
    return {name: make(name, array) for name, array in case.tensors.items()}


@each
def test_it_survives_save_and_load(op: inlay.Operation, tmp_path: Path) -> None:
    case = EXAMPLES[op.name]
    program = static.Program()
    with static.program_guard(program):
        symbols = given(case, lambda name, array: static.data(name, array.shape, array.dtype.name))
        if case.inputs:
            result = call(case, "function", symbols)
        else:
            result = getattr(inlay, op.name)(**case.attrs)
    program.set_outputs({"result": result})
    program.save(tmp_path / "program")
    loaded = static.Program.load(tmp_path / "program")
    (found,) = loaded.run(case.tensors, ["result"])
    assert_same(np.asarray(found), case.expect)


@each
def test_gradients_go_where_they_are_declared(op: inlay.Operation) -> None:
    case = EXAMPLES[op.name]
    if not op.gradients:
        return
    assert case.dtype == "float64", "an operation with gradients has a case for all floats"
    tensors = given(case, lambda name, array: inlay.to_tensor(array))
    leaves = {name: tensor for name, tensor in tensors.items() if tensor.dtype == inlay.float64}
    for leaf in leaves.values():
        leaf.stop_gradient = False
    result = call(case, "function", tensors)
    result.backward(inlay.ones(result.shape, dtype="float64"))
    declared = {
        name
        for name in leaves
        for argument in op.gradients
        if name.rstrip("0123456789") == argument
    }
    assert {name for name, leaf in leaves.items() if leaf.grad is not None} == declared


def test_the_table_is_what_the_module_exports() -> None:
    names = {name for op in OPERATIONS.values() for name in (op.name, op.twin) if name}
    assert names - set(dir(builtins)) <= set(inlay.__all__)
    assert all(callable(getattr(inlay, name)) for name in names)
    assert sorted(OPERATIONS) == list(OPERATIONS)


def test_a_star_import_hides_no_builtin() -> None:
    names: dict[str, Any] = {}
    exec("from inlay import *", names)
    assert "scatter" in names
    assert not set(names) & set(dir(builtins)) - {"__builtins__", "__doc__", "__name__"}
    assert inlay.sum([1, 2]) == 3
    assert inlay.bool == "bool"


def test_arguments_that_do_not_fit_the_signature_are_type_errors() -> None:
    x = np.zeros(3)
    for arguments, named, text in (
        ((x,), {}, r"scatter\(\) missing 2 required positional arguments: 'index' and 'updates'"),
        ((x, [0]), {}, r"missing 1 required positional argument: 'updates'"),
        ((x, [0], [1.0]), {"axes": 0}, r"unexpected keyword argument 'axes'"),
        ((x, [0], [1.0]), {"index": [0]}, r"multiple values for argument 'index'"),
        ((x, [0], [1.0], True, 0, "sum", None, False), {}, r"takes from 3 to 7 positional"),
    ):
        with pytest.raises(TypeError, match=text):
            inlay.scatter(*arguments, **named)
    tensor = inlay.to_tensor(x)
    with pytest.raises(TypeError, match=r"scatter_\(\) got multiple values for argument 'x'"):
        tensor.scatter_([0], [1.0], x=tensor)
