"""Functions that are traced by `jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import inlay
from inlay import static


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
    assert filled(x, (np.float64(-0.0),)).tobytes() != filled(x, (np.float64(0.0),)).tobytes()


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


def test_a_gradient_of_many_is_refused_when_their_number_comes() -> None:
    @inlay.jit
    def slope(x: Any) -> Any:
        x = x.detach()
        x.stop_gradient = False
        return inlay.grad(x * x, x)[0]

    assert slope(np.array([3.0])).tolist() == [6.0]
    with pytest.raises(ValueError, match="grad: output has shape"):
        slope(np.array([3.0, 4.0]))
