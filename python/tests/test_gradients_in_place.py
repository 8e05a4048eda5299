"""Gradients and in-place writes: errors, stale views, and arrays together with tensors."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from gradcheck import Function, grad_list, leaf

import inlay

IN_PLACE: dict[str, tuple[str, Function]] = {
    "setitem": ("setitem", lambda x: x.__setitem__(0, 5.0)),
    "setitem at a mask": ("setitem", lambda x: x.__setitem__(inlay.to_tensor([True] * 3), 5.0)),
    "scatter_": ("scatter", lambda x: x.scatter_([0], np.ones(1))),
    "slice_scatter_": ("slice_scatter", lambda x: x.slice_scatter_(np.ones(1), stop=1)),
    "masked_scatter_": ("masked_scatter", lambda x: x.masked_scatter_([True] * 3, np.ones(3))),
    "masked_fill_": ("masked_fill", lambda x: x.masked_fill_([True] * 3, 1.0)),
    "index_fill_": ("index_fill", lambda x: x.index_fill_([0], 0, 1.0)),
    "index_add_": ("index_add", lambda x: x.index_add_([0], 0, np.ones(1))),
    "index_put_": ("index_put|setitem", lambda x: x.index_put_([[0]], np.ones(1))),
    "put_along_axis_": ("put_along_axis", lambda x: x.put_along_axis_([0], np.ones(1), 0)),
    "select_scatter_": ("select_scatter", lambda x: x.select_scatter_(np.array(1.0), 0, 0)),
    "+=": ("add", lambda x: operator.iadd(x, 1.0)),
    "-=": ("subtract", lambda x: operator.isub(x, 1.0)),
    "*=": ("multiply", lambda x: operator.imul(x, 2.0)),
    "/=": ("divide", lambda x: operator.itruediv(x, 2.0)),
}
each_in_place = pytest.mark.parametrize(("name", "write"), IN_PLACE.values(), ids=IN_PLACE.keys())


@each_in_place
def test_leaves_that_want_a_gradient_are_not_written(name: str, write: Function) -> None:
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match=f"^({name}): (x|input) is a leaf"):
        write(x)
    assert x.tolist() == [1.0, 2.0, 3.0]


@each_in_place
def test_values_that_backward_needs_are_not_to_be_written(name: str, write: Function) -> None:
    x = leaf([1.0, 2.0, 3.0])
    h = x * 1.0
    y = h / (h + 10.0)
    write(h)
    with pytest.raises(RuntimeError, match="divide"):
        y.sum().backward()
    assert x.grad is None


@each_in_place
def test_views_are_not_written_while_recording(name: str, write: Function) -> None:
    x = leaf([1.0, 2.0, 3.0, 4.0])
    h = x * 1.0
    view = h[1:]
    with pytest.raises(RuntimeError, match=f"({name}): (x|input) is a view"):
        write(view)
    assert h.tolist() == [1.0, 2.0, 3.0, 4.0]


@each_in_place
def test_views_from_before_a_write_are_stale(name: str, write: Function) -> None:
    h = leaf([1.0, 2.0, 3.0]) * 1.0
    view = h[1:]
    write(h)
    with pytest.raises(RuntimeError, match=r"multiply.*view"):
        view * 2
    assert (h[1:] * 2).shape == [2]
    with inlay.no_grad():
        view * 2


def test_views_from_before_a_tracked_write_are_stale() -> None:
    """After the write, the memory of the view depends on x, but the view has no such history."""
    x = leaf([1.0, 2.0, 3.0])
    y = inlay.zeros([3], dtype="float64")
    view = y[1:]
    y[...] = x * 2
    try:
        z = (view * 2).sum()
    except RuntimeError:
        return
    assert not z.stop_gradient


def test_values_that_no_rule_reads_may_be_written() -> None:
    # An overwriting scatter saves neither x nor updates, and a sum saves nothing.
    x, u = leaf([1.0, 2.0]), leaf([3.0])
    hx, hu = x * 1.0, u * 1.0
    y = inlay.scatter(hx, [1], hu).sum()
    hx[...] = 7.0
    hu[...] = 7.0
    y.backward()
    assert (grad_list(x), grad_list(u)) == ([1.0, 0.0], [1.0])


def test_an_index_written_after_its_use_is_an_error() -> None:
    u, index = leaf([3.0]), inlay.to_tensor([1])
    y = inlay.scatter(np.zeros(2), index, u).sum()
    index[0] = 0
    with pytest.raises(RuntimeError, match="scatter"):
        y.backward()


def test_a_plain_tensor_may_take_values_that_have_gradients() -> None:
    u = leaf([3.0, 4.0])
    x = inlay.zeros([4], dtype="float64")
    x[1:3] = u * 2
    assert not x.stop_gradient
    (x * x).sum().backward()
    assert grad_list(u) == [24.0, 32.0]


def test_a_failed_write_leaves_the_history_alone() -> None:
    x = leaf([1.0, 2.0])
    h = x * 3
    with pytest.raises(IndexError):
        h.scatter_([5], np.ones(1))
    (h * h).sum().backward()
    assert grad_list(x) == [18.0, 36.0]


def test_overlapping_in_place_writes_have_the_gradients_of_a_copy() -> None:
    x = leaf([1.0, 2.0, 3.0])
    h = x * 1.0
    h[1:] = h[:-1]  # 1, 1, 2
    h.backward(np.array([1.0, 10.0, 100.0]))
    assert grad_list(x) == [11.0, 100.0, 0.0]
    x = leaf([1.0, 2.0, 3.0])
    h = x * 1.0
    options = {"overwrite": False, "reduce": "mul", "include_self": True}
    h.scatter_([0, 1, 2], h, **options)  # squares
    h.sum().backward()
    assert grad_list(x) == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("op", [operator.imul, operator.itruediv])
def test_operators_in_place_with_operands_that_want_gradients(op: Function) -> None:
    # The gradient of 2 x x is 4 x, and that of 2 x / x is 0. The writes save a copy, as in PyTorch.
    x = leaf([1.0, 3.0])
    y = x * 2.0
    op(y, x).sum().backward()
    assert grad_list(x) == {operator.imul: [4.0, 12.0], operator.itruediv: [0.0, 0.0]}[op]


def test_sums_in_place_with_operands_that_want_gradients() -> None:
    x = leaf([1.0, 3.0])
    y = x * 2.0
    y += x
    y -= x * x
    y.sum().backward()
    assert grad_list(x) == [1.0, -3.0]


def test_second_gradients_of_leaves_that_overlap_the_target() -> None:
    # y = t a b with a, b of the leaf: d2y/(da db) = t = 2.
    memory = np.array([2.0, 3.0])
    t, x = inlay.from_numpy(memory), inlay.from_numpy(memory)
    x.stop_gradient = False
    options = {"overwrite": False, "reduce": "mul", "include_self": True}
    t.scatter_([0, 0], x, **options)
    (g,) = inlay.grad(t[0], x, create_graph=True)
    (h,) = inlay.grad(g[0], x)
    assert h.tolist() == [0.0, 2.0]


def test_results_that_backward_needs_are_not_to_be_written() -> None:
    u = leaf([1.0, 2.0])
    y = inlay.scatter(np.zeros(1), [0, 0], u, overwrite=False, reduce="amax")
    y[0] = 1.0
    with pytest.raises(RuntimeError, match="scatter"):
        y.sum().backward()


def test_arrays_beside_tensors() -> None:
    x, u = leaf([1.0, 2.0, 3.0]), np.array([5.0])
    y = inlay.scatter(x, np.array([1]), u)
    assert isinstance(y, inlay.Tensor)
    assert not y.stop_gradient
    y.sum().backward()
    assert grad_list(x) == [1.0, 0.0, 1.0]
    v = leaf([5.0])
    y = inlay.scatter(np.zeros(3), [1], v)
    assert isinstance(y, inlay.Tensor)
    y.sum().backward()
    assert grad_list(v) == [1.0]
    (np.array([2.0]) * v).backward()
    assert grad_list(v) == [3.0]


def test_python_numbers_beside_tensors_in_place() -> None:
    x = leaf([1.0, 2.0])
    h = x * 1.0
    h[0] = 7
    h.masked_fill_([False, True], 8)
    h.sum().backward()
    assert grad_list(x) == [0.0, 0.0]


def test_writing_into_an_array_is_not_recorded() -> None:
    """An array has no gradient. A write that would lose one is an error or is not recorded."""
    a = np.zeros(3)
    u = leaf([5.0])
    try:
        inlay.scatter_(a, [1], u)
    except (RuntimeError, TypeError, ValueError):
        assert a.tolist() == [0.0, 0.0, 0.0]
    else:
        assert a.tolist() == [0.0, 5.0, 0.0]
