"""How to ask for gradients: backward, grad, hooks, no_grad, writes in place, memory, threads."""

from __future__ import annotations

import gc
import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradcheck import Function, grad_list, leaf

import inlay


def test_gradients_stop_unless_they_are_wanted() -> None:
    x = inlay.to_tensor([1.0])
    assert x.stop_gradient
    assert x.is_leaf
    assert x.grad is None
    assert (x * 2).stop_gradient
    assert (x * 2).is_leaf
    for made in [inlay.zeros([2]), inlay.ones([2]), inlay.full([2], 1.0), inlay.arange(2.0)]:
        assert made.stop_gradient
    assert inlay.from_numpy(np.zeros(2)).stop_gradient
    x.stop_gradient = False
    y = x * 2
    assert not x.stop_gradient
    assert not y.stop_gradient
    assert x.is_leaf
    assert not y.is_leaf
    y.backward()
    assert grad_list(x) == [2.0]
    assert y.grad is None


def test_a_computed_tensor_can_be_cut_off() -> None:
    x = leaf([1.0])
    y = x * 2
    y.stop_gradient = True
    assert y.is_leaf
    assert (y * 3).stop_gradient
    y.stop_gradient = False
    (y * 3).backward()
    assert grad_list(y) == [3.0]
    assert x.grad is None


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64"])
def test_only_floats_and_complex_numbers_have_gradients(dtype: str) -> None:
    x = inlay.zeros([2], dtype=dtype)
    with pytest.raises(TypeError, match=f"stop_gradient.*{dtype}"):
        x.stop_gradient = False
    with pytest.raises(TypeError, match=dtype):
        inlay.to_tensor(np.zeros(2, dtype), stop_gradient=False)
    x.stop_gradient = True
    assert leaf([1.0]).cast(dtype).stop_gradient


def test_comparisons_have_no_gradient() -> None:
    x = leaf([1.0, 2.0])
    assert (x > 1).stop_gradient
    assert (x == x).stop_gradient


def test_backward_accumulates_until_it_is_cleared() -> None:
    x = leaf([1.0, 2.0])
    for k in range(1, 4):
        (x * 3).sum().backward()
        assert grad_list(x) == [3.0 * k, 3.0 * k]
    x.clear_grad()
    assert x.grad is None
    x.clear_grad()
    (x * 3).sum().backward()
    assert grad_list(x) == [3.0, 3.0]
    x.grad = None
    assert x.grad is None
    x.grad = inlay.to_tensor(np.array([5.0, 5.0]))
    (x * 3).sum().backward()
    assert grad_list(x) == [8.0, 8.0]
    with pytest.raises(ValueError, match="grad"):
        x.grad = inlay.zeros([3], dtype="float64")
    with pytest.raises(TypeError, match="grad"):
        x.grad = inlay.zeros([2], dtype="float32")


def test_a_collected_gradient_is_its_own_memory() -> None:
    x, seed = leaf([1.0, 2.0]), np.array([1.0, 1.0])
    (x + 0).backward(inlay.from_numpy(seed))
    seed[:] = 9
    assert grad_list(x) == [1.0, 1.0]
    y = leaf([1.0, 2.0])
    (x + y).sum().backward()
    y.grad[...] = 9.0
    assert grad_list(x) == [2.0, 2.0]


def test_gradients_need_no_gradients_themselves() -> None:
    x = leaf([1.0])
    (x * x).backward()
    assert x.grad.stop_gradient
    (g,) = inlay.grad(x * x, x)
    assert g.stop_gradient


def test_detach_shares_memory_but_no_history() -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    d = y.detach()
    assert d.stop_gradient
    assert d.is_leaf
    assert d.data_ptr() == y.data_ptr()
    (d * y).sum().backward()
    assert grad_list(x) == [4.0, 8.0]


def test_writing_to_what_was_detached_is_seen() -> None:
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y * y
    y.detach()[0] = 9.0
    with pytest.raises(RuntimeError, match="multiply"):
        z.sum().backward()


def test_a_second_backward_needs_retain_graph() -> None:
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert grad_list(x) == [6.0, 12.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        inlay.grad(y, x)
    assert grad_list(x) == [6.0, 12.0]


def test_a_freed_part_is_an_error_for_graphs_that_share_it() -> None:
    x = leaf([2.0])
    h = x * x
    (h * 2).backward()
    with pytest.raises(RuntimeError, match=r"multiply.*retain_graph"):
        (h * 3).backward()
    assert grad_list(x) == [8.0]


def test_backward_of_many_elements_needs_a_gradient() -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="backward: grad"):
        (x * 2).backward()
    with pytest.raises(ValueError, match="grad"):
        inlay.grad(x * 2, x)
    with pytest.raises(ValueError, match="grad"):
        (x * 2).backward(np.ones(3))
    with pytest.raises(TypeError, match="grad"):
        (x * 2).backward(np.ones(2, np.float32))
    assert x.grad is None
    (x * 2).backward([1.0, 10.0])
    assert grad_list(x) == [2.0, 20.0]


def test_backward_needs_a_history() -> None:
    with pytest.raises(ValueError, match="stop_gradient"):
        inlay.to_tensor([1.0]).backward()
    with pytest.raises(ValueError, match="stop_gradient"):
        inlay.grad(inlay.to_tensor([1.0]), leaf([1.0]))


def test_backward_of_a_leaf_is_its_own() -> None:
    x = leaf([1.0])
    x.backward()
    assert grad_list(x) == [1.0]


def test_grad_leaves_the_leaves_alone() -> None:
    x, y = leaf([2.0]), leaf([3.0])
    z = x * x * y
    gx, gy = inlay.grad(z, [x, y], retain_graph=True)
    assert (gx.tolist(), gy.tolist()) == ([12.0], [4.0])
    assert x.grad is None
    assert y.grad is None
    # Of computed tensors, of several outputs, of an input twice.
    h = x * 2
    outputs = [h * h, h * y]
    found = inlay.grad(outputs, [h, x, x], grad_outputs=[None, np.array([10.0])])
    assert [g.tolist() for g in found] == [[38.0], [76.0], [76.0]]
    h = x * 2
    (same,) = inlay.grad(h, h)
    assert same.tolist() == [1.0]


def test_grad_leaves_alone_what_is_below_its_inputs() -> None:
    """As in PyTorch: the gradient of h needs nothing that h was computed from."""
    x = leaf([2.0])
    h = x * x
    (g,) = inlay.grad(h * 3, h)
    assert g.tolist() == [3.0]
    h.backward()
    assert grad_list(x) == [4.0]


def test_grad_of_an_input_and_of_what_is_made_of_it() -> None:
    # h = x * x, y = h * x: dy/dh = x, dy/dx = 3 x x.
    x = leaf([2.0])
    h = x * x
    gh, gx = inlay.grad(h * x, [h, x])
    assert (gh.tolist(), gx.tolist()) == ([2.0], [12.0])


def test_unused_inputs_are_an_error_unless_allowed() -> None:
    x, other = leaf([2.0]), leaf([1.0])
    y = x * x
    with pytest.raises(ValueError, match="allow_unused"):
        inlay.grad(y, [x, other], retain_graph=True)
    g, none = inlay.grad(y, [x, other], allow_unused=True, retain_graph=True)
    assert g.tolist() == [4.0]
    assert none is None
    with pytest.raises(ValueError, match="allow_unused"):
        inlay.grad(y, inlay.to_tensor([1.0]))


def test_create_graph_to_any_order() -> None:
    # x ** 5 at 2: 80, 160, 240, 240, 120, and then nothing depends on x.
    x = leaf(2.0)
    y = x * x * x * x * x
    found = []
    for _ in range(5):
        (y,) = inlay.grad(y, x, create_graph=True)
        found.append(y.item())
    assert found == [80.0, 160.0, 240.0, 240.0, 120.0]
    last = inlay.grad(y, x, allow_unused=True)[0] if not y.stop_gradient else None
    assert last is None or last.item() == 0


def test_a_gradient_penalty() -> None:
    # L = sum (dy/dx) ** 2 with y = sum x ** 3: (3 x x) ** 2, so dL/dx = 36 x ** 3.
    x = leaf([1.0, 2.0])
    (g,) = inlay.grad((x * x * x).sum(), x, create_graph=True)
    (g * g).sum().backward()
    assert grad_list(x) == [36.0, 288.0]


def test_no_grad_is_a_context_and_a_decorator() -> None:
    x = leaf([1.0])
    assert inlay.is_grad_enabled()
    with inlay.no_grad():
        assert not inlay.is_grad_enabled()
        assert (x * 2).stop_gradient
        with inlay.no_grad():
            assert (x * 2).stop_gradient
        assert not inlay.is_grad_enabled()
    assert inlay.is_grad_enabled()

    @inlay.no_grad()
    def double(x: Any, depth: int = 0) -> Any:
        """Twice."""
        if depth:
            return double(x, depth - 1)
        assert not inlay.is_grad_enabled()
        return x * 2

    assert double(x).stop_gradient
    assert double(x, 3).stop_gradient
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice."
    assert inlay.is_grad_enabled()
    assert not (x * 2).stop_gradient


def test_no_grad_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), inlay.no_grad():
        raise KeyError
    assert inlay.is_grad_enabled()

    @inlay.no_grad()
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert inlay.is_grad_enabled()
    guard = inlay.no_grad()
    with guard, guard:
        assert not inlay.is_grad_enabled()
    assert inlay.is_grad_enabled()


def test_no_grad_belongs_to_its_thread() -> None:
    seen = []
    with inlay.no_grad():
        thread = threading.Thread(target=lambda: seen.append(inlay.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_leaves_may_be_written_without_recording() -> None:
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    with inlay.no_grad():
        x[...] = x - x.grad * 0.5
    assert x.tolist() == [0.0, 0.0]
    assert not x.stop_gradient
    assert x.is_leaf


def test_hooks_of_leaves() -> None:
    x, seen = leaf([1.0, 2.0]), []
    watch = x.register_hook(lambda g: seen.append(g.tolist()))
    double = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert grad_list(x) == [6.0, 6.0]
    watch.remove()
    watch.remove()
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert grad_list(x) == [12.0, 12.0]
    double.remove()
    (x * 3).sum().backward()
    assert grad_list(x) == [15.0, 15.0]


def test_hooks_see_the_whole_gradient_once() -> None:
    # x is used twice: the hook sees 2 + 3, not its parts; and so for a computed tensor.
    x, seen = leaf([1.0]), []
    h = x * 1.0
    x.register_hook(lambda g: seen.append(("x", g.tolist())))
    h.register_hook(lambda g: seen.append(("h", g.tolist())))
    (x * 2 + x * 3 + h * 4 + h * 5).backward()
    assert seen == [("h", [9.0]), ("x", [14.0])]


def test_hooks_of_computed_tensors_replace_the_gradient() -> None:
    x = leaf([1.0, 2.0])
    h = x * 3
    handle = h.register_hook(lambda g: g * 10)
    y = (h * h).sum()
    y.backward(retain_graph=True)
    assert grad_list(x) == [180.0, 360.0]
    (g,) = inlay.grad(y, h, retain_graph=True)
    assert g.tolist() == [60.0, 120.0]
    x.clear_grad()
    handle.remove()
    y.backward()
    assert grad_list(x) == [18.0, 36.0]


def test_hooks_that_fail() -> None:
    def fail(_: Any) -> None:
        raise KeyError("no such thing")

    hooks = {
        "no such thing": fail,
        "not a Tensor": lambda g: 3.0,
        "shape": lambda g: inlay.zeros([3], dtype="float64"),
        "float32": lambda g: g.cast("float32"),
    }
    for message, hook in hooks.items():
        x = leaf([1.0, 2.0])
        x.register_hook(hook)
        with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
            (x * 2).sum().backward()
        assert x.grad is None
        assert inlay.is_grad_enabled()
    with pytest.raises(ValueError, match="register_hook"):
        inlay.to_tensor([1.0]).register_hook(fail)


def test_hooks_may_run_backward_themselves() -> None:
    x, other = leaf([1.0]), leaf([5.0])
    inner = other * 2
    x.register_hook(lambda g: inner.backward())
    (x * 2).backward()
    assert (grad_list(x), grad_list(other)) == ([2.0], [2.0])


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
    """The memory that the view shows depends on x from then on, and the view does not say so."""
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
    # An overwriting scatter keeps neither x nor updates, and a sum keeps nothing.
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
    # 2 x x: 4 x; and 2 x / x: 0. PyTorch keeps a copy, and so do the writes here.
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
    """An array can't have a gradient; a write that would lose one is an error or not recorded."""
    a = np.zeros(3)
    u = leaf([5.0])
    try:
        inlay.scatter_(a, [1], u)
    except (RuntimeError, TypeError, ValueError):
        assert a.tolist() == [0.0, 0.0, 0.0]
    else:
        assert a.tolist() == [0.0, 5.0, 0.0]


# Size, memory, threads.

DEPTH = 100_000
STEPS: dict[str, Function] = {
    "add": lambda y: y + 1.0,
    "multiply": lambda y: y * 1.0,  # keeps its inputs
    "view": lambda y: y[...],
    "amax": lambda y: y.amax(0, keepdim=True),  # keeps its result
    "in place": lambda y: y.index_add_([0], 0, np.ones(1)),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_deep_graphs_need_no_deep_stack(step: Function) -> None:
    found = []

    def run() -> None:
        x = leaf([1.0])
        y = x * 1.0
        for _ in range(DEPTH):
            y = step(y)
        y.backward(retain_graph=True)
        found.append(grad_list(x))
        (g,) = inlay.grad(y, x, create_graph=True)
        found.append(g.tolist())
        del g
        del y
        gc.collect()
        found.append("dropped")

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert found == [[1.0], [1.0], "dropped"]


def test_memory_is_back_after_many_steps() -> None:
    def train(steps: int) -> None:
        rng = np.random.default_rng(0)
        index = inlay.to_tensor(rng.integers(0, 20, 60))
        w, b = leaf(rng.standard_normal((20, 8))), leaf(np.zeros(8))
        for k in range(steps):
            rows = w.index_select(index) * w.index_select(index) + b
            h = inlay.scatter(w, index, rows, overwrite=False, reduce="mean", include_self=True)
            m = inlay.scatter(w, index, rows * 0.1, overwrite=False, reduce="mul")
            h[:2] = m[:2]
            h = h.masked_fill(h.numpy() > 3, 0.0)
            loss = (h * h).mean() + (m * 1e-3).amax()
            handle = h.register_hook(lambda g: g * 1.0)
            if k % 10 == 0:
                (g,) = inlay.grad(loss, w, create_graph=True)
                loss = loss + (g * g).sum()
            if k % 7 != 3:  # some graphs are dropped without a backward
                loss.backward(retain_graph=k % 5 == 0)
            if k % 3 == 0:
                handle.remove()
            if w.grad is not None and b.grad is not None:
                with inlay.no_grad():
                    w[...] = w - w.grad * 1e-3
                    b[...] = b - b.grad * 1e-3
            w.clear_grad()
            b.clear_grad()

    train(3)
    gc.collect()
    before = inlay.memory_stats()["in_use"]
    train(1000)
    gc.collect()
    assert inlay.memory_stats()["in_use"] == before


def test_errors_leave_no_memory_behind() -> None:
    def fail() -> None:
        x = leaf(np.ones(1000))
        h = x * x
        y = (h * h).sum()
        h[0] = 5.0
        with pytest.raises(RuntimeError):
            y.backward()
        y = (x * x).sum()
        x.register_hook(lambda g: 1 / 0)
        with pytest.raises(RuntimeError):
            y.backward()

    fail()
    gc.collect()
    before = inlay.memory_stats()["in_use"]
    for _ in range(100):
        fail()
    gc.collect()
    assert inlay.memory_stats()["in_use"] == before


def in_threads(work: Callable[[int], None], count: int = 4) -> None:
    barrier, errors = threading.Barrier(count), []

    def run(k: int) -> None:
        try:
            barrier.wait()
            work(k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_threads_with_graphs_of_their_own() -> None:
    def work(k: int) -> None:
        rng = np.random.default_rng(k)
        index = rng.integers(0, 50, 200)
        for _ in range(30):
            x, u = leaf(rng.standard_normal((50, 40))), leaf(rng.standard_normal((200, 40)))
            seed = rng.standard_normal((50, 40))
            y = inlay.scatter(x, index, u, overwrite=False, include_self=True)
            (y * y).backward(seed)
            np.testing.assert_allclose(x.grad.numpy(), 2 * y.numpy() * seed)
            np.testing.assert_allclose(u.grad.numpy(), (2 * y.numpy() * seed)[index])

    in_threads(work)


def test_threads_that_share_a_leaf() -> None:
    # 4 threads add 25 gradients each of k + 1 at a time: 25 (1 + 2 + 3 + 4) = 250.
    x = leaf(np.zeros(200_000))

    def work(k: int) -> None:
        for _ in range(25):
            (x * float(k + 1)).sum().backward()

    in_threads(work)
    np.testing.assert_array_equal(x.grad.numpy(), np.full(200_000, 250.0))


def test_threads_that_share_a_graph() -> None:
    x = leaf(np.full(10_000, 2.0))
    y = (x * x * x).sum()

    def work(k: int) -> None:
        for _ in range(25):
            (g,) = inlay.grad(y, x, retain_graph=True)
            np.testing.assert_array_equal(g.numpy(), np.full(10_000, 12.0))

    in_threads(work)


def test_threads_with_hooks() -> None:
    x, seen = leaf(np.ones(1000)), []
    x.register_hook(lambda g: seen.append(g.numpy()[0]))
    y = (x * 3).sum()

    def work(k: int) -> None:
        for _ in range(25):
            inlay.grad(y, x, retain_graph=True)

    in_threads(work)
    assert seen == [3.0] * 100
