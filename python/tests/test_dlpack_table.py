"""DLPack's table of C functions: that of Tensor, and those of classes of other libraries."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
from dlpack_structs import (
    TABLE,
    Allocate,
    Api,
    Deleter,
    Describe,
    DLTensor,
    FromObject,
    SetError,
    Stream,
    ToObject,
    Versioned,
    name_of,
    python,
    table_of,
)
from naive import DTYPES

import inlay

READ_ONLY, IS_COPIED = 1, 2
OURS = table_of(inlay.Tensor)


def export(tensor) -> Versioned:
    out = ctypes.POINTER(Versioned)()
    assert FromObject(OURS.from_object)(tensor, out) == 0
    return out.contents


def free(managed: Versioned) -> None:
    Deleter(managed.deleter)(ctypes.addressof(managed))


def take(managed: Versioned):
    out = ctypes.py_object()
    assert ToObject(OURS.to_object)(managed, out) == 0
    tensor = out.value
    # `value` has its own reference, and that of the function is ours.
    python.Py_DecRef(ctypes.py_object(tensor))
    return tensor


def describe(tensor) -> DLTensor:
    view = DLTensor()
    assert Describe(OURS.describe)(tensor, view) == 0
    return view


def allocate(prototype: DLTensor):
    errors: list[tuple[bytes, bytes]] = []
    out = ctypes.POINTER(Versioned)()
    report = SetError(lambda _context, kind, text: errors.append((kind, text)))
    status = Allocate(OURS.allocate)(prototype, out, None, report)
    assert (status, bool(out)) in ((0, True), (-1, False))
    return out.contents if out else errors


def sizes_of(view: DLTensor) -> tuple[list[int], list[int]]:
    return view.shape[: view.ndim], view.strides[: view.ndim]


def test_the_table_is_on_the_class() -> None:
    capsule = inlay.Tensor.__dlpack_c_exchange_api__
    assert name_of(capsule) == TABLE
    assert (OURS.major, OURS.minor, OURS.previous) == (1, 3, None)
    for name in ("allocate", "from_object", "to_object", "describe", "stream"):
        assert getattr(OURS, name), name


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_both_exports_say_what_the_tensor_is(dtype) -> None:
    tensor = inlay.to_tensor(np.zeros((3, 4), dtype=DTYPES[dtype])).T
    managed = export(tensor)
    assert (managed.major, managed.flags) == (1, 0)
    capsule = tensor.__dlpack__(max_version=(1, 0))
    expected = Versioned.from_address(python.PyCapsule_GetPointer(capsule, name_of(capsule)))
    for view in (managed.tensor, describe(tensor)):
        assert view.data == tensor.data_ptr()
        assert (view.device_type, view.device_id, view.byte_offset) == (1, 0, 0)
        assert sizes_of(view) == ([4, 3], [1, 4])
        for field in ("code", "bits", "lanes"):
            assert getattr(view, field) == getattr(expected.tensor, field)
    free(managed)


def test_a_description_lives_as_long_as_the_tensor() -> None:
    tensors = [inlay.zeros([n, 2, 3, 4, 5, 6, 7]) for n in range(1, 4)]
    views = [describe(tensor) for tensor in tensors]
    for n, view in enumerate(views, 1):
        assert sizes_of(view) == ([n, 2, 3, 4, 5, 6, 7], [5040, 2520, 840, 210, 42, 7, 1])
    first = describe(tensors[0])
    again = describe(tensors[0])
    assert ctypes.addressof(first.shape.contents) == ctypes.addressof(again.shape.contents)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_empty_tensors(shape) -> None:
    tensor = inlay.ones(list(shape), dtype="int16")
    managed = export(tensor)
    for view in (managed.tensor, describe(tensor)):
        assert view.ndim == len(shape)
        assert bool(view.data) == (0 not in shape)
    again = take(managed)
    assert (again.shape, again.dtype, again.tolist()) == (list(shape), "int16", tensor.tolist())


def test_tensors_that_require_a_gradient_are_exported_as_by_dlpack() -> None:
    tensor = inlay.to_tensor([1.0, 2.0], stop_gradient=False)
    assert inlay.from_dlpack(tensor.__dlpack__()).data_ptr() == tensor.data_ptr()
    again = take(export(tensor))
    assert again.data_ptr() == tensor.data_ptr() == describe(tensor).data
    assert again.stop_gradient


def test_what_can_not_be_exported_raises() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    fixed = inlay.from_numpy(array)
    managed = export(fixed)
    assert managed.flags == READ_ONLY
    assert not take(managed).writable
    with pytest.raises(inlay.InlayBufferError, match="read-only"):
        describe(fixed)

    record = np.zeros(3, dtype=[("tag", "u1"), ("value", "f8")])
    record["value"] = [1, 2, 3]
    odd = inlay.from_numpy(record["value"])
    managed = export(odd)
    assert managed.flags == IS_COPIED
    assert take(managed).tolist() == [1, 2, 3]
    with pytest.raises(inlay.InlayBufferError, match="strided by parts"):
        describe(odd)

    for call in (export, describe):
        for other in (None, 3, np.zeros(2)):
            with pytest.raises(inlay.InlayBufferError, match="expected a Tensor"):
                call(other)

    program = inlay.static.Program()
    symbolic = program.data("x", [None], "float32")
    for call in (export, describe):
        with pytest.raises(inlay.InlayBufferError, match="symbolic"):
            call(symbolic)


def test_imports_own_the_struct_also_when_they_fail() -> None:
    array = np.ones(2)
    alive = weakref.ref(array)
    managed = export(inlay.from_numpy(array))
    managed.tensor.bits = 8
    with pytest.raises(inlay.InlayTypeError, match="8-bit float"):
        take(managed)
    managed = export(inlay.from_numpy(array))
    managed.major = 2
    with pytest.raises(inlay.InlayValueError, match="version"):
        take(managed)
    with pytest.raises(inlay.InlayBufferError, match="null"):
        ToObject(OURS.to_object)(ctypes.POINTER(Versioned)(), ctypes.py_object())
    tensor = take(export(inlay.from_numpy(array)))
    del array
    gc.collect()
    assert alive() is not None
    del tensor
    gc.collect()
    assert alive() is None


def test_memory_goes_back_to_the_pool_from_any_thread_without_the_gil() -> None:
    start = inlay.memory_stats()["in_use"]
    managed = [export(inlay.zeros([1000])) for _ in range(3)]
    assert inlay.memory_stats()["in_use"] > start
    # `CFUNCTYPE` releases the GIL, so the deleter runs without it.
    threads = [threading.Thread(target=free, args=(each,)) for each in managed]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inlay.memory_stats()["in_use"] == start


@pytest.mark.parametrize("size", [4, 1000], ids=["inside of the handle", "in the pool"])
def test_the_allocator_takes_memory_from_the_pool(size) -> None:
    start = inlay.memory_stats()["in_use"]
    like = inlay.zeros([1, 3], dtype="int64")
    prototype = describe(like)
    prototype.shape = (ctypes.c_int64 * 2)(size, 3)
    prototype.strides, prototype.data = None, None
    managed = allocate(prototype)
    assert (managed.major, managed.flags) == (1, 0)
    assert sizes_of(managed.tensor) == ([size, 3], [3, 1])
    assert managed.tensor.data % 64 == 0
    tensor = take(managed)
    assert (tensor.dtype, tensor.writable) == ("int64", True)
    tensor.masked_fill_(True, 7)
    assert tensor.tolist() == [[7] * 3] * size
    del tensor
    assert inlay.memory_stats()["in_use"] == start


@pytest.mark.parametrize(
    ("field", "value", "kind", "words"),
    [
        ("device_type", 2, b"BufferError", b"CUDA"),
        ("lanes", 2, b"BufferError", b"2 lanes"),
        ("ndim", -1, b"BufferError", b"ndim is -1"),
        ("shape", (ctypes.c_int64 * 1)(-1), b"BufferError", b"shape"),
        (
            "shape",
            (ctypes.c_int64 * 1)(2**62),
            b"BufferError",
            b"more memory than can be addressed",
        ),
        ("shape", (ctypes.c_int64 * 1)(2**55), b"MemoryError", b"memory"),
    ],
)
def test_the_allocator_reports_errors(field, value, kind, words) -> None:
    tensor = inlay.zeros([2])
    prototype = describe(tensor)
    setattr(prototype, field, value)
    [(got, text)] = allocate(prototype)
    assert got == kind
    assert words in text


def test_the_cpu_has_no_stream() -> None:
    out = ctypes.c_void_p(1)
    assert Stream(OURS.stream)(1, 0, out) == 0
    assert out.value is None


class Library:
    """The functions of another library, and the classes of its tensors."""

    def __init__(self, *, major=1, flags=0, status=0, previous=None, drop=None):
        self.calls: list[str] = []

        def from_object(tensor, out):
            self.calls.append("from_object")
            if status == 0:
                managed = export(tensor.inner)
                managed.flags = flags
                out[0] = ctypes.pointer(managed)
            return status

        def to_object(managed, out):
            free(managed.contents)
            return -1

        self.functions = {"from_object": FromObject(from_object), "to_object": ToObject(to_object)}
        self.api = Api(major=major, minor=0, previous=previous)
        for name, function in self.functions.items():
            if name != drop:
                setattr(self.api, name, ctypes.cast(function, ctypes.c_void_p))

    def make(self, inner, **attributes):
        """An object of a class that has the table, or whose base has it."""
        capsule = python.PyCapsule_New(ctypes.addressof(self.api), TABLE, None)
        cls = type("Array", (), {"__dlpack_c_exchange_api__": capsule, "__dlpack__": self.dlpack})
        if attributes:
            cls = type("Special", (cls,), attributes)
        result = cls()
        result.inner = inner
        # The table must live as long as the process.
        FOREVER.append(self)
        return result

    def dlpack(self, **options):
        self.calls.append("__dlpack__")
        return inlay.to_tensor([7.0]).__dlpack__(**options)


FOREVER: list[Library] = []


def test_arguments_are_read_through_the_table() -> None:
    library = Library()
    ours = inlay.to_tensor([1.0, 2.0])
    theirs = library.make(ours)
    shared = inlay.from_dlpack(theirs)
    assert shared.data_ptr() == ours.data_ptr()
    assert inlay.add(theirs, 1.0).tolist() == [2, 3]
    assert inlay.scatter_(theirs, [0], [5.0]) is theirs
    assert ours.tolist() == shared.tolist() == [5, 2]
    assert inlay.stack([theirs, theirs]).tolist() == [[5, 2], [5, 2]]
    assert "__dlpack__" not in library.calls


def test_subclasses_have_the_table_unless_they_export_in_another_way() -> None:
    ours = inlay.to_tensor([1.0, 2.0])
    for attributes, through in (
        ({"other": 1}, True),
        ({"__torch_function__": len}, True),
        ({"__torch_function__": classmethod(lambda *_: None)}, False),
        ({"__torch_dispatch__": classmethod(lambda *_: None)}, False),
        ({"__dlpack__": lambda self, **options: inlay.to_tensor([7.0]).__dlpack__()}, False),
    ):
        theirs = Library().make(ours, **attributes)
        assert inlay.from_dlpack(theirs).tolist() == ([1, 2] if through else [7]), attributes


def test_tables_that_can_not_be_used_are_left_alone() -> None:
    ours = inlay.to_tensor([1.0, 2.0])
    old = Library()
    for library, through in (
        (Library(major=2), False),
        (Library(major=2, previous=ctypes.addressof(old.api)), True),
        (Library(drop="from_object"), False),
        (Library(drop="to_object"), False),
    ):
        assert inlay.from_dlpack(library.make(ours)).tolist() == ([1, 2] if through else [7])
    for capsule in (None, 3, python.PyCapsule_New(1, b"something", None)):
        other = library.make(ours, __dlpack_c_exchange_api__=capsule)
        assert inlay.from_dlpack(other).tolist() == [7]


def test_flags_of_the_struct_count() -> None:
    ours = inlay.to_tensor([1.0, 2.0])
    fixed = Library(flags=READ_ONLY).make(ours)
    assert not inlay.from_dlpack(fixed).writable
    with pytest.raises(inlay.InlayValueError, match="read-only"):
        inlay.scatter_(fixed, [0], [5.0])
    copied = Library(flags=IS_COPIED)
    theirs = copied.make(ours)
    assert inlay.add(theirs, 1.0).tolist() == [2, 3]
    # Writes to a copy would be lost. `__dlpack__` is asked for shared memory instead.
    copied.calls.clear()
    inlay.scatter_(theirs, [0], [5.0])
    assert copied.calls == ["from_object", "__dlpack__"]
    assert ours.tolist() == [1, 2]


def test_refusals_of_the_table_are_explained_by_dlpack() -> None:
    library = Library(status=-1)
    assert inlay.from_dlpack(library.make(inlay.to_tensor([1.0]))).tolist() == [7]
    assert library.calls == ["from_object", "__dlpack__"]


def test_refusals_of_results_are_errors() -> None:
    theirs = Library().make(inlay.to_tensor([1.0]))
    with pytest.raises(inlay.InlayRuntimeError, match=r"_adopt: .*without a message"):
        inlay._inlay._adopt(inlay.zeros([2]), type(theirs))
    with pytest.raises(inlay.InlayTypeError, match="cls is int, which has no __dlpack_c"):
        inlay._inlay._adopt(inlay.zeros([2]), int)
    adopted = inlay._inlay._adopt(inlay.ones([2]), inlay.Tensor)
    assert adopted.tolist() == [1, 1]


def test_gradients_of_the_library_are_refused() -> None:
    ours = inlay.to_tensor([1.0, 2.0])
    for attributes in ({"requires_grad": True}, {"stop_gradient": False}):
        library = Library()
        theirs = library.make(ours)
        for name, value in attributes.items():
            setattr(type(theirs), name, value)
        with pytest.raises(inlay.InlayTypeError, match=r"requires a gradient.*x.detach\(\)"):
            inlay.add(theirs, 1.0)
        # Here `__dlpack__` decides. That of PyTorch and that of Paddle refuse.
        inlay.from_dlpack(theirs)
        assert library.calls == ["__dlpack__"]


def test_classes_are_not_kept_in_numbers() -> None:
    alive = []
    for _ in range(500):
        cls = type("Passing", (), {"__dlpack__": lambda self, **_: inlay.zeros([1]).__dlpack__()})
        inlay.from_dlpack(cls())
        alive.append(weakref.ref(cls))
    del cls
    gc.collect()
    assert sum(each() is not None for each in alive) <= 64
