"""NumPy arrays as arguments and results: memory is shared for any strides, and dtypes are kept."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from naive import DTYPES

import inlay

UNSUPPORTED = [
    np.array([object()]),
    np.array(["a"]),
    np.array([b"a"]),
    np.array([1], dtype="datetime64[s]"),
    np.array([1], dtype="timedelta64[s]"),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    np.array([1], dtype=np.longdouble),
    np.array([1], dtype=np.clongdouble),
    np.array([1], dtype=ml_dtypes.float8_e4m3fn),
    np.array([1], dtype=ml_dtypes.int4),
]


def sample(dtype: np.dtype, shape: tuple[int, ...] = (3, 4, 5)) -> np.ndarray:
    values = np.arange(int(np.prod(shape, dtype=int)))
    return (values % 2 if dtype.kind == "b" else values).astype(dtype).reshape(shape)


def packed_field() -> np.ndarray:
    """Elements that are not aligned, with strides that are not multiples of the element size."""
    record = np.zeros(6, dtype=[("tag", "u1"), ("value", "f8"), ("rest", "u2")])
    record["value"] = np.arange(6)
    return record["value"]


VIEWS = {
    "whole": lambda a: a,
    "transposed": lambda a: a.transpose(2, 0, 1),
    "reversed": lambda a: a[::-1, :, ::-1],
    "sliced": lambda a: a[1:, 1::2, 3:0:-2],
    "broadcast": lambda a: np.broadcast_to(a[:, :1], (2, 3, 4, 5)),
    "element": lambda a: a[1, 2, 3, ...],
    "no elements": lambda a: a[:, 4:, ::-1],
    "one element a dimension": lambda a: a[-1:, :1, 2:3],
    "fortran": np.asfortranarray,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_memory_and_values_survive_the_round_trip(view, dtype) -> None:
    array = view(sample(dtype))
    tensor = inlay.from_numpy(array)
    assert tensor.shape == list(array.shape)
    assert tensor.dtype == dtype
    assert tensor.is_contiguous() == array.flags.c_contiguous
    back = tensor.numpy()
    assert back.dtype == dtype
    assert back.flags.writeable == array.flags.writeable
    np.testing.assert_array_equal(back, array)
    if array.size:
        assert tensor.strides == array.strides
        assert back.strides == array.strides
        assert back.__array_interface__["data"][0] == array.__array_interface__["data"][0]


def test_unaligned_fields_are_shared_and_copied_right() -> None:
    array = packed_field()
    tensor = inlay.from_numpy(array)
    assert tensor.strides == (11,)
    assert tensor.copy().tolist() == list(range(6))
    assert inlay.from_numpy(array[::-2]).copy().tolist() == [5, 3, 1]
    array[0] = 9
    assert tensor.tolist()[0] == 9
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_writing_to_one_side_shows_on_the_other() -> None:
    array = np.zeros((2, 3), dtype="int16")
    tensor = inlay.from_numpy(array[:, ::2])
    array[1, 2] = 7
    assert tensor.tolist() == [[0, 0], [0, 7]]
    tensor.numpy()[0, 0] = 3
    assert array[0, 0] == 3


def test_each_side_keeps_the_memory_alive() -> None:
    array = np.arange(1000.0)
    alive = weakref.ref(array)
    tensor = inlay.from_numpy(array[1:])
    del array
    gc.collect()
    assert alive() is not None
    assert tensor.tolist() == list(range(1, 1000))
    del tensor
    gc.collect()
    assert alive() is None

    tensor = inlay.to_tensor(np.arange(1000.0))
    alive_tensor = weakref.ref(tensor)
    view = tensor.numpy()[::2]
    del tensor
    gc.collect()
    assert alive_tensor() is not None
    assert view.tolist() == list(range(0, 1000, 2))
    del view
    gc.collect()
    assert alive_tensor() is None


def test_read_only_arrays_stay_read_only() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = inlay.from_numpy(array)
    assert not tensor.writable
    assert not tensor.numpy().flags.writeable
    assert tensor.copy().writable
    assert inlay.to_tensor(array).numpy().flags.writeable


def test_subclasses_are_read_by_their_data() -> None:
    assert inlay.from_numpy(np.array([[1, 2]]).view(np.matrix)).shape == [1, 2]
    assert inlay.from_numpy(np.ma.masked_array([1, 2])).tolist() == [1, 2]
    with pytest.raises(inlay.InlayTypeError, match="array is a masked array"):
        inlay.from_numpy(np.ma.masked_array([1, 2], mask=[True, False]))


@pytest.mark.parametrize("array", UNSUPPORTED, ids=lambda array: str(array.dtype))
def test_unsupported_dtypes_are_named(array) -> None:
    with pytest.raises(inlay.InlayTypeError) as raised:
        inlay.from_numpy(array)
    assert str(array.dtype) in str(raised.value)
    with pytest.raises(inlay.InlayTypeError):
        inlay.to_tensor(array)


def test_the_other_byte_order_is_converted_or_refused() -> None:
    array = np.arange(3, dtype=np.dtype("int32").newbyteorder())
    with pytest.raises(inlay.InlayValueError, match="byte order"):
        inlay.from_numpy(array)
    tensor = inlay.to_tensor(array)
    assert tensor.dtype == inlay.int32
    assert tensor.tolist() == [0, 1, 2]
    # A dtype of one byte has no byte order.
    assert inlay.from_numpy(np.zeros(2, dtype=np.dtype("int8").newbyteorder())).dtype == "int8"


def test_only_arrays_are_shared() -> None:
    for other in ([1, 2], 1, np.float32(1), None):
        with pytest.raises(inlay.InlayTypeError, match="expected a NumPy array"):
            inlay.from_numpy(other)


def test_strides_out_of_the_address_space_are_refused() -> None:
    wild = np.lib.stride_tricks.as_strided(np.zeros(2), shape=(4, 4), strides=(2**62, 8))
    with pytest.raises(inlay.InlayValueError, match="address space"):
        inlay.from_numpy(wild)


def test_array_protocol_shares_casts_or_copies() -> None:
    tensor = inlay.to_tensor([[1, 2], [3, 4]])
    shared = np.asarray(tensor)
    shared[0, 0] = 9
    assert tensor.tolist() == [[9, 2], [3, 4]]
    assert np.asarray(tensor, dtype="float64").dtype == np.float64
    assert np.array(tensor.T).tolist() == [[9, 3], [2, 4]]
    copied = tensor.__array__(copy=True)
    copied[0, 0] = 0
    assert tensor.tolist() == [[9, 2], [3, 4]]
    assert tensor.__array__(np.dtype("int64"), copy=False).base is tensor
    with pytest.raises(inlay.InlayValueError, match="copies"):
        tensor.__array__(np.dtype("float32"), copy=False)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_equal_those_of_the_same_meaning(dtype) -> None:
    ours, theirs = getattr(inlay, dtype), DTYPES[dtype]
    assert str(ours) == ours.name == dtype
    assert repr(ours) == f"inlay.{dtype}"
    assert ours.itemsize == theirs.itemsize
    assert ours == dtype
    assert dtype == ours
    assert ours == theirs
    assert theirs == ours
    assert ours == theirs.type
    assert ours != "complex256"
    assert ours != 3
    assert {ours: 1}[dtype] == 1
    assert [other for other in DTYPES if getattr(inlay, other) == ours] == [dtype]
    for same in (ours, dtype, theirs, theirs.type):
        assert inlay.dtype(same) is ours
        assert inlay.to_tensor([1], dtype=same).dtype is ours


def test_python_types_are_dtypes_too() -> None:
    pairs = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
    for python, ours in pairs.items():
        assert inlay.dtype(python) == ours
        assert inlay.dtype(python.__name__) == ours
        assert inlay.to_tensor([1]).cast(python).dtype == ours


def test_spellings_of_numpy_are_dtypes_too() -> None:
    spellings = {
        "bool": ["?", "b1", "bool_"],
        "uint8": ["u1", "ubyte", "B"],
        "int32": ["i4", "=i4", "intc"],
        "int64": ["i8", "longlong"],
        "float16": ["f2", "half", "e"],
        "float32": ["f4", "single"],
        "float64": ["f8", "double", "d"],
        "complex64": ["c8", "F"],
        "complex128": ["c16", "cdouble"],
    }
    for ours, all_spellings in spellings.items():
        for spelling in all_spellings:
            assert inlay.dtype(spelling) == ours, spelling
            assert inlay.to_tensor([1]).cast(spelling).dtype == ours
            assert inlay.zeros([2], dtype=spelling).dtype == ours


SWAPPED = np.dtype("float32").newbyteorder()
BAD_NAMES = ["float8", "", SWAPPED.str, "f4,f4", "2f4", "O", "U5", "M8[s]", "g", "é\0"]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "bad", [*BAD_NAMES, 3, None, [1], object, str, np.floating, np.generic, SWAPPED], ids=repr
)
def test_unknown_dtypes_are_refused_with_the_list(bad) -> None:
    with pytest.raises(inlay.InlayTypeError) as raised:
        inlay.dtype(bad)
    for name in DTYPES:
        assert name in str(raised.value)


def test_constructors_copy_and_choose_dtypes() -> None:
    expected = {
        "bool": [True, [False, True], np.bool_(True)],
        "int64": [1, [1, 2], range(3), np.int64(1)],
        "float32": [1.5, [1, 2.5], (), np.float32(1)],
        "complex64": [1j, [1, 2j], np.complex64(1)],
        "float64": [np.float64(1), np.zeros(2), np.array([])],
        "bfloat16": [ml_dtypes.bfloat16(1)],
    }
    for dtype, values in expected.items():
        for value in values:
            tensor = inlay.to_tensor(value)
            assert tensor.dtype == dtype, value
            np.testing.assert_array_equal(tensor.numpy(), np.asarray(value))
    array = np.zeros(3)
    tensor = inlay.to_tensor(array)
    array[0] = 1
    assert tensor.tolist() == [0, 0, 0]
    other = inlay.to_tensor(tensor, dtype="int32")
    assert other.dtype == inlay.int32
    assert inlay.to_tensor([1.7, -1.7], dtype="int8").tolist() == [1, -1]


WITHOUT_ML_DTYPES = """
import sys
sys.modules["ml_dtypes"] = None
import inlay, numpy as np
t = inlay.to_tensor([1.5, 2], dtype="bfloat16")
assert t.tolist() == [1.5, 2.0] and t.T.copy().dtype == "bfloat16"
try:
    t.numpy()
except inlay.InlayTypeError as error:
    assert "install ml_dtypes" in str(error) and "cast" in str(error), error
else:
    raise SystemExit("no error")
assert inlay.from_numpy(np.zeros(2, "f4")).numpy().dtype == "f4"
"""


def test_bfloat16_without_ml_dtypes_says_what_to_do() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_ML_DTYPES], check=True, timeout=60)
