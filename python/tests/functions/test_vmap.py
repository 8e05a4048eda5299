"""Functions over a batch: the results of a loop over its items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import OPERATIONS, Case

import inlay
from inlay._inlay import Function

from .batches import Axes, items_of, looped, stacked, varied, ways
from .support import (
    assert_close,
    bound,
    for_each,
    objects_of,
    of_dtypes,
    outcome,
    random_like,
)
from .test_vjp import picked, trainable

CASES = [
    case for case in of_dtypes("float64", "complex128", "bfloat16", "int64", "bool") if case.tensors
]
ONES = [case for case in CASES if case.dtype in ("", "float64")]


def index_flags(case: Case) -> list[bool]:
    """For each tensor of a case, whether it is an index or a mask."""
    flags: list[bool] = []
    for argument, value in zip(OPERATIONS[case.op].arguments, objects_of(case), strict=True):
        if argument.kind in ("Tensors", "Indices"):
            items = value if isinstance(value, list) else [value]
            flags += [argument.kind == "Indices"] * len(items)
        elif argument.kind in ("Tensor", "Like", "Operand", "Index", "Mask"):
            flags.append(argument.kind in ("Index", "Mask"))
    return flags


def ranks_of(tensors: list[inlay.Tensor]) -> list[int]:
    return [len(tensor.shape) for tensor in tensors]


def compare(function: Function, items: list[list[np.ndarray]], axes: Axes, count: int) -> None:
    """Fails unless the function over the batch gives what a loop gives, or both raise."""
    expected = outcome(lambda: looped(function, items, axes, count))
    actual = outcome(lambda: function.vmap(axes).call(stacked(items, axes)))
    if isinstance(expected, Exception):
        assert isinstance(actual, inlay.InlayError), (axes, expected, actual)
        return
    assert not isinstance(actual, Exception), (axes, actual)
    for ours, theirs in zip(actual, expected, strict=True):
        assert_close(ours.numpy(), theirs)


@for_each(CASES)
def test_as_a_loop(case: Case) -> None:
    function, tensors = bound(case)
    items = items_of(tensors, index_flags(case), 3)
    for axes in ways(ranks_of(tensors)):
        compare(function, items, axes, 3)


@for_each(ONES)
def test_one_item(case: Case) -> None:
    function, tensors = bound(case)
    items = items_of(tensors, index_flags(case), 1)
    for axes in ways(ranks_of(tensors))[:2]:
        compare(function, items, axes, 1)
        (result,) = function.vmap(axes).call(stacked(items, axes))
        assert_close(result.numpy()[0], case.expect)


@for_each(ONES)
def test_no_items(case: Case) -> None:
    """The result has the shape of an item, unless that depends on values."""
    function, tensors = bound(case)
    given = [inlay.to_tensor(tensor.numpy()[None][:0]) for tensor in tensors]
    batched = function.vmap([0] * len(tensors))
    masks = any(str(tensor.dtype) == "bool" for tensor in tensors[1:])
    if case.op in ("masked_select", "index_get") and masks:
        result = outcome(lambda: batched.call(given)[0])
        assert isinstance(result, inlay.InlayError) or result.shape[0] == 0
        return
    (result,) = batched.call(given)
    assert case.expect is not None
    assert (result.dtype, tuple(result.shape)) == (case.expect.dtype, (0, *case.expect.shape))


@for_each(ONES)
def test_a_batch_of_batches(case: Case) -> None:
    function, tensors = bound(case)
    flags, ranks = index_flags(case), ranks_of(tensors)
    outer = items_of(tensors, flags, 2)
    # Each item of the outer batch is a batch of 3.
    batches = [
        [np.stack([varied(one, item, flag) for item in range(3)]) for one in each]
        for each, flag in zip(outer, flags, strict=True)
    ]
    compare(function.vmap([0] * len(ranks)), batches, (0,) * len(ranks), 2)
    # The inner batch axis is the last one; the outer is first, or only some inputs have it.
    batches = [[np.moveaxis(one, 0, -1) for one in each] for each in batches]
    inner = function.vmap(ranks)
    for axes in [(1, *[0] * (len(ranks) - 1)), (0, *[None] * (len(ranks) - 1))]:
        if axes[0] <= ranks[0] + 1:
            compare(inner, batches, axes, 2)
    if len(ranks) > 1:
        # The outer batch is over the first input, the inner one over the last.
        first, last = [None] * len(ranks), [None] * len(ranks)
        first[0], last[-1] = 0, 0
        mixed = [each if k == 0 else [each[0]] * 2 for k, each in enumerate(outer)]
        mixed[-1] = [np.stack([one, one]) for one in mixed[-1]]
        compare(function.vmap(last), mixed, tuple(first), 2)


@for_each(ONES)
def test_gradients_of_items(case: Case) -> None:
    """Batches of gradients."""
    function, tensors = bound(case)
    wanted = trainable(function, tensors)
    if not any(wanted):
        return
    result = function.call(tensors)[0]
    gradient = function.vjp(wanted)
    flags = [*index_flags(case), False]
    items = items_of([*tensors, random_like(result, case.id)], flags, 3)
    for axes in ways([*ranks_of(tensors), len(result.shape)]):
        # The results are those of the items.
        results = outcome(lambda axes=axes: looped(function, items[:-1], axes[:-1], 3))
        if isinstance(results, Exception):
            continue
        shared = all(axis is None for axis in axes[:-1])
        given = [*items[:-1], list(results[0]), items[-1]]
        compare(gradient, given, (*axes[:-1], None if shared else 0, axes[-1]), 3)


@for_each(ONES)
def test_gradients_of_a_batch(case: Case) -> None:
    """An input that all items share has the sum of their gradients."""
    function, tensors = bound(case)
    wanted = trainable(function, tensors)
    items = items_of(tensors, index_flags(case), 3)
    for axes in ways(ranks_of(tensors)) if any(wanted) else []:
        results = outcome(lambda axes=axes: looped(function, items, axes, 3))
        if isinstance(results, Exception):
            continue
        seed = random_like(inlay.to_tensor(results[0]), case.id).numpy()
        given = [*items, list(results[0]), list(seed)]
        expected = looped(function.vjp(wanted), given, (*axes, 0, 0), 3)
        tensors = stacked(items, axes)
        batched = function.vmap(axes).vjp(wanted)
        found = batched.call([*tensors, inlay.to_tensor(results[0]), inlay.to_tensor(seed)])
        for ours, theirs, axis in zip(found, expected, picked(axes, wanted), strict=True):
            if axis is None:
                summed = theirs.sum(0, dtype=theirs.dtype)
                assert_close(ours.numpy(), summed)
            else:
                assert_close(ours.numpy(), np.moveaxis(theirs, 0, axis))


# Errors and limits.

WITH_INDEX: list[tuple[str, list[Any]]] = [
    ("scatter(@, @, @)", [np.zeros((2, 3)), [0], np.ones((1, 3))]),
    ("scatter(@, @, @, overwrite=False)", [np.zeros(3), [0, 1], np.ones(2)]),
    ("index_select(@, @)", [np.zeros(3), [0, 1]]),
    ("index_select(@, @, axis=-1)", [np.zeros((2, 3)), [0, 1]]),
    ("index_add(@, @, @, axis=0)", [np.zeros(3), [0, 1], np.ones(2)]),
    ("index_copy(@, @, @, axis=0)", [np.zeros(3), [0, 1], np.ones(2)]),
    ("index_fill(@, @, @, axis=0)", [np.zeros(3), [0, 1], 1.0]),
    ("take_along_axis(@, @, axis=0)", [np.zeros(3), [0, 1]]),
    ("put_along_axis(@, @, @, axis=0)", [np.zeros(3), [0, 1], np.ones(2)]),
    ("index_get(@, [@])", [np.zeros(3), [0, 1]]),
    ("index_put(@, [@], @)", [np.zeros(3), [0, 1], np.ones(2)]),
    ("gather_nd(@, @)", [np.zeros(3), [[0], [1]]]),
    ("scatter_nd_add(@, @, @)", [np.zeros(3), [[0], [1]], np.ones(2)]),
]


@pytest.mark.parametrize(("text", "given"), WITH_INDEX, ids=lambda value: str(value)[:40])
def test_an_error_in_one_item_is_raised(text: str, given: list[Any]) -> None:
    function = Function.parse(text)
    tensors = [inlay.to_tensor(np.stack([np.asarray(one)] * 3)) for one in given]
    batched = function.vmap([0] * len(given))
    batched.call(tensors)
    index = tensors[1].numpy().copy()
    index[1, ..., 0] = 9
    with pytest.raises(inlay.InlayIndexError, match="9"):
        batched.call([tensors[0], inlay.to_tensor(index), *tensors[2:]])


@pytest.mark.parametrize(
    "text",
    [
        "add(@, @)",
        "index_select(@, @)",
        "take_along_axis(@, @, axis=0)",
        "masked_select(@, @)",
        "index_get(@, [@])",
        "concat([@, @])",
        "stack([@, @])",
    ],
)
@pytest.mark.parametrize("sizes", [(2, 3), (3, 2), (1, 3), (3, 1)])
def test_batches_of_different_sizes_are_errors(text: str, sizes: tuple[int, int]) -> None:
    function = Function.parse(text)
    dtype = {"masked_select": bool, "add": float, "concat": float, "stack": float}
    second = np.zeros((sizes[1], 4), dtype.get(function.name, int))
    given = [inlay.to_tensor(np.zeros((sizes[0], 4))), inlay.to_tensor(second)]
    batched = function.vmap((0, 0))
    for _ in range(2):  # the second call finds the trace of the first
        with pytest.raises(inlay.InlayValueError, match="items"):
            batched.call(given)
        with pytest.raises(inlay.InlayValueError, match="items"):
            batched.infer([(str(one.dtype), list(one.shape)) for one in given])
        same = [given[0], inlay.to_tensor(np.zeros((sizes[0], 4), second.dtype))]
        batched.call(same)
    with pytest.raises(inlay.InlayValueError, match="items"):
        batched.vmap((None, 0)).call([given[0], inlay.to_tensor(second[None])])


def test_a_batch_axis_that_no_input_has_is_an_error() -> None:
    function = Function.parse("tril(@)").vmap((3,))
    with pytest.raises(inlay.InlayValueError, match="tril: a batch axis exceeds the rank"):
        function.call([np.zeros((2, 2, 2))])
    with pytest.raises(inlay.InlayValueError, match="tril: a batch axis exceeds the rank"):
        function.infer([("float32", [2, 2, 2])])


def test_items_of_different_shapes_are_an_error() -> None:
    function = Function.parse("vmap(_, 0; masked_select(@, @))")
    mask = np.array([[True, False], [True, True]])
    with pytest.raises(inlay.InlayError):
        function.call([np.zeros(2), mask])
    assert function.call([np.zeros(2), mask[[1, 1]]])[0].shape == (2, 2)


def test_errors_name_the_operation() -> None:
    x = inlay.zeros([2, 3])
    with pytest.raises(inlay.InlayError, match=r"^scatter: "):
        Function.parse("vmap(0, 0, 0; scatter(@, @, @))").call([x, x, x])
    with pytest.raises(inlay.InlayError, match=r"^add: "):
        Function.parse("vmap(0, 0; add(@, @))").call([x, inlay.zeros([2, 4])])


@pytest.mark.parametrize("axes", [[0], [-1], [0, 1], [0, -1], [1, 2], [-1, -2], [2, 0], [-3, 1]])
def test_new_axes_count_in_the_result(axes: list[int]) -> None:
    function = Function("unsqueeze", (None, axes))
    for shape in [(2,), (2, 3)]:
        x = np.arange(3.0 * np.prod(shape)).reshape(3, *shape)
        expected = outcome(lambda x=x: np.stack([np.expand_dims(one, axes) for one in x]))
        actual = outcome(lambda x=x: function.vmap((0,)).call([x])[0].numpy())
        if isinstance(expected, Exception):
            assert isinstance(actual, inlay.InlayError)
        else:
            assert_close(actual, expected)
