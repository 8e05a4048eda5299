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


# Other names of arguments, and integers one by one.


@each
def test_its_other_names_are_not_names_of_other_arguments(op: inlay.Operation) -> None:
    names = [name for argument in op.arguments for name in (argument.name, *argument.aliases)]
    assert len(names) == len(set(names))


@each
def test_its_other_names_are_accepted(op: inlay.Operation) -> None:
    case = EXAMPLES[op.name]
    inputs, attrs = case.arguments(case.tensors)
    named = {**dict(zip([one.name for one in op.arguments], inputs, strict=False)), **attrs}
    function = getattr(inlay, op.name)
    for argument in op.arguments:
        if argument.name not in named or argument.keyword_only:
            continue
        for alias in argument.aliases:
            renamed = {(alias if name == argument.name else name): named[name] for name in named}
            assert_same(np.asarray(function(**renamed)), case.expect)
            with pytest.raises(TypeError, match=f"multiple values for argument '{argument.name}'"):
                function(**{**renamed, argument.name: named[argument.name]})


def test_names_of_other_libraries() -> None:
    x = np.arange(6.0).reshape(2, 3)
    t = inlay.to_tensor(x)
    assert tuple(t.sum(dim=0, keepdims=True).shape) == (1, 3)
    assert inlay.sum(input=x, dim=1).tolist() == x.sum(1).tolist()
    rows = inlay.slice_scatter(x, value=x[:1], axes=[0], starts=[1], ends=[2], strides=[1])
    assert rows.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert inlay.slice_scatter(input=x, src=x[:1], dim=0, start=1, end=2).tolist() == rows.tolist()
    put = inlay.put_along_axis(arr=x, indices=[[0], [1]], values=[[9.0], [9.0]], axis=1)
    assert put.tolist() == [[9, 1, 2], [3, 9, 5]]
    assert t.diagonal(dim1=1, dim2=0).tolist() == [0, 4]
    assert inlay.masked_scatter(x=x, mask=x > 4, value=[7.0]).tolist() == [[0, 1, 2], [3, 4, 7]]


def test_integers_one_by_one_are_a_shape_or_axes() -> None:
    t = inlay.arange(6)
    assert t.reshape(2, 3).tolist() == t.reshape([2, 3]).tolist()
    assert t.reshape(2, -1, name="r").tolist() == t.reshape([2, 3]).tolist()
    assert inlay.reshape(t, np.int64(3), 2).tolist() == t.reshape([3, 2]).tolist()
    assert list(t.reshape(1, 2, 3).transpose(2, 0, 1).shape) == [3, 1, 2]
    assert list(t.reshape(1, 2, 3).transpose().shape) == [3, 2, 1]
    assert list(inlay.zeros(2, 3).shape) == [2, 3]
    assert inlay.ones(2, 1, "int64").tolist() == [[1], [1]]
    assert inlay.ones(2, 1, dtype="int64").tolist() == [[1], [1]]
    assert inlay.zeros(2, "int64").tolist() == [0, 0]
    assert inlay.full(2, 7).tolist() == [7, 7]
    assert inlay.broadcast_to([1], 2, 2).tolist() == [[1, 1], [1, 1]]
    assert list(t.unsqueeze(0, 2).shape) == [1, 6, 1]
    with pytest.raises(TypeError, match="reshape: shape is a str"):
        t.reshape("2")
    with pytest.raises(TypeError, match=r"zeros\(\) got multiple values for argument 'shape'"):
        inlay.zeros(2, 2, shape=2)
    with pytest.raises(ValueError, match=r"reshape: .*\[4, 2\]"):
        t.reshape(4, 2)


@each
def test_none_is_a_type_error_unless_it_is_the_default(op: inlay.Operation) -> None:
    case = EXAMPLES[op.name]
    inputs, attrs = case.arguments(case.tensors)
    function = getattr(inlay, op.name)
    for argument in op.arguments[len(inputs) :]:
        named = {**attrs, argument.name: None}
        is_open = argument.kind in ("BoundList", "DType", "Device", "Label")
        if not argument.required and (argument.default is None or is_open):
            attrs.pop(argument.name, None)
            try:
                expected = np.asarray(function(*inputs, **attrs))
            except ValueError:  # the example needs the argument
                continue
            assert_same(np.asarray(function(*inputs, **named)), expected)
        else:
            with pytest.raises(TypeError, match=f"{op.name}: {argument.name} is None, expected"):
                function(*inputs, **named)


def test_none_for_an_axis_names_the_argument() -> None:
    with pytest.raises(TypeError, match="scatter: axis is None, expected an integer"):
        inlay.scatter(np.zeros(3), [0], [1.0], axis=None)
    with pytest.raises(TypeError, match="scatter: overwrite is None, expected True or False"):
        inlay.scatter(np.zeros(3), [0], [1.0], None)
    assert inlay.sum(np.ones(3), axis=None) == 3
    assert inlay.slice_scatter(np.zeros(2), [1.0], start=None, stop=1, step=None).tolist() == [1, 0]
