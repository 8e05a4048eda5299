"""Arrays of other libraries as arguments, through the protocols that they offer."""

from __future__ import annotations

import array
import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import inlay


class Series:
    """An array of a library like pandas."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


class Foreign:
    """An array of a library like PyTorch."""

    requires_grad = False

    def __init__(self, values: np.ndarray, device: tuple[int, int] = (1, 0)) -> None:
        self.values, self.device = values, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class Older(Foreign):
    """Exports the struct that can't say that memory is read-only."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return self.values.__dlpack__()


class Image:
    """An image of a library like Pillow, whose interface holds the bytes themselves."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (2, 2), "typestr": "|u1", "data": b"\1\2\3\4"}


class Pointer:
    """An interface that holds an address."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.values.__array_interface__


VALUES = [1.0, 2.0, 3.0]
FOREIGN = {
    "memoryview": memoryview(np.array(VALUES)),
    "array.array": array.array("d", VALUES),
    "ctypes": (ctypes.c_double * 3)(*VALUES),
    "__array__": Series(np.array(VALUES)),
    "__dlpack__": Foreign(np.array(VALUES)),
    "older __dlpack__": Older(np.array(VALUES)),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_arrays_are_read_as_arrays(kind) -> None:
    values = FOREIGN[kind]
    copied = inlay.to_tensor(values)
    assert copied.dtype == inlay.float64
    assert copied.tolist() == VALUES
    result = inlay.scatter(values, [0], [7.0])
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [7, 2, 3]
    assert inlay.scatter(np.zeros(4), [3, 1, 0], values).tolist() == [3, 2, 0, 1]
    total = inlay.zeros([3], dtype="float64") + values
    assert isinstance(total, inlay.Tensor)
    assert total.tolist() == VALUES
    x = inlay.zeros([3], dtype="float64")
    x[:] = values
    assert x.tolist() == VALUES


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_arrays_keep_their_dtype(kind) -> None:
    with pytest.raises(
        inlay.InlayTypeError, match="updates has dtype float64, x has dtype float32"
    ):
        inlay.scatter(np.zeros(3, "f4"), [0, 1, 2], FOREIGN[kind])
    with pytest.raises(inlay.InlayTypeError, match="scatter: index has dtype float64"):
        inlay.scatter(np.zeros(3), FOREIGN[kind], np.zeros(3))


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_arrays_in_a_list_are_its_rows(kind) -> None:
    values = FOREIGN[kind]
    assert inlay.to_tensor([values, [4, 5, 6]]).tolist() == [VALUES, [4, 5, 6]]
    assert inlay.to_tensor([values, values]).dtype == inlay.float64
    assert isinstance(inlay.sum([values, values]), np.ndarray)
    with pytest.raises(inlay.InlayTypeError, match="dtypes float64 and float32"):
        inlay.sum([values, inlay.zeros([3])])


def test_bytes_of_buffers_are_uint8_and_bytes_are_text() -> None:
    for memory in (bytearray(b"\1\2"), memoryview(b"\1\2")):
        assert inlay.to_tensor(memory).tolist() == [1, 2]
        assert inlay.to_tensor(memory).dtype == inlay.uint8
    with pytest.raises(inlay.InlayTypeError, match="data is a bytes, expected"):
        inlay.to_tensor(b"\1\2")


@pytest.mark.parametrize("kind", ["memoryview", "__array__", "__dlpack__"])
def test_memory_is_shared_and_kept_alive(kind) -> None:
    values = np.arange(1000.0)
    wraps = {"memoryview": memoryview, "__array__": Series, "__dlpack__": Foreign}
    view = inlay.transpose(wraps[kind](values), [0])
    values[0] = 7
    assert view[0] == 7
    alive = weakref.ref(values)
    del values
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


def test_strided_and_read_only_buffers_are_read() -> None:
    grid = np.arange(12.0).reshape(3, 4)
    assert inlay.to_tensor(memoryview(grid.T)).tolist() == grid.T.tolist()
    assert inlay.to_tensor(memoryview(grid)[::-2]).tolist() == grid[::-2].tolist()
    grid.flags.writeable = False
    assert inlay.to_tensor(memoryview(grid)).tolist() == grid.tolist()


# Writes in place


@pytest.mark.parametrize(
    "target",
    [array.array("d", VALUES), (ctypes.c_double * 3)(*VALUES), memoryview(np.array(VALUES))],
    ids=lambda target: type(target).__name__,
)
def test_writable_buffers_are_written_in_place(target) -> None:
    assert inlay.scatter_(target, [0], [7.0]) is target
    assert list(target) == [7, 2, 3]
    with pytest.raises(inlay.InlayIndexError):
        inlay.scatter_(target, [1, 9], [8.0, 8.0])
    assert list(target) == [7, 2, 3]


def test_exporters_that_share_memory_are_written_in_place() -> None:
    target = Foreign(np.array(VALUES))
    assert inlay.scatter_(target, [0], [7.0]) is target
    assert target.values.tolist() == [7, 2, 3]


def read_only() -> np.ndarray:
    values = np.array(VALUES)
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (memoryview(bytes(8)).cast("d"), "x is read-only"),
        (Foreign(read_only()), "x is read-only"),
        (Older(np.array(VALUES)), "x is a .*Older, which does not tell whether"),
        (Series(np.array(VALUES)), "x is a .*Series, which may give a copy"),
        (Image(), "x is a .*Image, which may give a copy"),
        (Foreign(np.array(VALUES), (2, 0)), "x is on CUDA"),
    ],
    ids=repr,
)
def test_other_targets_are_refused_by_name(target, words) -> None:
    with pytest.raises(inlay.InlayError, match=f"scatter: {words}"):
        inlay.scatter_(target, [0], [7.0])


# What is refused


class Recorded(Foreign):
    __module__ = "torch"
    requires_grad = True


class RecordedSeries(Series):
    stop_gradient = False


@pytest.mark.parametrize("values", [Recorded, RecordedSeries])
def test_tensors_whose_library_records_gradients_are_refused_with_advice(values) -> None:
    bad = values(np.array(VALUES))
    words = r"is a .*Recorded.* that requires a gradient, .*: pass updates.detach\(\)"
    for updates in (bad, [bad, bad]):
        with pytest.raises(inlay.InlayTypeError, match=f"scatter: updates {words}"):
            inlay.scatter(np.zeros(3), [0, 1, 2], updates)
    with pytest.raises(inlay.InlayTypeError, match=r"pass x.detach\(\)"):
        inlay.scatter_(bad, [0], [1.0])


def test_memory_on_other_devices_is_refused_by_name() -> None:
    with pytest.raises(inlay.InlayBufferError, match="sum: x is on CUDA, expected the CPU: copy"):
        inlay.sum(Foreign(np.array(VALUES), (2, 0)))


def test_interfaces_are_read_if_they_hold_their_bytes() -> None:
    assert inlay.to_tensor(Image()).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(inlay.InlayTypeError, match=r"data is a .*Pointer, .*numpy.asarray\(data\)"):
        inlay.to_tensor(Pointer(np.array(VALUES)))


def test_dtypes_without_a_tensor_are_named() -> None:
    for bad in (Series(np.array(["a"])), memoryview(np.array([None]))):
        with pytest.raises(inlay.InlayTypeError, match="sum: x has NumPy dtype"):
            inlay.sum(bad)
    with pytest.raises(inlay.InlayTypeError, match="masked array"):
        inlay.sum(Series(np.ma.masked_array([1.0], mask=[True])))


def test_released_buffers_are_refused() -> None:
    memory = memoryview(bytearray(8))
    memory.release()
    with pytest.raises(inlay.InlayValueError, match=r"sum: x: .*released"):
        inlay.sum(memory)


def test_errors_of_the_other_library_stay_as_the_cause() -> None:
    error = RuntimeError("mine")

    class Failing(Foreign):
        def __dlpack__(self, **_: Any) -> Any:
            raise error

    with pytest.raises(inlay.InlayRuntimeError, match="sum: x: mine") as raised:
        inlay.sum(Failing(np.zeros(2)))
    assert raised.value.__cause__ is error


# The other direction


def test_numpy_learns_the_dtype_of_a_tensor() -> None:
    tensor = inlay.to_tensor([1.0], stop_gradient=False)
    assert tensor.__numpy_dtype__ == np.float32
    assert np.asarray(tensor).dtype == np.float32
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        assert np.result_type(tensor) == np.float32
