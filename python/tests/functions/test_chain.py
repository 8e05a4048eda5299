"""Chains of functions give what their steps give one after the other."""

from __future__ import annotations

import numpy as np
import pytest

import inlay
from inlay._inlay import Function

rng = np.random.default_rng(0)
X = rng.random((4, 3))
ROW, DIAGONAL = rng.random((1, 3)), rng.random(3)
INDEX, UPDATES = np.array([2, 0, 2]), rng.random((3, 3))
MASK, SOURCE = rng.random((4, 3)) < 0.5, rng.random(12)

STEPS = [
    Function("slice_scatter", (None, None, 0, 1, 2)),
    Function("diagonal_scatter", (None, None)),
    Function("scatter", (None, None, None, False)),
    Function("masked_scatter", (None, None, None)),
]
INPUTS = [X, ROW, DIAGONAL, INDEX, UPDATES, MASK, SOURCE]
WANTED = (True, True, True, False, True, False, True)


def by_steps(x, row, diagonal, index, updates, mask, source):
    y = inlay.slice_scatter(x, row, start=1, stop=2)
    y = inlay.diagonal_scatter(y, diagonal)
    y = inlay.scatter(y, index, updates, overwrite=False)
    return inlay.masked_scatter(y, mask, source)


def test_a_chain_is_the_composition_of_its_steps() -> None:
    chain = Function.chain(STEPS)
    assert (chain.inputs, chain.outputs, chain.name) == (7, 1, "slice_scatter")
    assert chain.differentiable == WANTED
    before = [x.copy() for x in INPUTS]
    (result,) = chain.call(INPUTS)
    np.testing.assert_array_equal(result.numpy(), by_steps(*INPUTS))
    for now, old in zip(INPUTS, before, strict=True):
        np.testing.assert_array_equal(now, old)


def test_the_text_of_a_chain_can_be_read() -> None:
    text = "chain(slice_scatter(@, @, axis=0, start=1, stop=2); diagonal_scatter(@, @))"
    chain = Function.chain(STEPS[:2])
    assert chain.text == text
    assert Function.parse(text) == chain
    assert Function.chain(STEPS[:1]) == STEPS[0]
    nested = Function.chain([chain, chain])
    assert Function.parse(nested.text) == nested
    assert nested.inputs == 5


def test_shapes_of_a_chain() -> None:
    specs = [(str(np.asarray(x).dtype), list(np.shape(x))) for x in INPUTS]
    assert Function.chain(STEPS).infer(specs) == [("float64", [4, 3])]
    specs[0] = ("float64", [None, 3])
    assert Function.chain(STEPS[:2]).infer(specs[:3]) == [("float64", [(0, 0), 3])]


def test_the_gradient_of_a_chain() -> None:
    chain = Function.chain(STEPS)
    (result,) = chain.call(INPUTS)
    upstream = rng.random((4, 3))
    got = chain.vjp(WANTED).call([*INPUTS, result, upstream])
    tensors = [
        inlay.to_tensor(x, stop_gradient=not wanted)
        for x, wanted in zip(INPUTS, WANTED, strict=True)
    ]
    leaves = [x for x, wanted in zip(tensors, WANTED, strict=True) if wanted]
    expected = inlay.grad(by_steps(*tensors), leaves, inlay.to_tensor(upstream))
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize(
    "axes",
    [
        (0, None, None, None, None, None, None),
        (None, None, 1, None, None, None, None),
        (None, None, None, None, None, 0, None),
        (1, 0, 0, 0, 0, 0, 0),
    ],
)
def test_a_batch_of_a_chain(axes: tuple[int | None, ...]) -> None:
    items = [[x + k if x.dtype == float else x for x in INPUTS] for k in range(3)]
    given = [
        x if axis is None else np.stack([item[k] for item in items], axis)
        for k, (x, axis) in enumerate(zip(INPUTS, axes, strict=True))
    ]
    (result,) = Function.chain(STEPS).vmap(axes).call(given)
    for k, item in enumerate(items):
        each = [x if axis is None else y for x, y, axis in zip(INPUTS, item, axes, strict=True)]
        np.testing.assert_array_equal(result.numpy()[k], by_steps(*each))


def test_an_error_names_the_step_and_changes_nothing() -> None:
    add = Function("index_add", (None, None, 0, None))
    chain = Function.chain([Function("tril", (None,)), add])
    x = X.copy()
    with pytest.raises(IndexError, match=r"^index_add: index\[0\] is 9, out of range"):
        chain.call([x, np.array([9]), ROW])
    np.testing.assert_array_equal(x, X)
    with pytest.raises(TypeError, match=r"^index_add: "):
        chain.call([x, np.array([1]), ROW.astype("f4")])


@pytest.mark.parametrize(
    "text", ["chain()", "chain(tril(@)", "chain(tril(@);)", "chain(zeros(shape=[2]); tril(@))"]
)
def test_bad_texts(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|a step of a chain"):
        Function.parse(text)


def test_a_chain_needs_steps_with_one_result() -> None:
    with pytest.raises(ValueError, match="a chain needs a step"):
        Function.chain([])
    two = Function("add", (None, None)).vjp((True, True))
    with pytest.raises(ValueError, match="a step of a chain has inputs and one result"):
        Function.chain([Function("tril", (None,)), two])
    tril = Function("tril", (None,))
    deep = tril
    for _ in range(64):
        deep = Function.chain([deep, tril])
    with pytest.raises(ValueError, match="more than 64 derivatives and batches"):
        Function.chain([deep, tril])
