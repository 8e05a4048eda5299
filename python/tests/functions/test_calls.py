"""Functions give what the operations give, in place and out of place."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from cases import OPERATIONS, Case, assert_same

import inlay
from inlay._inlay import Function

from .support import CASES, bound, for_each, objects_of, operate, outcome

KEPT = 1024  # the number of functions that are remembered


def assert_error(case: Case, error: object) -> None:
    assert isinstance(error, inlay.InlayError)
    assert isinstance(error, case.error or ())
    assert all(word in str(error) for word in case.words), error


def test_every_operation_has_cases() -> None:
    assert {case.op for case in CASES if case.expect is not None} == OPERATIONS.keys()


@for_each(CASES)
def test_call(case: Case) -> None:
    if case.expect is None:
        made = outcome(lambda: bound(case))
        if not isinstance(made, Exception):
            made = outcome(lambda: made[0].call(made[1]))
        assert_error(case, made)
        return
    function, tensors = bound(case)
    before = [tensor.numpy().copy() for tensor in tensors]
    results = function.call(tensors)
    assert (len(results), function.outputs) == (1, 1)
    assert len(tensors) == function.inputs == len(function.differentiable)
    assert function.name == case.op
    assert_same(results[0].numpy(), case.expect)
    for tensor, old in zip(tensors, before, strict=True):
        assert_same(tensor.numpy(), old)


@for_each(case.in_place() for case in CASES if case.inplace)
def test_write(case: Case) -> None:
    if case.expect is None:
        made = outcome(lambda: bound(case))
        if isinstance(made, Exception):
            assert_error(case, made)
            return
        function, tensors = made
        before = tensors[0].numpy().copy()
        assert_error(case, outcome(lambda: function.write(tensors)))
        assert_same(tensors[0].numpy(), before)
        return
    function, tensors = bound(case)
    others = [tensor.numpy().copy() for tensor in tensors[1:]]
    assert function.write(tensors) is None
    assert_same(tensors[0].numpy(), case.expect)
    for tensor, old in zip(tensors[1:], others, strict=True):
        assert_same(tensor.numpy(), old)


def test_arrays_are_taken_and_written() -> None:
    x = np.array([1.0, 2.0, 3.0])
    function = Function("scatter", (None, None, None, False))
    index, updates = np.array([0, 0]), np.array([5.0, 6.0])
    (result,) = function.call([x, index, updates])
    assert isinstance(result, inlay.Tensor)
    assert result.tolist() == [11.0, 2.0, 3.0]
    function.write([x, index, updates])
    assert x.tolist() == [11.0, 2.0, 3.0]


def test_only_operations_with_an_in_place_form_are_written() -> None:
    x = inlay.to_tensor([1.0])
    for function, count in [
        (Function.parse("add(@, @)"), 2),
        (Function.parse("vjp(101; scatter(@, @, @))"), 5),
        (Function.parse("vmap(0, 0, 0; scatter(@, @, @))"), 3),
    ]:
        with pytest.raises(inlay.InlayValueError, match="no in-place form"):
            function.write([x] * count)


def test_wrong_numbers_of_tensors_are_errors() -> None:
    x = inlay.to_tensor([1.0])
    for text in ["add(@, @)", "concat([@, @])", "vjp(11; add(@, @))", "vmap(0, 0; add(@, @))"]:
        function = Function.parse(text)
        for count in [*range(function.inputs), function.inputs + 1]:
            with pytest.raises(inlay.InlayValueError, match="takes"):
                function.call([x] * count)
            with pytest.raises(inlay.InlayValueError, match="takes"):
                function.infer([("float32", [1])] * count)
            with pytest.raises(inlay.InlayValueError, match="takes"):
                function.needs([("float32", [1])] * count)


def test_wrong_arguments_are_errors() -> None:
    with pytest.raises(TypeError, match="no_such"):
        Function("no_such", ())
    with pytest.raises((TypeError, ValueError)):
        Function("tril", (None, 0, None, 1, 2, 3))
    with pytest.raises(inlay.InlayTypeError, match="overwrite"):
        Function("scatter", (None, None, None, 3))
    with pytest.raises(inlay.InlayError, match="axis"):
        Function("index_select", (None, None, "x"))


@pytest.mark.parametrize(
    "wanted", [(), (True, True), (True, False, True, False), (False, True, False)]
)
def test_wrong_flags_of_vjp_are_errors(wanted: tuple[bool, ...]) -> None:
    with pytest.raises(inlay.InlayValueError, match="scatter: vjp"):
        Function.parse("scatter(@, @, @)").vjp(wanted)


@pytest.mark.parametrize("axes", [(), (0, 0), (0, 0, 0, 0), (None, None, None)])
def test_wrong_numbers_of_axes_of_vmap_are_errors(axes: tuple[int | None, ...]) -> None:
    with pytest.raises(inlay.InlayValueError, match="scatter: vmap"):
        Function.parse("scatter(@, @, @)").vmap(axes)


def test_gradients_are_not_recorded() -> None:
    x = inlay.to_tensor([1.0, 2.0], stop_gradient=False)
    for text, count in [("multiply(@, @)", 2), ("vjp(11; multiply(@, @))", 4)]:
        for result in Function.parse(text).call([x] * count):
            assert result.stop_gradient


def test_more_functions_than_are_kept() -> None:
    x = inlay.to_tensor(np.arange(6.0).reshape(2, 3))
    first = Function("tril", (None, 0))
    texts = []
    for diagonal in range(-KEPT, KEPT):
        function = Function("tril", (None, diagonal))
        texts.append(function.text)
        np.testing.assert_array_equal(function.call([x])[0].numpy(), np.tril(x.numpy(), diagonal))
    assert len(set(texts)) == 2 * KEPT
    # The oldest was forgotten, and is made again.
    assert Function("tril", (None, 0)) == first
    assert first.call([x])[0].tolist() == np.tril(x.numpy()).tolist()
    for text in texts[:: KEPT // 4]:
        assert Function.parse(text).vjp((True,)).call([x, x, x])[0].shape == x.shape


@pytest.mark.parametrize(
    "text",
    [
        "scatter(@, @, @, overwrite=False)",
        "vjp(101; scatter(@, @, @, overwrite=False))",
        "vmap(0, 0, 0; scatter(@, @, @, overwrite=False))",
    ],
)
def test_two_threads_call_one_function(text: str) -> None:
    """Large enough that the lock of the interpreter is released, with shapes that differ."""
    function = Function.parse(text)
    barrier = threading.Barrier(2)
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            for turn in range(5):
                rows = 300 + 50 * turn + seed
                x, updates = rng.normal(size=(rows, 100)), rng.normal(size=(rows, 100))
                index = rng.integers(0, rows, rows)
                given = [x, index, updates]
                if text.startswith("vjp"):
                    given += [x, updates]
                if text.startswith("vmap"):
                    given = [np.stack([one, one]) for one in given]
                tensors = [inlay.to_tensor(one) for one in given]
                barrier.wait()
                results = function.call(tensors)
                expected = inlay.scatter(x, index, updates, overwrite=False)
                if text.startswith("vjp"):
                    kept = updates.copy()
                    kept[index] = 0
                    np.testing.assert_array_equal(results[0].numpy(), kept)
                    np.testing.assert_array_equal(results[1].numpy(), updates[index])
                elif text.startswith("vmap"):
                    np.testing.assert_array_equal(results[0].numpy(), [expected, expected])
                else:
                    np.testing.assert_array_equal(results[0].numpy(), expected)
        except BaseException as problem:
            problems.append(problem)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems


def test_the_operation_and_the_function_agree_on_a_label() -> None:
    """A label names a node of a program; a function has none."""
    assert Function("tril", (None, 1, "lower")) == Function("tril", (None, 1))


def test_bound_arguments_are_those_of_the_operation() -> None:
    """The helpers of these tests lose no argument."""
    for case in CASES:
        if case.expect is not None and case.dtype in ("", "float64"):
            _, tensors = bound(case)
            assert_same(operate(case, tensors).numpy(), case.expect)
            assert len(objects_of(case)) == len(OPERATIONS[case.op].arguments)


def test_large_batches_are_one_call() -> None:
    """A call for each item would take minutes."""
    items, size = 100_000, 4
    x = inlay.zeros([items, size], dtype="float32")
    index = inlay.to_tensor(np.arange(items * 2).reshape(items, 2) % size)
    function = Function.parse("vmap(0, 0, 0; scatter(@, @, @, overwrite=False))")
    (result,) = function.call([x, index, inlay.ones([items, 2], dtype="float32")])
    assert math.isclose(float(result.numpy().sum()), 2 * items)
