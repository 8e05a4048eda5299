"""DLPack import and export: capsules, ownership, and NumPy's exporter and importer."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from dlpack_structs import LEGACY, VERSIONED, Legacy, inside, name_of, python
from naive import DTYPES

import inlay

CODES = {"bool": 6, "int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5}
READ_ONLY, IS_COPIED = 1, 2

NUMPY = np.lib.NumpyVersion(np.__version__)
NUMPY_KNOWS = [
    name for name in DTYPES if name != "bfloat16" and not (name == "bool" and NUMPY < "1.25.0")
]
numpy_speaks_versioned = pytest.mark.skipif(NUMPY < "2.1.0", reason="came with NumPy 2.1")
FORMS = [None, pytest.param((1, 0), marks=numpy_speaks_versioned)]


class Exporter:
    """An array of another library that exports through NumPy, with one of the two structs."""

    def __init__(self, array, *, versioned=False, device=(1, 0)):
        self.array, self.versioned, self.device = array, versioned, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if not self.versioned and options:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__(**options)


class Importer:
    """Passes a tensor's capsule, with one of the two structs, to NumPy."""

    def __init__(self, tensor, max_version):
        self.tensor, self.max_version = tensor, max_version

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **_):
        return self.tensor.__dlpack__(max_version=self.max_version)


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_capsules_say_what_the_tensor_is(dtype, max_version) -> None:
    tensor = inlay.to_tensor(np.zeros((3, 4), dtype=DTYPES[dtype])).T
    capsule = tensor.__dlpack__(max_version=max_version)
    versioned = max_version is not None and max_version >= (1, 0)
    assert name_of(capsule) == (VERSIONED if versioned else LEGACY)
    managed = inside(capsule)
    if versioned:
        assert (managed.major, managed.minor, managed.flags) == (1, 0, 0)
    view = managed.tensor
    assert (view.device_type, view.device_id) == (1, 0) == tensor.__dlpack_device__()
    assert view.data + view.byte_offset == tensor.data_ptr()
    assert view.shape[: view.ndim] == [4, 3]
    assert view.strides[: view.ndim] == [1, 4]
    kind = dtype.rstrip("0123456789")
    assert (view.code, view.bits, view.lanes) == (CODES[kind], 8 * tensor.itemsize, 1)


@pytest.mark.parametrize("max_version", FORMS, ids=["legacy", "versioned"])
@pytest.mark.parametrize("dtype", NUMPY_KNOWS)
def test_numpy_reads_what_we_export(dtype, max_version) -> None:
    array = np.arange(24).astype(dtype).reshape(2, 3, 4)[::-1, :, 1::2]
    tensor = inlay.from_numpy(array)
    theirs = np.from_dlpack(Importer(tensor, max_version))
    np.testing.assert_array_equal(theirs, array)
    assert theirs.dtype == dtype
    assert np.shares_memory(theirs, array)


@pytest.mark.parametrize("versioned", [False, True], ids=["legacy", "versioned"])
@pytest.mark.parametrize("dtype", NUMPY_KNOWS)
def test_we_read_what_numpy_exports(dtype, versioned) -> None:
    array = np.arange(24).astype(dtype).reshape(2, 3, 4)[::-1, :, 1::2]
    tensor = inlay.from_dlpack(Exporter(array, versioned=versioned))
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert tensor.dtype == dtype
    assert tensor.strides == array.strides
    array[0, 0, 0] = 0
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_bfloat16_goes_both_ways() -> None:
    tensor = inlay.to_tensor([1.5, -2, 3], dtype="bfloat16")
    again = inlay.from_dlpack(tensor.__dlpack__())
    assert again.dtype == inlay.bfloat16
    assert again.tolist() == [1.5, -2, 3]
    assert again.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_empty_tensors_go_both_ways(shape) -> None:
    tensor = inlay.to_tensor(np.ones(shape, dtype="float32"))
    for theirs in (np.from_dlpack(tensor), inlay.from_dlpack(Exporter(np.ones(shape))).numpy()):
        assert theirs.shape == shape
        np.testing.assert_array_equal(theirs, np.ones(shape))


def test_read_only_memory_stays_read_only() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = inlay.from_numpy(array)
    capsule = tensor.__dlpack__(max_version=(1, 0))
    assert inside(capsule).flags == READ_ONLY
    assert not inlay.from_dlpack(capsule).writable
    # The older struct has no read-only flag, so the importer might write.
    for copy in (None, False):
        with pytest.raises(inlay.InlayBufferError, match="read-only"):
            tensor.__dlpack__(copy=copy)
    copied = tensor.__dlpack__(copy=True)
    assert inlay.from_dlpack(copied).writable
    assert inlay.from_dlpack(Exporter(np.arange(3.0))).writable


@numpy_speaks_versioned
def test_numpy_is_told_what_is_read_only() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    assert not np.from_dlpack(inlay.from_numpy(array)).flags.writeable
    assert not inlay.from_dlpack(array).writable


def test_copies_are_made_when_asked_for_or_needed() -> None:
    tensor = inlay.to_tensor([1.0, 2.0])
    capsule = tensor.__dlpack__(max_version=(1, 0), copy=True)
    assert inside(capsule).flags == IS_COPIED
    assert inlay.from_dlpack(capsule).data_ptr() != tensor.data_ptr()

    record = np.zeros(3, dtype=[("tag", "u1"), ("value", "f8")])
    record["value"] = [1, 2, 3]
    odd = inlay.from_numpy(record["value"])
    with pytest.raises(inlay.InlayBufferError, match="strided by parts of an element"):
        odd.__dlpack__(copy=False)
    capsule = odd.__dlpack__(max_version=(1, 0))
    assert inside(capsule).flags == IS_COPIED
    assert inlay.from_dlpack(capsule).tolist() == [1, 2, 3]


def test_what_the_cpu_has_not_is_refused() -> None:
    tensor = inlay.to_tensor([1.0])
    with pytest.raises(inlay.InlayBufferError, match="stream"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(inlay.InlayBufferError, match="CUDA"):
        tensor.__dlpack__(dl_device=(2, 0))
    assert inlay.from_dlpack(tensor.__dlpack__(stream=None, dl_device=(1, 0))).tolist() == [1.0]


@pytest.mark.parametrize("device", [(2, "CUDA"), (8, "Metal"), (10, "ROCm"), (77, "77")])
def test_memory_of_other_devices_is_refused_by_name(device) -> None:
    kind, name = device
    with pytest.raises(inlay.InlayBufferError, match=f"{name}.*expected the CPU"):
        inlay.from_dlpack(Exporter(np.zeros(1), device=(kind, 0)))
    capsule = inlay.to_tensor([1.0]).__dlpack__()
    inside(capsule).tensor.device_type = kind
    with pytest.raises(inlay.InlayValueError, match=f"{name}.*expected the CPU"):
        inlay.from_dlpack(capsule)


@pytest.mark.parametrize(
    ("field", "value", "error", "words"),
    [
        ("lanes", 2, inlay.InlayTypeError, "2 lanes of 32-bit float"),
        ("bits", 8, inlay.InlayTypeError, "8-bit float"),
        ("code", 3, inlay.InlayTypeError, "type code 3"),
        ("ndim", -1, inlay.InlayValueError, "ndim is -1"),
        ("data", None, inlay.InlayValueError, "data pointer is null"),
    ],
)
@pytest.mark.parametrize("max_version", [None, (1, 0)], ids=["legacy", "versioned"])
def test_capsules_that_we_cannot_read_are_refused_and_freed(
    field, value, error, words, max_version
) -> None:
    array = np.ones(2, dtype="float32")
    alive = weakref.ref(array)
    capsule = inlay.from_numpy(array).__dlpack__(max_version=max_version)
    setattr(inside(capsule).tensor, field, value)
    with pytest.raises(error, match=words):
        inlay.from_dlpack(capsule)
    del array
    gc.collect()
    assert alive() is None


def test_another_major_version_is_refused() -> None:
    capsule = inlay.to_tensor([1.0]).__dlpack__(max_version=(1, 0))
    inside(capsule).major = 2
    with pytest.raises(inlay.InlayValueError, match=r"version is 2\.0, expected 1\.x"):
        inlay.from_dlpack(capsule)


def test_a_capsule_is_taken_once() -> None:
    for max_version, used in ((None, b"used_dltensor"), ((1, 0), b"used_dltensor_versioned")):
        capsule = inlay.to_tensor([1.0]).__dlpack__(max_version=max_version)
        inlay.from_dlpack(capsule)
        assert name_of(capsule) == used
        with pytest.raises(inlay.InlayValueError, match="was taken"):
            inlay.from_dlpack(capsule)
    with pytest.raises(inlay.InlayValueError, match="holds no tensor"):
        inlay.from_dlpack(python.PyCapsule_New(1, b"something", None))


@pytest.mark.parametrize("max_version", FORMS, ids=["legacy", "versioned"])
def test_export_frees_its_tensor_once_whoever_has_it(max_version) -> None:
    array = np.ones(4)
    alive = weakref.ref(array)
    tensor = inlay.from_numpy(array)
    del array
    untaken = tensor.__dlpack__(max_version=max_version)
    theirs = np.from_dlpack(Importer(tensor, max_version))
    ours = inlay.from_dlpack(tensor.__dlpack__(max_version=max_version))
    del tensor
    for last in ("untaken", "theirs", "ours"):
        gc.collect()
        assert alive() is not None, last
        if last == "untaken":
            del untaken
        elif last == "theirs":
            del theirs
        else:
            del ours
    gc.collect()
    assert alive() is None


def test_import_calls_the_deleter_once_with_the_last_handle() -> None:
    calls = []
    array = np.arange(6.0)
    shape = (ctypes.c_int64 * 2)(2, 2)
    strides = (ctypes.c_int64 * 2)(-3, 1)
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
    managed = Legacy()
    view = managed.tensor
    view.data, view.byte_offset = array.ctypes.data, 24
    view.device_type, view.ndim, view.code, view.bits, view.lanes = 1, 2, 2, 64, 1
    view.shape, view.strides = shape, strides
    managed.deleter = ctypes.cast(deleter, ctypes.c_void_p)
    address = ctypes.addressof(managed)

    tensor = inlay.from_dlpack(python.PyCapsule_New(address, LEGACY, None))
    assert tensor.tolist() == [[3, 4], [0, 1]]
    other, third = inlay.from_dlpack(tensor), tensor.T
    for handle in ("tensor", "other"):
        assert calls == [], handle
        if handle == "tensor":
            del tensor
        else:
            del other
    assert third.tolist() == [[3, 0], [4, 1]]
    assert calls == []
    del third
    assert calls == [address]

    # Null strides mean row-major order. The deleter may be null.
    view.byte_offset, view.strides, managed.deleter = 16, None, None
    tensor = inlay.from_dlpack(python.PyCapsule_New(address, LEGACY, None))
    assert tensor.tolist() == [[2, 3], [4, 5]]
    del tensor
    assert calls == [address]


class Hostile:
    def __init__(self, result):
        self.result = result

    def __dlpack__(self, **_):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (None, inlay.InlayTypeError),
        (3, inlay.InlayTypeError),
        (TypeError("no"), inlay.InlayTypeError),
        (ValueError("no"), inlay.InlayValueError),
        (BufferError("no"), inlay.InlayBufferError),
        (RuntimeError("no"), inlay.InlayRuntimeError),
        (KeyError("no"), inlay.InlayTypeError),
    ],
)
def test_exporters_that_fail_are_reported(result, error) -> None:
    with pytest.raises(error, match="from_dlpack") as raised:
        inlay.from_dlpack(Hostile(result))
    if isinstance(result, Exception):
        assert raised.value.__cause__ is result


def test_objects_without_the_protocol_are_named() -> None:
    with pytest.raises(inlay.InlayTypeError, match="x is a list, which has no __dlpack__"):
        inlay.from_dlpack([1])
    for device in (None, (), "cpu", ("a", 0), (2**70, 0)):
        with pytest.raises(inlay.InlayError, match="from_dlpack"):
            inlay.from_dlpack(Exporter(np.zeros(1), device=device))
