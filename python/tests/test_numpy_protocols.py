"""NumPy's functions and operators with tensors: `np.sum(t)`, `np.sin(t)`, `array += t`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from naive import DTYPES

import inlay
from inlay.numpy_functions import FUNCTIONS, OPERATIONS, UFUNCS

T = inlay.Tensor
X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
ROW = np.array([3.0, 2.0, 1.0])


def leaf(array: Any = X) -> T:
    return inlay.to_tensor(array, stop_gradient=False)


BY_INLAY: dict[str, Callable[[Any], Any]] = {
    "sum": np.sum,
    "sum axis": lambda x: np.sum(x, axis=1),
    "sum by position": lambda x: np.sum(x, 0, None, None, True),
    "sum keepdims": lambda x: np.sum(x, axis=(0, 1), keepdims=True),
    "mean": lambda x: np.mean(x, axis=0),
    "prod": np.prod,
    "max": lambda x: np.max(x, 1),
    "min": np.min,
    "amax": lambda x: np.amax(x, axis=0, out=None),
    "amin": np.amin,
    "where": lambda x: np.where(x > 0, x, 0.0),
    "concatenate": lambda x: np.concatenate([x, X, x], axis=1),
    "stack": lambda x: np.stack((x, X), axis=-1),
    "reshape": lambda x: np.reshape(x, (3, -1)),
    "transpose": np.transpose,
    "transpose axes": lambda x: np.transpose(x, (1, 0)),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "diagonal": lambda x: np.diagonal(x, offset=1),
    "tril": np.tril,
    "triu": lambda x: np.triu(x, k=1),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[2], [0]]), axis=1),
    "copy": np.copy,
    "add": lambda x: np.add(x, ROW),
    "subtract": lambda x: np.subtract(ROW, x),
    "multiply": lambda x: np.multiply(x, x),
    "divide": lambda x: np.divide(2.0, x),
    "negative": np.negative,
    "add.reduce": np.add.reduce,
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=1, keepdims=True),
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=None),
    "array + t": lambda x: ROW + x,
    "array / t": lambda x: ROW / x,
    "np.float64 * t": lambda x: np.float64(3) * x,
}


@pytest.mark.parametrize("call", BY_INLAY.values(), ids=BY_INLAY)
def test_what_inlay_has_gives_tensors_with_gradients(call: Callable[[Any], Any]) -> None:
    x = leaf()
    result = call(x)
    assert type(result) is T
    np.testing.assert_array_equal(result.numpy(), call(X))
    result.sum().backward()
    assert x.grad is not None


COMPARISONS = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda ufunc: ufunc.__name__)
def test_comparisons_give_tensors(compare: np.ufunc) -> None:
    for x, y in ((leaf(), ROW), (ROW, leaf()), (leaf(), leaf())):
        result = compare(x, y)
        assert type(result) is T
        np.testing.assert_array_equal(result.numpy(), compare(np.asarray(x), np.asarray(y)))
    assert type(leaf() == ROW) is type(leaf() == X) is T


def complete(operation: str) -> bool:
    return hasattr(inlay, operation)


SHAPES: dict[str, Callable[[Any], Any]] = {
    "squeeze": lambda x: np.squeeze(np.reshape(x, (2, 1, 3)), axis=1),
    "expand_dims": lambda x: np.expand_dims(x, -1),
    "zeros_like": np.zeros_like,
    "ones_like": lambda x: np.ones_like(x, dtype="float32"),
    "full_like": lambda x: np.full_like(x, 7.0),
    "real": np.real,
    "imag": np.imag,
}


@pytest.mark.parametrize("name", SHAPES)
def test_operations_by_other_names_give_tensors(name: str) -> None:
    if not complete(OPERATIONS[name][0]):
        pytest.skip("there is no such operation")
    result = SHAPES[name](inlay.to_tensor(X))
    assert type(result) is T
    assert result.dtype == SHAPES[name](X).dtype
    np.testing.assert_array_equal(result.numpy(), SHAPES[name](X))


def test_the_tables_name_operations_and_their_arguments() -> None:
    table = {op.name: op for op in inlay.operations()}
    for name, (operation, names) in OPERATIONS.items():
        assert callable(getattr(np, name))
        shared = [one for one in names.split() if not one.startswith("-")]
        if operation in table:
            assert len(shared) <= len(table[operation].arguments)
            assert getattr(np, name) in FUNCTIONS
    assert all(isinstance(ufunc, np.ufunc) for ufunc in UFUNCS)


def test_attributes_are_read_without_a_copy() -> None:
    x = leaf()
    assert np.shape(x) == (2, 3)
    assert np.ndim(x) == 2
    assert np.size(x) == 6
    assert np.size(x, 1) == 3


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_those_of_numpy(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.skip("NumPy has no rules for it")
    array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = inlay.to_tensor(array)
    calls = [np.sum, np.prod, np.mean, lambda x: np.divide(x, x + x), lambda x: np.equal(x, x)]
    for call in calls:
        with np.errstate(all="ignore"):
            expected = call(array)
        assert call(tensor).dtype == expected.dtype
        np.testing.assert_allclose(call(tensor).numpy(), expected)


def test_other_functions_work_on_the_elements_and_give_arrays() -> None:
    tensor = inlay.to_tensor(X)
    for call in (
        np.sin,
        lambda x: np.maximum(x, ROW),
        lambda x: np.sum(x, dtype="complex128"),
        lambda x: np.add(x, ROW, dtype="float64"),
        lambda x: np.multiply.outer(x, ROW),
        lambda x: np.linalg.norm(x, axis=0),
        lambda x: np.einsum("ij,j->i", x, ROW),
        lambda x: x @ ROW,
        lambda x: ROW @ x.T,
        lambda x: np.concatenate([x, x], axis=None),
        lambda x: np.where(x > 0)[1],
        lambda x: np.modf(x)[0],
        lambda x: np.vstack([x, ROW]),
        lambda x: np.cumsum(x),
        lambda x: np.clip(x, a_min=-1, a_max=1),
    ):
        result = call(tensor)
        assert isinstance(result, np.ndarray | np.generic)
        np.testing.assert_array_equal(result, call(X))


LOSES = "requires a gradient, which NumPy would lose; pass t.detach\\(\\) or t.numpy\\(\\)"


def test_no_gradient_is_lost_without_a_word() -> None:
    x = leaf()
    for name, call in {
        "sin": np.sin,
        "maximum": lambda x: np.maximum(x, ROW),
        "linalg.norm": np.linalg.norm,
        "sum": lambda x: np.sum(x, dtype="float32"),
        "concatenate": lambda x: np.concatenate([x, x], axis=None),
        "modf": np.modf,
        "multiply.outer": lambda x: np.multiply.outer(x, x),
    }.items():
        with pytest.raises(inlay.InlayTypeError, match=f"^numpy.{name}: .*{LOSES}"):
            call(x)
        assert call(x.detach()) is not None
        with inlay.no_grad():
            assert call(x) is not None


def test_results_without_a_gradient_need_no_detach() -> None:
    x = leaf()
    assert np.isnan(x).tolist() == np.isnan(X).tolist()
    assert np.argmax(x) == 4
    assert np.allclose(x, X)
    assert np.array_equal(x, X)
    assert np.nonzero(x)[0].tolist() == np.nonzero(X)[0].tolist()
    assert np.result_type(x, "float32") == "float64"
    assert "-2." in np.array2string(x)


def test_a_tensor_is_added_to_an_array_in_place() -> None:
    array = np.zeros((2, 3))
    same = array
    array += inlay.to_tensor(X)
    array -= inlay.to_tensor(X.astype("float32"))  # by NumPy's rules for dtypes
    array += inlay.to_tensor(ROW)
    assert array is same
    assert array.tolist() == [ROW.tolist()] * 2
    assert np.add(array, inlay.to_tensor(X), out=array) is array
    np.testing.assert_array_equal(array, X + ROW)
    np.add.at(array, ([0], [0]), inlay.to_tensor([1.0]))
    assert array[0, 0] == 5
    ints = np.zeros(3, int)
    with pytest.raises(TypeError, match="same_kind"):
        ints += inlay.to_tensor(ROW)


def test_an_array_does_not_swallow_a_gradient() -> None:
    array, x = np.zeros((2, 3)), leaf()
    for write in (
        lambda: operator.iadd(array, x),
        lambda: np.multiply(array, x, out=array),
        lambda: np.sum(x, axis=0, out=array[0]),
        lambda: np.copyto(array, x),
        lambda: np.put(array, [0], x),
        lambda: np.add.at(array, [0], x),
        lambda: np.put_along_axis(array, np.zeros((2, 1), int), x[:, :1], 1),
    ):
        with pytest.raises(inlay.InlayTypeError, match=LOSES):
            write()
        assert not array.any()


def test_a_tensor_as_out_is_written_by_inlay() -> None:
    x = leaf()
    y = x * 2
    saved = (y * y).sum()
    out = y.detach()
    with inlay.no_grad():
        assert np.add(X, 1, out=out) is out
    np.testing.assert_array_equal(y.numpy(), X + 1)
    with pytest.raises(inlay.InlayRuntimeError, match="multiply"):
        saved.backward()  # the write was noticed
    tensor = inlay.to_tensor(X)
    assert np.sin(tensor, out=tensor, where=X > 0) is tensor
    np.testing.assert_array_equal(tensor.numpy(), np.where(X > 0, np.sin(X), X))
    whole = inlay.zeros([2, 3], dtype="float64")
    part, same = np.modf(X * 1.5, out=(None, whole))
    assert same is whole
    np.testing.assert_array_equal(part + whole.numpy(), X * 1.5)
    row = inlay.zeros([3], dtype="float64")
    assert np.cumsum(ROW, out=row) is row
    assert row.tolist() == [3, 5, 6]


def test_functions_that_write_into_a_tensor_are_inlay_s_or_refused() -> None:
    tensor = inlay.zeros([2, 3], dtype="float64")
    np.copyto(tensor, ROW)
    np.put_along_axis(tensor, np.array([[0], [1]]), 9.0, 1)
    assert tensor.tolist() == [[9, 2, 1], [3, 9, 1]]
    for name, write in {
        "fill_diagonal": lambda: np.fill_diagonal(tensor, 0),
        "put": lambda: np.put(tensor, [0], [1.0]),
        "place": lambda: np.place(tensor, X > 0, [1.0]),
        "putmask": lambda: np.putmask(tensor, X > 0, [1.0]),
        "copyto": lambda: np.copyto(tensor, X, where=X > 0),
        "add.at": lambda: np.add.at(tensor, [0], 1.0),
    }.items():
        with pytest.raises(inlay.InlayTypeError, match=f"numpy.{name}: .*in-place operation"):
            write()
        assert tensor.tolist() == [[9, 2, 1], [3, 9, 1]]


class Units(np.lib.mixins.NDArrayOperatorsMixin):
    """A small array class of another library, which takes any array in its operators."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        inputs = tuple(one.array if isinstance(one, Units) else one for one in inputs)
        return Units(getattr(ufunc, method)(*inputs, **kwargs))


def test_classes_with_ufuncs_of_their_own_are_asked() -> None:
    tensor = inlay.to_tensor(ROW)
    for result in (
        tensor + Units(ROW),
        Units(ROW) + tensor,
        np.add(tensor, Units(ROW)),
        np.add(Units(ROW), tensor),
    ):
        assert type(result) is Units
        assert result.array.tolist() == [6, 4, 2]


def test_in_a_program_functions_of_numpy_are_recorded() -> None:
    @inlay.jit
    def total(x: T) -> Any:
        return np.sum(np.add(x, ROW), axis=0)

    assert total(X).tolist() == (X + ROW).sum(0).tolist()
    with pytest.raises(inlay.InlayError, match="symbolic"):
        inlay.jit(np.sin)(inlay.to_tensor(X))
