"""Programs: what they say, plan, refuse and keep; and functions that are traced."""

from __future__ import annotations

import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inlay
from inlay import static

RNG = np.random.default_rng(5)


def chain() -> tuple[static.Program, inlay.Tensor]:
    """All five, one after the other, of open sizes."""
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None, None], "float32")
        rows = static.data("rows", [None, None], "float32")
        index = static.data("index", [None], "int64")
        mask = static.data("mask", [None, None], "bool")
        y = inlay.slice_scatter(x, rows, start=0, stop=2, name="patch")
        y = y.diagonal_scatter(inlay.diagonal(x) * 2)
        y = y.scatter(index, rows, overwrite=False, name="totals")
        y = y.masked_scatter(mask, rows)
        y = y.index_fill(index, 0, 0.5)
    return program, y


def feeds(size: int = 5) -> dict[str, np.ndarray]:
    return {
        "x": RNG.random((size, size), np.float32),
        "rows": RNG.random((2, size), np.float32),
        "index": np.array([1, -1]),
        "mask": np.eye(size, dtype=bool),
    }


def eager(feed: dict[str, np.ndarray]) -> np.ndarray:
    x, rows, index, mask = (inlay.to_tensor(feed[name]) for name in ("x", "rows", "index", "mask"))
    y = inlay.slice_scatter(x, rows, start=0, stop=2)
    y = y.diagonal_scatter(inlay.diagonal(x) * 2)
    y = y.scatter(index, rows, overwrite=False)
    y = y.masked_scatter(mask, rows)
    return y.index_fill(index, 0, 0.5).numpy()


# Programs in words.


def test_a_listing_has_names_lines_and_open_sizes() -> None:
    program, y = chain()
    text = str(program)
    assert "x: float32 [?, ?] = data" in text
    assert "'totals', test_static.py:" in text
    assert y.shape == [-1, -1]
    assert y.size == -1
    assert repr(y) == "Tensor(symbolic, shape=[?, ?], dtype=float32)"


def test_an_explanation_counts_copies_and_memory() -> None:
    program, y = chain()
    assert "depends on sizes" in program.explain([y])
    static.Executor().run(program, feeds(), [y])
    text = program.explain([y])
    assert "copies saved: 4" in text
    assert text.count("in place") == 4
    plan = program.plan([y])
    # The result, and the diagonal's new values.
    assert plan.copies_saved == 4
    assert plan.peak_memory == 4 * (25 + 5)


def test_a_picture_is_valid_svg() -> None:
    program, _ = chain()
    root = ElementTree.fromstring(program.to_svg())
    assert root.tag.endswith("svg")
    assert len([node for node in root.iter() if node.tag.endswith("}g")]) == len(program)


# Planning.


def test_a_chain_of_writes_copies_once() -> None:
    script = """
import numpy as np, inlay
from inlay import static
program = static.Program()
x = program.data("x", [1 << 21], "float32")
y = x
for k in range(8):
    y = inlay.slice_scatter(y, np.full(1024, k, "float32"), start=k * 1024, stop=(k + 1) * 1024)
feed = {"x": inlay.to_tensor(np.ones(1 << 21, "float32"))}
before = inlay.memory_stats()["in_use"]
result = program.run(feed, [y], False, False)[0]
print(inlay.memory_stats()["peak"] - before, result.nbytes)
assert result.numpy()[: 8 * 1024 : 1024].tolist() == list(range(8))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    peak, size = map(int, done.stdout.split())
    # With the feed, which was there before, two buffers.
    assert size <= peak < size + (1 << 20)


def test_what_is_equal_dead_or_known_is_not_computed_again() -> None:
    program = static.Program()
    x = program.data("x", [4], "float32")
    one = (x * 2).sum() + (x * 2).sum()
    _dead = x + 3
    known = inlay.to_tensor([1.0, 2.0]).sum()
    result = one + inlay.zeros([3]).sum() + known
    text = program.explain([result])
    assert "multiply(" in text
    assert text.count("multiply(") == 1
    assert text.count("= sum(") == 1
    assert static.Executor().run(program, {"x": np.ones(4, "f4")}, [result])[0] == 19


def test_donated_feeds_are_written_and_others_are_not() -> None:
    program = static.Program()
    x = program.data("x", [None], "float32")
    y = inlay.slice_scatter(x, np.zeros(2, "f4"), start=0, stop=2)
    array = np.ones(4, "f4")
    kept = program.run({"x": array}, [y])[0]
    assert array.tolist() == [1, 1, 1, 1]
    assert kept.tolist() == [0, 0, 1, 1]
    given = program.run({"x": array}, [y], donate=True)[0]
    assert given.tolist() == [0, 0, 1, 1]
    assert array.tolist() == [0, 0, 1, 1]
    assert program.plan([y], donate=True).copies_saved == 1
    # What can't be written is copied after all.
    frozen = np.ones(4, "f4")
    frozen.flags.writeable = False
    assert program.run({"x": frozen}, [y], donate=True)[0].tolist() == [0, 0, 1, 1]
    assert frozen.tolist() == [1, 1, 1, 1]


def test_results_share_memory_with_nothing() -> None:
    program = static.Program()
    x = program.data("x", [None], "float32")
    constant = inlay.to_tensor([5.0])
    view, same = x[1:], x[1:]
    array = np.ones(3, "f4")
    results = program.run({"x": array}, [x, view, same, view + constant, constant])
    for one in results:
        one += 1
    assert array.tolist() == [1, 1, 1]
    again = program.run({"x": array}, [x, view, same, view + constant, constant])
    assert [one.tolist() for one in again] == [[1, 1, 1], [1, 1], [1, 1], [6, 6], [5]]


def test_a_constant_is_what_it_was_when_it_was_used() -> None:
    program = static.Program()
    x = program.data("x", [1], "float32")
    constant = inlay.to_tensor([1.0])
    y = x + constant
    constant[0] = 7.0
    z = x + constant
    results = program.run({"x": np.zeros(1, "f4")}, [y, z])
    assert [one.tolist() for one in results] == [[1], [7]]


# Views and writes in place.


def test_writes_in_place_move_the_tensor_on() -> None:
    program = static.Program()
    x = program.data("x", [3], "float32")
    before = x + 0
    x[0] = 5.0
    x.index_fill_(inlay.to_tensor([2]), 0, 9.0)
    array = np.ones(3, "f4")
    results = program.run({"x": array}, [before, x])
    assert [one.tolist() for one in results] == [[1, 1, 1], [5, 1, 9]]
    assert array.tolist() == [1, 1, 1]


def test_views_are_not_written_and_not_used_when_stale() -> None:
    program = static.Program()
    x = program.data("x", [3], "float32")
    view = x[1:]
    with pytest.raises(RuntimeError, match="view in a program"):
        view.index_fill_(inlay.to_tensor([0]), 0, 1.0)
    x[0] = 1.0
    with pytest.raises(RuntimeError, match="take the view again"):
        view + 1


# Errors.


def test_errors_when_built_have_name_and_line() -> None:
    program = static.Program()
    x = program.data("x", [None, 3], "float32")
    with pytest.raises(
        ValueError, match=r"scatter: updates has shape \[2, 4\].*'rows', test_static.py"
    ):
        inlay.scatter(x, [0, 1], np.zeros((2, 4), "f4"), name="rows")
    with pytest.raises(TypeError, match="scatter: updates has dtype float64"):
        inlay.scatter(x, [0, 1], np.zeros((2, 3)))
    # What failed is not there.
    assert len(program) == 1 or "scatter" not in str(program)


def test_errors_when_run_have_name_and_line_and_change_nothing() -> None:
    program, y = chain()
    feed = feeds()
    bad = {**feed, "index": np.array([1, 9])}
    with pytest.raises(IndexError, match=r"index\[1\] is 9.*'totals', test_static.py:\d+"):
        static.Executor().run(program, bad, [y])
    short = {**feed, "mask": np.ones((5, 5), bool)}
    with pytest.raises(ValueError, match="masked_scatter: source has 10 elements, mask selects 25"):
        static.Executor().run(program, short, [y])
    np.testing.assert_array_equal(static.Executor().run(program, feed, [y])[0], eager(feed))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"x": None}, r'feed "x" is missing, expected float32 \[\?, \?\]'),
        ({"z": np.zeros(1)}, r'feed "z" is not among the program\'s inputs \["index"'),
        ({"x": np.zeros((5, 5))}, r'feed "x" is float64 \[5, 5\], expected float32 \[\?, \?\]'),
        ({"x": np.zeros(5, "f4")}, r'feed "x" is float32 \[5\], expected float32 \[\?, \?\]'),
    ],
)
def test_wrong_feeds_are_named(change: dict[str, Any], text: str) -> None:
    program, y = chain()
    feed = {name: value for name, value in {**feeds(), **change}.items() if value is not None}
    with pytest.raises(ValueError, match=text):
        static.Executor().run(program, feed, [y])


def test_values_are_not_there_when_built() -> None:
    program = static.Program()
    x = program.data("x", [], "float32")
    for ask in (
        bool,
        float,
        int,
        lambda x: x.item(),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        np.asarray,
    ):
        with pytest.raises(RuntimeError, match=r"is symbolic.*use where"):
            ask(x)


def test_programs_are_not_mixed() -> None:
    x, y = static.Program().data("x", [2]), static.Program().data("y", [2])
    with pytest.raises(ValueError, match="different programs"):
        x + y
    with pytest.raises(ValueError, match="different programs"):
        static.Program().plan([x])


def test_a_parameter_is_not_taken_as_a_constant() -> None:
    x = static.Program().data("x", [2])
    with pytest.raises(RuntimeError, match="wants a gradient but is no input"):
        x * inlay.to_tensor([1.0, 2.0], stop_gradient=False)


# Gradients.


def test_gradients_are_nodes() -> None:
    program = static.Program()
    with static.program_guard(program):
        x = static.data("x", [None, 2], "float32")
        index = static.data("index", [None], "int64")
        x.stop_gradient = False
        y = inlay.scatter(inlay.zeros([3, 2]), index, x * x, overwrite=False, reduce="mean")
        (dx,) = static.gradients(y, x)
        ((parameter, again),) = static.append_backward(y.sum(), [x])
    assert parameter is x
    array, at = RNG.random((4, 2), np.float32), np.array([0, 2, 0, 0])
    results = static.Executor().run(program, {"x": array, "index": at}, [dx, again])
    leaf = inlay.to_tensor(array, stop_gradient=False)
    out = inlay.scatter(inlay.zeros([3, 2]), at, leaf * leaf, overwrite=False, reduce="mean")
    out.sum().backward()
    for one in results:
        np.testing.assert_array_equal(one, leaf.grad.numpy())


# Threads.


def test_many_threads_run_one_program() -> None:
    program, y = chain()
    executor, failures = static.Executor(), []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(30):
            size = int(rng.integers(3, 9))
            feed = {**feeds(size), "x": rng.random((size, size), np.float32)}
            if rng.integers(4) == 0:
                with pytest.raises(IndexError):
                    executor.run(program, {**feed, "index": np.array([0, size])}, [y])
            if not np.array_equal(executor.run(program, feed, [y])[0], eager(feed)):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Files.


def test_a_program_runs_in_another_process(tmp_path: Path) -> None:
    program, y = chain()
    path, feed = tmp_path / "chain.inlay", feeds()
    static.save(program, str(path), {"y": y})
    np.savez(tmp_path / "feed.npz", **feed)
    script = """
import sys, numpy as np
from inlay import static
program = static.load(sys.argv[1])
assert program.inputs == ["x", "rows", "index", "mask"] and program.outputs == ["y"]
(y,) = static.Executor().run(program, dict(np.load(sys.argv[2])))
np.save(sys.argv[3], y)
"""
    files = [str(path), str(tmp_path / "feed.npz"), str(tmp_path / "y.npy")]
    done = subprocess.run([sys.executable, "-c", script, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), eager(feed))


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    program, y = chain()
    path = tmp_path / "chain.inlay"
    static.save(program, str(path), {"y": y})
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="load: "):
            static.load(str(path))
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="load: "):
            static.load(str(path))
    with pytest.raises(ValueError, match="load: "):
        static.load(str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="no outputs"):
        static.save(static.Program(), str(path))


# Functions.


def test_jit_traces_once_for_dtypes_and_ranks() -> None:
    calls = []

    @inlay.jit
    def twice(x: Any) -> Any:
        calls.append(repr(x))
        return x * 2

    for shape in [(2,), (3,), (0,)]:
        assert twice(np.ones(shape)).tolist() == [2.0] * shape[0]
    assert calls == ["Tensor(symbolic, shape=[?], dtype=float64)"]
    twice(np.ones((2, 2)))
    twice(np.ones(2, "f4"))
    assert len(calls) == 3
    assert isinstance(twice(inlay.ones([2])), inlay.Tensor)
    assert len(calls) == 3


def test_jit_asks_for_sizes_only_where_it_must() -> None:
    calls = []

    @inlay.jit
    def halves(x: Any) -> Any:
        calls.append(1)
        return x.reshape([2, x.shape[0] // 2])

    assert halves(np.arange(4)).tolist() == [[0, 1], [2, 3]]
    assert halves(np.arange(6)).shape == (2, 3)
    seen = len(calls)
    assert halves(np.arange(6) + 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert len(calls) == seen


def test_jit_takes_constants_keywords_and_structures() -> None:
    @inlay.jit
    def function(x: Any, how: str, *, scale: float = 1.0) -> Any:
        y = inlay.scatter(x, [0], x[:1] * scale, overwrite=how == "assign", reduce="sum")
        return {"y": y, "pair": (y, [x + 1]), "name": how}

    for how, scale in [("assign", 2.0), ("sum", 3.0), ("sum", 4.0)]:
        got = function(np.ones(2), how, scale=scale)
        want = function._function(inlay.ones([2], "float64"), how, scale=scale)
        assert got["name"] == how
        assert isinstance(got["pair"], tuple)
        np.testing.assert_array_equal(got["y"], want["y"].numpy())
        np.testing.assert_array_equal(got["pair"][1][0], want["pair"][1][0].numpy())
    with pytest.raises(TypeError, match="pass lists of numbers as arrays"):
        function([1.0], "sum")


def test_jit_refuses_conditions_on_values() -> None:
    @inlay.jit
    def function(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="use where or a masked operation"):
        function(np.ones(2))


def test_gradients_go_through_jit() -> None:
    @inlay.jit
    def cube(x: Any) -> Any:
        return x * x * x

    x = inlay.to_tensor([2.0], stop_gradient=False)
    cube(x).backward()
    assert x.grad.tolist() == [12.0]

    @inlay.jit
    def slope(x: Any) -> Any:
        x = x.detach()
        x.stop_gradient = False
        (dx,) = inlay.grad(cube(x), x)
        return dx

    assert slope(np.array([3.0])).tolist() == [27.0]


def test_jit_may_be_donated_its_arguments() -> None:
    @inlay.jit(donate=True)
    def patch(x: Any, y: Any) -> Any:
        return inlay.slice_scatter(x, y, start=0, stop=1)

    x = inlay.ones([3])
    y = patch(x, inlay.zeros([1]))
    assert y.tolist() == [0, 1, 1]
    assert y.data_ptr() == x.data_ptr()


def test_jit_tells_constants_apart() -> None:
    @inlay.jit
    def filled(x: Any, how: Any) -> Any:
        return inlay.masked_fill(x, x == x, how if isinstance(how, float) else how[0])

    x, whole = np.zeros(1), np.zeros(1, int)
    assert np.signbit(filled(x, -0.0)).all()
    assert not np.signbit(filled(x, 0.0)).any()
    assert filled(whole, (1,)).tolist() == [1]
    with pytest.raises(TypeError, match="float"):
        filled(whole, (1.0,))
    with pytest.raises(TypeError, match="not in tuples"):
        filled(x, (inlay.zeros([1]),))


def test_jit_says_that_a_size_depends_on_values() -> None:
    @inlay.jit
    def column(x: Any) -> Any:
        chosen = x[x > 0]
        return chosen.reshape([chosen.shape[0], 1])

    with pytest.raises(ValueError, match="size that depends on values"):
        column(np.ones(2))


def test_jit_of_a_condition_runs_itself_for_a_gradient() -> None:
    @inlay.jit
    def absolute(x: Any) -> Any:
        return x if x.item() > 0 else -x

    x = inlay.to_tensor([-2.0], stop_gradient=False)
    absolute(x).backward()
    assert x.grad.tolist() == [-1.0]


def test_rows_of_an_open_size_are_not_iterated() -> None:
    x = static.Program().data("x", [None, 2])
    with pytest.raises(TypeError, match="not known yet"):
        list(x)

    @inlay.jit
    def total(x: Any) -> Any:
        first, second = x
        return first + second

    assert total(np.ones((2, 3))).tolist() == [2.0, 2.0, 2.0]


def test_donated_memory_goes_to_one_result() -> None:
    @inlay.jit(donate=True)
    def patch(x: Any, y: Any) -> Any:
        z = inlay.slice_scatter(x, y, start=0, stop=1)
        return z, z.reshape([-1]), z

    first, second, third = patch(inlay.ones([3]), inlay.zeros([1]))
    first[2] = 7.0
    assert second.tolist() == third.tolist() == [0, 1, 1]


def test_memory_that_is_written_from_outside_is_seen() -> None:
    program = static.Program()
    x = program.data("x", [1], "float32")
    constant = inlay.zeros([1])
    array = constant.numpy()
    y = x + constant
    array[:] = 3
    z = x + constant
    results = program.run({"x": np.zeros(1, "f4")}, [y, z])
    assert [one.tolist() for one in results] == [[0], [3]]


def test_a_gradient_of_many_is_refused_when_their_number_comes() -> None:
    @inlay.jit
    def slope(x: Any) -> Any:
        x = x.detach()
        x.stop_gradient = False
        return inlay.grad(x * x, x)[0]

    assert slope(np.array([3.0])).tolist() == [6.0]
    with pytest.raises(ValueError, match="grad: output has shape"):
        slope(np.array([3.0, 4.0]))
