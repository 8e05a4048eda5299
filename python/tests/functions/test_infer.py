"""Inferred dtypes and shapes: those of the results, with known sizes and with open ones."""

from __future__ import annotations

from typing import Any

import pytest
from cases import Case

import inlay
from inlay._inlay import Function

from .support import CASES, bound, for_each, of_dtypes, outcome, specs_of

ALL = of_dtypes("float64", "float32", "bfloat16", "complex128", "int64", "bool")
ONES = [case for case in of_dtypes("float64") if case.tensors]
ERRORS = [case for case in CASES if case.error and case.dtype in ("", "float32")]

# Errors that depend on values, so that only the call finds them.
OF_VALUES = ("out of range", "mask selects", "elements, mask", "selects", "broadcast together")


@for_each(ALL)
def test_known_sizes(case: Case) -> None:
    function, tensors = bound(case)
    ((dtype, sizes),) = function.infer(specs_of(tensors))
    assert case.expect is not None
    assert dtype == str(case.expect.dtype)
    assert len(sizes) == case.expect.ndim
    for size, actual in zip(sizes, case.expect.shape, strict=True):
        assert size == actual or (size is None and depends_on_values(case))


def depends_on_values(case: Case) -> bool:
    """Whether the shape of a result depends on the elements of a mask."""
    masks = any(array.dtype == bool for name, array in case.tensors.items() if name != "x")
    return case.op in ("masked_select", "index_get") and masks


@for_each(ALL)
def test_known_sizes_of_gradients_and_batches(case: Case) -> None:
    function, tensors = bound(case)
    specs = specs_of(tensors)
    floats = [dtype.startswith(("float", "bfloat", "complex")) for dtype, _ in specs]
    wanted = [a and b for a, b in zip(floats, function.differentiable, strict=True)]
    assert case.expect is not None
    result = (str(case.expect.dtype), list(case.expect.shape))
    if any(wanted):
        inferred = function.vjp(wanted).infer([*specs, result, result])
        assert inferred == [spec for spec, want in zip(specs, wanted, strict=True) if want]
    if specs:
        batched = [(dtype, [3, *shape]) for dtype, shape in specs]
        ((dtype, sizes),) = function.vmap([0] * len(specs)).infer(batched)
        assert (dtype, sizes[0], len(sizes)) == (result[0], 3, len(result[1]) + 1)
        if not depends_on_values(case):
            assert sizes[1:] == result[1]


# Open sizes.


def computed(case: Case) -> bool:
    """Whether a size of the result is computed of several sizes, or depends on values."""
    broadcasts = (
        "add subtract multiply divide equal not_equal less_than less_equal greater_than "
        "greater_equal where masked_scatter masked_select index_get put_along_axis take_along_axis"
    )
    return case.op in [*broadcasts.split(), "concat", "reshape", "flatten", "diagonal"]


def check(case: Case, specs: list[tuple[str, list[int | None]]], tensors: list[Any]) -> None:
    """Compares what is inferred of open sizes with the result."""
    function, _ = bound(case)
    inferred = outcome(lambda: function.infer(specs))
    if isinstance(inferred, Exception):
        assert any(case.needs_sizes(name) for name in case.inputs), inferred
        assert isinstance(inferred, inlay.InlayError)
        assert "size" in str(inferred)
        return
    ((dtype, sizes),) = inferred
    assert case.expect is not None
    assert (dtype, len(sizes)) == (str(case.expect.dtype), case.expect.ndim)
    for size, actual in zip(sizes, case.expect.shape, strict=True):
        if size is None:
            assert computed(case), (specs, sizes)
        elif isinstance(size, tuple):
            at, axis = size
            assert specs[at][1][axis] is None
            assert tensors[at].shape[axis] == actual, (specs, sizes)
        else:
            assert size == actual, (specs, sizes)


@for_each(ONES)
def test_open_sizes(case: Case) -> None:
    _, tensors = bound(case)
    specs = specs_of(tensors)
    check(case, [(dtype, [None] * len(shape)) for dtype, shape in specs], tensors)
    for at, (dtype, shape) in enumerate(specs):
        open_one = [*specs]
        open_one[at] = (dtype, [None] * len(shape))
        check(case, open_one, tensors)
        for axis in range(len(shape)):
            open_one[at] = (dtype, [*shape[:axis], None, *shape[axis + 1 :]])
            check(case, open_one, tensors)


def test_an_open_size_is_named() -> None:
    infer = Function.parse("index_select(@, @, axis=1)").infer
    x = ("float32", [None, None, 4])
    assert infer([x, ("int64", [None])]) == [("float32", [(0, 0), (1, 0), 4])]
    assert infer([x, ("int64", [7])]) == [("float32", [(0, 0), 7, 4])]
    # Either size may be 1, so the size of the sum is not that of an input.
    open_pair = [("float32", [None]), ("float32", [None])]
    assert Function.parse("add(@, @)").infer(open_pair) == [("float32", [None])]
    pair = [("float32", [None]), ("float32", [3])]
    assert Function.parse("add(@, @)").infer(pair)[0][1] in ([3], [None])
    pair = [("float32", [None]), ("float32", [1])]
    assert Function.parse("add(@, @)").infer(pair) == [("float32", [(0, 0)])]
    selected = Function.parse("masked_select(@, @)").infer([x, ("bool", [None, None, 4])])
    assert selected == [("float32", [None])]


def test_open_sizes_of_gradients_and_batches() -> None:
    function = Function.parse("scatter(@, @, @)")
    x, index = ("float32", [None, 3]), ("int64", [None])
    assert function.infer([x, index, x]) == [("float32", [(0, 0), 3])]
    of_x, of_updates = function.vjp((True, False, True)).infer([x, index, x, x, x])
    # The first input, the result and its gradient have one size.
    assert of_x in [("float32", [(at, 0), 3]) for at in (0, 3, 4)]
    assert of_updates == ("float32", [(2, 0), 3])
    many = ("float32", [None, None, 3])
    batched = function.vmap((0, None, 1))
    ((dtype, sizes),) = batched.infer([many, index, many])
    assert (dtype, sizes) == ("float32", [(0, 0), (0, 1), 3])
    assert function.vmap((1, None, 0)).infer([many, index, many])[0][1] == [(0, 1), (0, 0), 3]


def test_a_loop_over_an_open_number_of_items_is_an_error() -> None:
    function = Function.parse("vmap(0, None; masked_select(@, @))".replace("None", "_"))
    with pytest.raises(inlay.InlayError, match="size"):
        function.infer([("float32", [None, 3]), ("bool", [3])])
    assert function.infer([("float32", [2, 3]), ("bool", [3])]) == [("float32", [2, None])]


# Errors.


@for_each(ERRORS)
def test_errors(case: Case) -> None:
    """Errors of dtypes, ranks and sizes are found without values. The others are found later."""
    assert case.error is not None
    made = outcome(lambda: bound(case))
    found = made
    if not isinstance(made, Exception):
        function, tensors = made
        found = outcome(lambda: function.infer(specs_of(tensors)))
    if isinstance(found, Exception):
        assert isinstance(found, case.error)
        assert isinstance(found, inlay.InlayError)
        assert all(word in str(found) for word in case.words), found
        return
    with pytest.raises(case.error) as raised:
        function.call(tensors)
    assert any(words in str(raised.value) for words in OF_VALUES), raised.value


def test_specs_that_no_tensor_has_are_errors() -> None:
    function = Function.parse("tril(@)")
    with pytest.raises(inlay.InlayTypeError, match="float31"):
        function.infer([("float31", [2, 2])])
    with pytest.raises(inlay.InlayError):
        function.infer([("float32", [2])])
    with pytest.raises((TypeError, OverflowError, ValueError)):
        function.infer([("float32", [-1, 2])])
    with pytest.raises((TypeError, ValueError)):
        function.infer([(1, [2, 2])])
    with pytest.raises(inlay.InlayValueError):
        Function.parse("flatten(@)").infer([("float32", [2**40, 2**40])])
    with pytest.raises(inlay.InlayValueError):
        Function.parse("concat([@, @])").infer([("float32", [2**63])] * 2)
    sums = Function.parse("vjp(11; add(@, @))")
    pair = [("float32", [2]), ("float32", [2])]
    assert len(sums.infer([*pair, *pair])) == 2
    with pytest.raises(inlay.InlayError):
        sums.infer([*pair, ("float32", [2]), ("float32", [3])])
    with pytest.raises(inlay.InlayError):
        sums.infer([*pair, ("float32", [2]), ("float64", [2])])
    with pytest.raises(inlay.InlayError):
        sums.infer([("int64", [2]), ("int64", [2]), ("int64", [2]), ("int64", [2])])
