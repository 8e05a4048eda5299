"""Gradients of functions: bit for bit those of `inlay.grad`, at every order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from cases import OPERATIONS, Case, assert_same

import inlay
from inlay._inlay import Function

from .support import (
    FLOATS,
    assert_close,
    bound,
    for_each,
    of_dtypes,
    operate,
    random_like,
    specs_of,
)

Tensors = list[inlay.Tensor]


def trainable(function: Function, tensors: Tensors) -> list[bool]:
    """For each tensor, whether it may have a gradient."""
    pairs = zip(function.differentiable, tensors, strict=True)
    return [may and str(tensor.dtype) in FLOATS for may, tensor in pairs]


def is_differentiable(case: Case) -> bool:
    return any(array.dtype.kind not in "biu" for array in case.tensors.values()) and bool(
        OPERATIONS[case.op].gradients
    )


CASES = [
    case
    for case in of_dtypes("float64", "complex128", "float32", "bfloat16")
    if is_differentiable(case)
]


def leaves_of(tensors: Tensors, wanted: Any) -> Tensors:
    """The same tensors, those that are wanted as leaves."""
    made = [tensor.detach() for tensor in tensors]
    for tensor, want in zip(made, wanted, strict=True):
        tensor.stop_gradient = not want
    return made


def picked(tensors: Any, wanted: Any) -> list[Any]:
    return [tensor for tensor, want in zip(tensors, wanted, strict=True) if want]


def grads(outputs: Any, leaves: Tensors, seeds: Any, **options: Any) -> Tensors:
    """The gradients, zeros for leaves that are not used."""
    pairs = [(y, seed) for y, seed in zip(outputs, seeds, strict=True) if not y.stop_gradient]
    if not pairs:
        return [inlay.zeros_like(leaf) for leaf in leaves]
    outputs, seeds = map(list, zip(*pairs, strict=True))
    found = inlay.grad(outputs, leaves, grad_outputs=seeds, allow_unused=True, **options)
    zipped = zip(found, leaves, strict=True)
    return [inlay.zeros_like(leaf) if grad is None else grad for grad, leaf in zipped]


def subsets(may: list[bool]) -> list[tuple[bool, ...]]:
    """All choices of inputs. A list of many tensors has only a few."""
    choices = list(itertools.product(*([False, True] if one else [False] for one in may)))
    return choices if len(choices) <= 8 else [*choices[1:4], *choices[-3:]]


def with_stand_ins(function: Function, tensors: Tensors) -> list[Any]:
    """The tensors, with a dtype and a shape instead of those whose elements are not read."""
    specs = specs_of(tensors)
    needs = function.needs(specs)
    assert len(needs) == len(tensors)
    return [
        tensor if need == 2 else (dtype, shape)
        for tensor, need, (dtype, shape) in zip(tensors, needs, specs, strict=True)
    ]


def assert_all_same(actual: Tensors, expected: Tensors) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        assert_same(ours.numpy(), theirs.numpy())


@for_each(CASES)
def test_first_order(case: Case) -> None:
    function, tensors = bound(case)
    may = trainable(function, tensors)
    for wanted in subsets(may):
        leaves = leaves_of(tensors, wanted)
        y = operate(case, leaves)
        seed = random_like(y.detach(), case.id)
        gradient = function.vjp(wanted)
        assert (gradient.inputs, gradient.outputs) == (len(tensors) + 2, sum(wanted))
        expected = grads([y], picked(leaves, wanted), [seed])
        given = [*tensors, y.detach(), seed]
        assert_all_same(gradient.call(given), expected)
        assert_all_same(gradient.call(with_stand_ins(gradient, given)), expected)


def first_of_each() -> list[Case]:
    """All cases of float64 and those without "T". They make the orders above the first quick."""
    return [case for case in CASES if case.dtype in ("", "float64")]


@for_each(first_of_each())
def test_second_order(case: Case) -> None:
    function, tensors = bound(case)
    may = trainable(function, tensors)
    for wanted in {tuple(may), *subsets(may)[1:2]} - {(False,) * len(may)}:
        y = operate(case, tensors)
        if str(y.dtype) not in FLOATS:
            continue
        seed = random_like(y, case.id)
        gradient = function.vjp(wanted)
        given = [*tensors, y, seed]
        results = gradient.call(given)
        weights = [random_like(one, k) for k, one in enumerate(results)]
        # The result among the inputs has no gradient of its own.
        assert gradient.differentiable == (*function.differentiable, False, True)
        second_wanted = (*may, False, True)
        second = gradient.vjp(second_wanted)
        assert second.inputs == gradient.inputs + 2 * gradient.outputs

        leaves = leaves_of([*tensors, seed], [*may, True])
        first = grads(
            [operate(case, leaves[:-1])], picked(leaves, (*wanted, False)), [leaves[-1]],
            create_graph=True,
        )  # fmt: skip
        expected = grads(first, picked(leaves, [*may, True]), weights)
        given = [*given, *results, *weights]
        assert_all_same(second.call(given), expected)
        assert_all_same(second.call(with_stand_ins(second, given)), expected)


@pytest.mark.parametrize(
    "text",
    [
        "multiply(@, @)",
        "divide(@, @)",
        "prod(@)",
        "scatter(@, @, @, overwrite=False, reduce='mul', include_self=True)",
        "put_along_axis(@, @, @, axis=0, reduce='mul')",
    ],
)
def test_third_order(text: str) -> None:
    function = Function.parse(text)
    x = inlay.to_tensor([1.5, -2.0, 3.0])
    given: Tensors = [x]
    if function.inputs == 3:
        given.append(inlay.to_tensor([0, 2, 0]))
    if function.inputs > 1:
        given.append(inlay.to_tensor([0.5, 4.0, -1.25]))
    functions, wants, all_given = [function], [], [given]
    for order in range(3):
        last = functions[-1]
        results = last.call(given)
        seeds = [random_like(one, (order, k)) for k, one in enumerate(results)]
        wants.append(last.differentiable)
        functions.append(last.vjp(last.differentiable))
        given = [*given, *results, *seeds]
        all_given.append(given)
    results = functions[-1].call(with_stand_ins(functions[-1], given))

    # The same with `inlay.grad`: each order adds the seeds of the gradients before as leaves.
    leaves = leaves_of(all_given[0], function.differentiable)
    at, outputs = list(leaves), [call_public(function, leaves)]
    for order in range(3):
        upto, upon = len(at), functions[order].outputs
        seeds = leaves_of(all_given[order + 1][upto + upon :], [True] * upon)
        wanted = picked(at, wants[order])
        found = grads(outputs, wanted, seeds, create_graph=True)
        at, outputs = [*at, *outputs, *seeds], found
    assert any(np.any(one.numpy()) for one in results)
    for ours, theirs in zip(results, outputs, strict=True):
        assert_close(ours.numpy(), theirs.numpy())


def call_public(function: Function, leaves: Tensors) -> inlay.Tensor:
    if function.name == "scatter":
        return inlay.scatter(*leaves, overwrite=False, reduce="mul", include_self=True)
    if function.name == "put_along_axis":
        return inlay.put_along_axis(*leaves, axis=0, reduce="mul")
    return getattr(inlay, function.name)(*leaves)


def test_stand_ins_may_be_stretched_tensors() -> None:
    gradient = Function.parse("vjp(101; scatter(@, @, @, overwrite=False))")
    index, seed = inlay.to_tensor([0, 2]), inlay.to_tensor([1.0, 2.0, 3.0])
    assert gradient.needs([("float64", [3]), ("int64", [2]), ("float64", [2]),
                           ("float64", [3]), ("float64", [3])])[1:] == (2, 1, 0, 2)  # fmt: skip
    updates = inlay.broadcast_to(inlay.to_tensor(9.0), [2])
    x = inlay.broadcast_to(inlay.to_tensor(9.0), [3])
    results = gradient.call([x, index, updates, x, seed])
    assert [one.tolist() for one in results] == [[0.0, 2.0, 0.0], [1.0, 3.0]]


def test_needs_with_open_sizes() -> None:
    """What is needed does not depend on sizes, unless the function must know them."""
    for text, dtypes in [
        ("vjp(101; scatter(@, @, @))", ["float32", "int64", "float32", "float32", "float32"]),
        ("vjp(11; multiply(@, @))", ["float32"] * 4),
        ("vjp(1; prod(@))", ["float32"] * 3),
    ]:
        function = Function.parse(text)
        ranks = [1] * len(dtypes) if "prod" not in text else [1, 0, 0]
        pairs = list(zip(dtypes, ranks, strict=True))
        known = function.needs([(dtype, [3] * rank) for dtype, rank in pairs])
        assert function.needs([(dtype, [None] * rank) for dtype, rank in pairs]) == known
    # The number of places is open, and the number of axes that each has is known.
    gradient = Function.parse("vjp(01; scatter_nd(@, @, shape=[4, 5]))")
    result = ("float32", [4, 5])
    for size in (3, None):
        needs = gradient.needs([("int64", [size, 2]), ("float32", [3]), result, result])
        assert needs == (2, 0, 0, 2)
    looped = Function.parse("vjp(101; vmap(0, 0, 0; index_put(@, [@], @)))")
    for size in (3, None):
        x, updates = ("float32", [size, 4]), ("float32", [size, 2])
        assert looped.needs([x, ("int64", [size, 2]), updates, x, x]) == (0, 2, 0, 0, 2)
    assert Function.parse("vjp(11; multiply(@, @))").needs([("float32", [2])] * 4) == (2, 2, 0, 2)
    assert Function.parse("multiply(@, @)").needs([("float32", [2])] * 2) == (2, 2)


def test_gradients_of_integers_are_errors() -> None:
    x = inlay.to_tensor([1, 2])
    with pytest.raises(inlay.InlayTypeError):
        Function.parse("vjp(11; add(@, @))").call([x, x, x, x])


def test_no_gradient_through_integers() -> None:
    """The gradient of a cast to integers is zero, as are those of comparisons."""
    x = inlay.to_tensor([1.5, 2.5])
    y = inlay.cast(x, "int64")
    assert Function.parse("vjp(1; cast(@, dtype='int64'))").call([x, y, y])[0].tolist() == [0, 0]
    assert not any(Function.parse("equal(@, @)").differentiable)


def test_nothing_wanted_gives_nothing() -> None:
    x = inlay.to_tensor([1.5, 2.5])
    assert Function.parse("vjp(00; add(@, @))").call([x] * 4) == []
    assert Function.parse("vjp(00; add(@, @))").infer([("float64", [2])] * 4) == []
    batched = Function.parse("vmap(_, _, _, 0; vjp(00; add(@, @)))")
    assert batched.call([x, x, x, x.reshape([1, 2])]) == []


@pytest.mark.parametrize("text", ["vjp(11; add(@, @))", "vjp(11; multiply(@, @))"])
def test_wrong_gradients_of_results_are_errors(text: str) -> None:
    """They are not broadcast, also if the function was traced before."""
    x, gradient = inlay.to_tensor(np.array([1.5, 2.5])), Function.parse(text)
    for wrong in [np.ones(1), np.ones(3), np.ones((2, 1)), np.ones((1, 2)), np.ones(())]:
        with pytest.raises(inlay.InlayValueError, match="grad has shape"):
            gradient.call([x, x, x, inlay.to_tensor(wrong)])
        with pytest.raises(inlay.InlayValueError, match="grad has shape"):
            gradient.infer([*specs_of([x, x, x]), ("float64", list(wrong.shape))])
        batch = [inlay.to_tensor(np.stack([one, one])) for one in (*[x.numpy()] * 3, wrong)]
        with pytest.raises(inlay.InlayValueError, match="grad has shape"):
            gradient.vmap((0, 0, 0, 0)).call(batch)
        gradient.call([x, x, x, x])
    with pytest.raises(inlay.InlayTypeError, match="grad has dtype"):
        gradient.call([x, x, x, inlay.to_tensor(np.ones(2, "float32"))])
