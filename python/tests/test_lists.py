"""Lists as arguments: tensors keep their history, arrays their dtype, and numbers are converted."""

from __future__ import annotations

import collections
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import inlay


def leaf(value: Any, dtype: str = "float32") -> inlay.Tensor:
    return inlay.to_tensor(value, dtype=dtype, stop_gradient=False)


# Lists that contain tensors


def test_a_tensor_in_a_list_of_updates_gets_a_gradient() -> None:
    a, w = leaf(5.0), leaf([1.0, 2.0, 3.0])
    (w.scatter([0], [a]) * 2).sum().backward()
    assert a.grad.item() == 2
    assert w.grad.tolist() == [0, 2, 2]


@pytest.mark.parametrize("reflected", [False, True])
def test_tensors_in_an_operand_get_gradients(reflected) -> None:
    a, b, w = leaf(5.0), leaf(7.0), leaf([1.0, 2.0, 3.0])
    items = [a, b, a]
    product = items * w if reflected else w * items
    product.sum().backward()
    assert a.grad.item() == 4
    assert b.grad.item() == 2
    assert w.grad.tolist() == [5, 7, 5]


def test_tensors_in_an_assigned_list_get_gradients() -> None:
    a, b, z = leaf(5.0), leaf(7.0), inlay.zeros([3])
    z[0:2] = [a, b]
    assert z.tolist() == [5, 7, 0]
    (z * [1.0, 2.0, 3.0]).sum().backward()
    assert [a.grad.item(), b.grad.item()] == [1, 2]


def test_an_in_place_write_of_a_list_records_its_tensors() -> None:
    a, z = leaf(5.0), inlay.zeros([3])
    z.scatter_([1, 2], [a, 4.0])
    (z * z).sum().backward()
    assert a.grad.item() == 10


def test_two_lists_meet_at_the_dtype_of_the_tensors() -> None:
    a, b = leaf(5.0, "float64"), leaf(7.0, "float64")
    for total in (inlay.add([1, 2], [a, b]), inlay.add([a, b], [1, 2])):
        assert total.dtype == inlay.float64
        assert total.tolist() == [6, 9]
        assert not total.stop_gradient


def test_rows_numbers_and_arrays_mix_in_nested_lists() -> None:
    a, row = leaf(5.0), leaf([1.0, 2.0])
    plain = np.array([3, 4], "float32")
    items = [[row, plain, (7, 8)], [[a, np.float64(9)], [a, a], collections.deque([a, 0])]]
    doubled = inlay.multiply(items, 2)
    assert doubled.dtype == inlay.float32
    assert doubled.tolist() == [[[2, 4], [6, 8], [14, 16]], [[10, 18], [10, 10], [10, 0]]]
    doubled.sum().backward()
    assert a.grad.item() == 8
    assert row.grad.tolist() == [2, 2]


def test_second_derivatives_pass_through_a_list() -> None:
    a = leaf(3.0)
    cube = inlay.prod([a, a, a])
    (first,) = inlay.grad(cube, a, create_graph=True)
    (second,) = inlay.grad(first, a)
    assert [first.item(), second.item()] == [27, 18]


def test_a_list_with_a_tensor_gives_a_tensor() -> None:
    one = inlay.to_tensor(1.0)
    assert isinstance(inlay.scatter(np.zeros(2, "f4"), [0], [one]), inlay.Tensor)
    assert isinstance(inlay.sum([one, 2]), inlay.Tensor)
    index = [inlay.to_tensor(1), 0]
    assert inlay.scatter(np.zeros(2), index, [1, 2]).tolist() == [2, 1]
    assert inlay.zeros([3])[[inlay.to_tensor(1), 0]].shape == [2]


def test_to_tensor_copies_a_list_without_its_history() -> None:
    a, b = leaf(5.0), leaf(7.0)
    copy = inlay.to_tensor([a, b])
    assert copy.tolist() == [5, 7]
    assert copy.stop_gradient
    assert not inlay.stack([a, b]).stop_gradient
    assert inlay.to_tensor([[a, 1], [2, b]], dtype="int8").tolist() == [[5, 1], [2, 7]]


def test_tensors_of_two_dtypes_in_a_list_are_named() -> None:
    items = [leaf(1.0), leaf(1.0, "float64")]
    for bad in (items, [items], [items[0], np.zeros(())]):
        words = r"scatter: updates is a list of tensors of dtypes float32 and float64"
        with pytest.raises(inlay.InlayTypeError, match=words):
            inlay.scatter(np.zeros(2, "f4"), [0, 1], bad)


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [
        ([[1.0, 2.0], [1.0]], ValueError, r"shapes \[2\] and \[1\], expected one shape"),
        ([[1.0, 2.0], 1.0], ValueError, r"shapes \[2\] and \[\]"),
        ([1, 2.5], TypeError, "is a float, which a int64 tensor does not take"),
        ([1, 2**70], ValueError, "expected a value of int64"),
        ([1, None], TypeError, "is a NoneType"),
        ([1, "2"], TypeError, "is a str"),
    ],
    ids=repr,
)
def test_what_does_not_stack_is_refused(items, error, words) -> None:
    first = inlay.to_tensor(items[0])
    with pytest.raises(inlay.InlayError, match=f"scatter: updates .*{words}") as raised:
        inlay.scatter(np.zeros(2), [0, 1], [first, *items[1:]])
    assert isinstance(raised.value, error)


def test_a_list_that_contains_itself_and_a_tensor_is_refused() -> None:
    items: list[Any] = [inlay.to_tensor(1.0)]
    items += [items, items]
    with pytest.raises(inlay.InlayError, match="sum: x"):
        inlay.sum(items)


def test_a_failed_write_of_a_list_changes_nothing() -> None:
    x = inlay.zeros([3])
    with pytest.raises(inlay.InlayIndexError):
        x.scatter_([0, 9], [inlay.to_tensor(1.0), 2])
    with pytest.raises(inlay.InlayTypeError):
        x[0:2] = [inlay.to_tensor(1.0), np.zeros(())]
    assert x.tolist() == [0, 0, 0]


def test_symbolic_tensors_in_a_list_are_stacked_in_the_program() -> None:
    @inlay.jit
    def spread(x, a):
        return x.scatter([0, 2], [a, 1.0]) * [a, a, 2]

    x, a = np.ones(3, "f4"), np.array(5.0, "f4")
    assert spread(x, a).tolist() == [25, 5, 2]
    a[...] = 7
    assert spread(x, a).tolist() == [49, 7, 2]
    assert "stack" in spread.explain()


def test_the_name_of_a_call_does_not_name_the_stack_of_its_list() -> None:
    program = inlay.static.Program()
    with inlay.static.program_guard(program):
        a = inlay.static.data("a", [], "float32")
        inlay.scatter(np.zeros(3, "f4"), [0, 1], [a, 1.0], name="first two")
    assert str(program).count("first two") == 1


# Lists that contain arrays and NumPy scalars


def test_arrays_in_a_list_are_not_cast() -> None:
    rows = [np.full(2, 1e300), np.zeros(2)]
    with pytest.raises(inlay.InlayTypeError, match="updates has dtype float64, x has"):
        inlay.scatter(np.zeros((2, 2), "f4"), [0, 1], rows)
    assert inlay.scatter(np.zeros((2, 2)), [0, 1], rows).max() == 1e300
    with pytest.raises(inlay.InlayTypeError, match="float64"):
        inlay.zeros([2, 2])[:] = rows
    with pytest.raises(inlay.InlayTypeError, match="float64"):
        inlay.ones([2]) * [np.float64(1), np.float64(2)]


@pytest.mark.parametrize(
    ("items", "dtype"),
    [
        ([np.zeros(2), np.zeros(2)], "float64"),
        ([np.float64(1)], "float64"),
        ([[np.float32(1)], [np.float32(2)]], "float32"),
        ([np.float16(1), 2.5], "float16"),
        ([np.zeros(2, "f4"), [1, 2]], "float32"),
        ([np.zeros(2, "f4"), np.zeros(2)], "float64"),
        ([np.zeros(2, "f4"), (1j, 2)], "complex64"),
        ([np.int8(1), 2], "int8"),
        ([np.int8(1), True], "int8"),
        ([np.bool_(True), 2], "int64"),
        ([np.int32(1), 2.5], "float64"),
        ([np.uint64(2**63), 1], "uint64"),
        ([np.zeros(2, "c8"), [1.5, 2]], "complex64"),
        ([ml_dtypes.bfloat16(1), 2.5], "bfloat16"),
        ([np.zeros(2, ml_dtypes.bfloat16), np.zeros(2, ml_dtypes.bfloat16)], "bfloat16"),
        ([np.zeros(2, ">i4"), [1, 2]], "int32"),
        ([np.zeros(0, "i2")], "int16"),
        ([1.5, 2], "float32"),
        ([range(2), [1, 2]], "int64"),
    ],
    ids=repr,
)
def test_the_typed_items_of_a_list_decide_its_dtype(items, dtype) -> None:
    tensor = inlay.to_tensor(items)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.cast("complex128").numpy(), np.asarray(items, complex))


def test_numbers_out_of_the_range_of_the_arrays_are_refused() -> None:
    with pytest.raises(inlay.InlayValueError, match=r"to_tensor: data: .*300"):
        inlay.to_tensor([np.int8(1), 300])


def test_masked_arrays_in_a_list_are_refused() -> None:
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    for items in ([masked, masked], [masked, [1, 2]], [masked, inlay.zeros([2])]):
        with pytest.raises(inlay.InlayTypeError, match="sum: x is a masked array"):
            inlay.sum(items)


# NumPy scalars


def test_a_numpy_scalar_takes_the_dtype_of_the_tensor() -> None:
    t = inlay.to_tensor([1.0, 2.0])
    root = np.float32(np.sqrt(2))
    for product in (t * np.sqrt(2), np.sqrt(2) * t, inlay.multiply(t, np.sqrt(2))):
        assert product.dtype == inlay.float32
        np.testing.assert_array_equal(product.numpy(), np.array([1, 2], "f4") * root)
    assert (np.int64(3) * t).tolist() == [3, 6]
    assert (t + np.bool_(True)).tolist() == [2, 3]
    assert (t < np.float64(1.5)).tolist() == [True, False]
    assert inlay.where([True, False], np.float64(7), t).tolist() == [7, 2]
    assert inlay.masked_fill(t.numpy(), [True, False], np.float64(7)).dtype == np.float32
    t += np.float64(1)
    t[0] = np.float64(9)
    assert t.tolist() == [9, 3]
    assert (inlay.ones([1], dtype="bfloat16") * ml_dtypes.bfloat16(2)).tolist() == [2]
    assert (inlay.ones([1]) * ml_dtypes.bfloat16(2)).dtype == inlay.float32
    assert (inlay.ones([1], dtype="complex64") * np.float64(2)).dtype == inlay.complex64


def test_a_numpy_scalar_of_a_wider_kind_is_refused_with_advice() -> None:
    ints = inlay.to_tensor([1, 2], dtype="int32")
    words = (
        r"multiply: y is a numpy.float64, which a int32 tensor does not take without a cast: "
        r"pass int\(y\), or cast the tensor with cast\('float64'\)"
    )
    with pytest.raises(inlay.InlayTypeError, match=words):
        ints * np.float64(1.5)
    with pytest.raises(inlay.InlayTypeError, match=r"pass y.real, .*cast\('complex128'\)"):
        inlay.ones([1]) * np.complex128(1)
    with pytest.raises(inlay.InlayTypeError, match=r"pass bool\(value\)"):
        inlay.masked_fill([True], [True], np.int64(1))


def test_a_numpy_scalar_out_of_range_is_refused() -> None:
    small = inlay.to_tensor([1, 2], dtype="uint8")
    assert (small * np.int64(100)).tolist() == [100, 200]
    for value in (np.int64(256), np.int8(-1), np.uint64(2**63)):
        with pytest.raises(inlay.InlayValueError, match="0 to 255"):
            small + value
    for value in (np.longdouble(1), np.datetime64("2020"), np.timedelta64(1, "s"), np.str_("1")):
        with pytest.raises(inlay.InlayTypeError, match="which has no tensor"):
            small + value


def test_numpy_scalars_and_0d_arrays_have_a_dtype_of_their_own() -> None:
    assert inlay.to_tensor(np.float64(1)).dtype == inlay.float64
    assert inlay.add(np.float32(1), np.float32(2)).dtype == np.float32
    for mixed in (
        inlay.add(2.5, np.float32(1)),
        inlay.add(np.float32(1), [2.5]),
        inlay.add([2.5], np.float32(1)),
    ):
        assert mixed.dtype == np.float32
    with pytest.raises(inlay.InlayTypeError, match=r"float64.*float32"):
        inlay.add(np.float32(1), np.float64(2))
    with pytest.raises(inlay.InlayTypeError, match=r"float64.*float32"):
        inlay.ones([2]) * np.array(2.0)
