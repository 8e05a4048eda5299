"""Tensors of PyTorch and Paddle exchanged through DLPack's table of C functions."""

from __future__ import annotations

import copy
import gc
import sys
import threading

import numpy as np
import paddle
import pytest
import torch
from dlpack_structs import Describe, DLTensor, table_of
from naive import DTYPES
from torch._subclasses.fake_tensor import FakeTensorMode

import inlay
from inlay._inlay import _adopt

CLASSES = {"torch": torch.Tensor, "paddle": paddle.Tensor}
each_library = pytest.mark.parametrize("library", CLASSES)


def ones(library: str, shape, dtype: str):
    module = sys.modules[library]
    return module.ones(shape, dtype=getattr(module, dtype))


def strides_of(theirs) -> tuple[int, ...]:
    return tuple(theirs.stride() if isinstance(theirs, torch.Tensor) else theirs.strides)


def knows(library: str, dtype: str) -> bool:
    # Paddle has the other unsigned dtypes in name, but no kernel that fills them.
    return library == "torch" or dtype not in ("uint16", "uint32", "uint64")


@pytest.fixture
def _no_python(monkeypatch) -> None:
    """`__dlpack__` of both libraries fails, so that only the table is left."""

    def fail(*_, **__):
        raise AssertionError("__dlpack__ was called")

    for cls in CLASSES.values():
        monkeypatch.setattr(cls, "__dlpack__", fail)
        monkeypatch.setattr(cls, "__dlpack_device__", fail)


# Imports.


@pytest.mark.usefixtures("_no_python")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@each_library
def test_every_dtype_is_imported_through_the_table(library, dtype) -> None:
    if not knows(library, dtype):
        pytest.skip("the library has no kernels for the dtype")
    theirs = ones(library, [3, 4], dtype)
    ours = inlay.from_dlpack(theirs)
    assert (ours.shape, ours.dtype, ours.writable) == ([3, 4], dtype, True)
    assert ours.data_ptr() == theirs.data_ptr()
    assert ours.tolist() == inlay.ones([3, 4], dtype=dtype).tolist()
    view = DLTensor()
    assert Describe(table_of(CLASSES[library]).describe)(theirs, view) == 0
    assert view.data == ours.data_ptr()


@pytest.mark.usefixtures("_no_python")
@each_library
@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda x: x, id="same"),
        pytest.param(lambda x: x.T, id="transposed"),
        pytest.param(lambda x: x[1:], id="rows"),
        pytest.param(lambda x: x[:, 1:3], id="columns"),
        pytest.param(lambda x: x[::2, ::3], id="steps"),
        pytest.param(lambda x: x[1, 2], id="scalar"),
        pytest.param(lambda x: x[2:2], id="no rows"),
        pytest.param(lambda x: x[:, 4:], id="no columns"),
        pytest.param(lambda x: x.reshape([1, 3, 1, 4, 1]), id="axes of 1"),
        pytest.param(lambda x: x[:1].expand([5, 4]), id="expanded"),
        pytest.param(lambda x: x.reshape([1] * 5 + [3, 4]), id="many axes"),
    ],
)
def test_views_are_imported_through_the_table(library, view) -> None:
    theirs = view(sys.modules[library].arange(12).reshape([3, 4]))
    ours = inlay.from_dlpack(theirs)
    assert ours.tolist() == theirs.tolist()
    assert ours.shape == list(theirs.shape)
    if ours.size:
        assert ours.data_ptr() == theirs.data_ptr()
        used = [axis for axis, size in enumerate(ours.shape) if size > 1]
        assert [ours.strides[k] for k in used] == [8 * strides_of(theirs)[k] for k in used]


@pytest.mark.usefixtures("_no_python")
@each_library
def test_writes_are_seen_on_both_sides(library) -> None:
    theirs = ones(library, [2, 3], "float32")
    ours = inlay.from_dlpack(theirs)
    theirs[0, 0] = 5
    assert ours.tolist() == [[5, 1, 1], [1, 1, 1]]
    ours[1] = 7.0
    assert theirs.tolist() == [[5, 1, 1], [7, 7, 7]]
    assert inlay.slice_scatter_(theirs, np.zeros((1, 3), "f4"), stop=1) is theirs
    assert ours.tolist() == theirs.tolist() == [[0, 0, 0], [7, 7, 7]]
    column = theirs[:, 1]
    inlay.scatter_(column, [0], [9.0])
    assert theirs.tolist() == [[0, 9, 0], [7, 7, 7]]


@pytest.mark.usefixtures("_no_python")
def test_parameters_and_subclasses_are_imported_through_the_table() -> None:
    class Special(torch.Tensor):
        pass

    for theirs in (
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
        torch.nn.Buffer(torch.ones(2)),
        torch.ones(2).as_subclass(Special),
        paddle.create_parameter([2], "float32"),
    ):
        if isinstance(theirs, paddle.Tensor):
            theirs.stop_gradient = True
        ours = inlay.from_dlpack(theirs)
        assert ours.data_ptr() == theirs.data_ptr()


def test_a_subclass_with_its_own_dispatch_is_asked_itself() -> None:
    class Wrapper(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.Tensor.__dlpack__:
                return torch.zeros(3).__dlpack__(**kwargs)
            return super().__torch_function__(func, types, args, kwargs or {})

    theirs = torch.ones(2).as_subclass(Wrapper)
    assert inlay.from_dlpack(theirs).tolist() == [0, 0, 0]


# Lifetime.


@each_library
def test_an_import_keeps_the_memory_and_gives_it_back(library) -> None:
    theirs = ones(library, [1000], "float32")
    count = sys.getrefcount(theirs)
    for _ in range(100):
        inlay.from_dlpack(theirs)
    gc.collect()
    assert sys.getrefcount(theirs) == count
    ours = inlay.from_dlpack(theirs)
    del theirs
    gc.collect()
    other = [ones(library, [1000], "float32") * 2 for _ in range(10)]
    assert ours.tolist() == [1.0] * 1000
    assert len(other) == 10


def test_an_import_keeps_memory_that_a_paddle_tensor_gave_up() -> None:
    # Not so PyTorch, whose exports refer to the tensor and not to its memory:
    # `y = torch.from_dlpack(x); x.set_()` leaves `y` with memory that was freed.
    for change in (
        lambda theirs: theirs.set_(),
        lambda theirs: theirs._clear_data(),
        lambda theirs: setattr(theirs, "data", paddle.zeros([3])),
    ):
        theirs = paddle.ones([1000])
        ours = inlay.from_dlpack(theirs)
        change(theirs)
        gc.collect()
        other = [paddle.zeros([1000]) for _ in range(10)]
        assert ours.tolist() == [1.0] * 1000
        assert len(other) == 10


@each_library
def test_memory_returns_to_the_pool_when_the_library_frees_it(library) -> None:
    gc.collect()
    start = inlay.memory_stats()["in_use"]
    theirs = [_adopt(inlay.zeros([1000]), CLASSES[library]) for _ in range(8)]
    assert inlay.memory_stats()["in_use"] >= start + 8 * 4000
    view = theirs[0][10:20]
    again = inlay.from_dlpack(theirs[1])
    # Half of them are freed by other threads.
    threads = [threading.Thread(target=each.clear) for each in ([theirs.pop()] for _ in range(4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads, thread, theirs
    gc.collect()
    assert inlay.memory_stats()["in_use"] > start
    assert view.tolist() == [0] * 10
    assert again.tolist() == [0] * 1000
    del view, again
    gc.collect()
    assert inlay.memory_stats()["in_use"] == start


@each_library
def test_many_threads_exchange_at_once(library) -> None:
    gc.collect()
    start = inlay.memory_stats()["in_use"]
    wrong: list[object] = []

    def work(value: int) -> None:
        for k in range(200):
            theirs = _adopt(inlay.to_tensor([value] * (1 + k * 3)), CLASSES[library])
            total = inlay.sum(theirs)
            if int(total) != value * (1 + k * 3):
                wrong.append((value, k))

    threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert wrong == []
    assert inlay.memory_stats()["in_use"] == start


# Exports.


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@each_library
def test_every_dtype_is_exported_through_the_table(library, dtype) -> None:
    ours = inlay.ones([2, 3], dtype=dtype)
    theirs = _adopt(ours, CLASSES[library])
    assert type(theirs) is CLASSES[library]
    assert theirs.dtype == getattr(sys.modules[library], dtype)
    assert theirs.data_ptr() == ours.data_ptr()
    assert (list(theirs.shape), strides_of(theirs)) == ([2, 3], (3, 1))
    assert inlay.from_dlpack(theirs).tolist() == ours.tolist()
    if knows(library, dtype):
        assert (theirs == ones(library, [2, 3], dtype)).all()


@each_library
@pytest.mark.parametrize("shape", [[], [0], [2, 0, 3], [1, 1], [2, 1, 4, 4], [1] * 7], ids=str)
def test_every_shape_is_exported_through_the_table(library, shape) -> None:
    theirs = _adopt(inlay.ones(shape), CLASSES[library])
    expected = ones(library, shape, "float32")
    assert list(theirs.shape) == shape
    assert theirs.tolist() == expected.tolist()
    if library == "torch":
        assert theirs.stride() == expected.stride()
        assert theirs.is_contiguous()
        if theirs.dim() == 4:
            # In the other memory format, conv2d would return its result in that format, too.
            kernel = torch.ones(2, 1, 1, 1)
            results = [torch.conv2d(x, kernel).stride() for x in (theirs, expected)]
            assert results[0] == results[1]


@each_library
def test_views_are_exported_through_the_table(library) -> None:
    ours = inlay.arange(12).reshape(3, 4)
    for view in (ours.T, ours[1:, ::2], ours[1], ours[1, 2], ours[:0]):
        theirs = _adopt(view, CLASSES[library])
        assert theirs.tolist() == view.tolist()
    theirs[...] = 0
    backwards = inlay.from_numpy(np.arange(6.0).reshape(2, 3)[::-1])
    theirs = _adopt(backwards, CLASSES[library])
    # Neither library has negative strides, so this is a copy.
    assert theirs.tolist() == backwards.tolist()
    assert strides_of(theirs) == (3, 1)


@each_library
def test_small_results_stay_where_they_are(library) -> None:
    # Small buffers are a part of their handle.
    theirs = [_adopt(inlay.to_tensor([k] * size), CLASSES[library]) for k, size in SMALL]
    addresses = [each.data_ptr() for each in theirs]
    gc.collect()
    other = [inlay.to_tensor([-1] * size) for _, size in SMALL]
    assert [each.tolist() for each in theirs] == [[k] * size for k, size in SMALL]
    assert [each.data_ptr() for each in theirs] == addresses
    assert all(address % 64 == 0 for address in addresses)
    assert len(other) == len(SMALL)


SMALL = [(k, size) for k, size in enumerate([1, 8, 32, 33, 64, 112, 113, 200])]


@each_library
def test_an_exported_tensor_is_like_any_other(library) -> None:
    theirs = _adopt(inlay.ones([2, 3]), CLASSES[library])
    theirs[0, 1] = 4
    theirs += 1
    assert copy.deepcopy(theirs).tolist() == [[2, 5, 2], [2, 2, 2]]
    assert theirs.numpy().tolist() == theirs.tolist()
    if library == "torch":
        assert not theirs.requires_grad
        leaf = theirs.requires_grad_()
    else:
        assert theirs.stop_gradient
        theirs.stop_gradient = False
        leaf = theirs
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == [[4, 10, 4], [4, 4, 4]]
    if library == "torch":
        # Its memory is not PyTorch's to grow.
        with pytest.raises(RuntimeError, match="not resizable"):
            _adopt(inlay.ones([4]), torch.Tensor).resize_(1000)


# Refusals. An operation names itself and the argument.


def refused(theirs, words: str, error=inlay.InlayError) -> None:
    with pytest.raises(error, match=words):
        inlay.from_dlpack(theirs)
    with pytest.raises(error, match=words):
        inlay.add(theirs, 1.0)
    with pytest.raises(error, match=words):
        inlay.scatter_(theirs, [0], [1.0])


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state:UserWarning")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype:UserWarning")
def test_torch_tensors_without_strided_memory_are_refused() -> None:
    eye = torch.eye(3)
    for theirs in (eye.to_sparse(), eye.to_sparse_csr()):
        refused(theirs, "layout", inlay.InlayBufferError)
    refused(eye.to_mkldnn(), "storage")
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    refused(nested, "NestedTensor")
    refused(torch.ones(2, device="meta"), "meta")
    refused(torch._efficientzerotensor(3), "data pointer is null", inlay.InlayValueError)
    with FakeTensorMode():
        fake = torch.ones(2)
    refused(fake, "data pointer")


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.complex32], ids=str)
def test_torch_dtypes_that_inlay_does_not_have_are_refused(dtype) -> None:
    refused(torch.zeros(2, dtype=dtype), "the dtype is", inlay.InlayTypeError)


def test_torch_tensors_of_function_transforms_are_refused() -> None:
    def work(x):
        with pytest.raises(inlay.InlayError, match="from_dlpack: x"):
            inlay.from_dlpack(x)
        return x.sum()

    torch.func.vmap(work)(torch.ones(3, 2))
    torch.func.grad(work)(torch.ones(3))


def test_torch_tensors_that_require_gradients_are_refused() -> None:
    leaf = torch.ones(2, requires_grad=True)
    for theirs in (leaf, leaf * 2, torch.nn.Parameter(torch.ones(2))):
        with pytest.raises(inlay.InlayBufferError, match=r"from_dlpack: x: .*gradient"):
            inlay.from_dlpack(theirs)
        with pytest.raises(inlay.InlayTypeError, match=r"add: x is a torch.*x.detach\(\)"):
            inlay.add(theirs, 1.0)
        assert inlay.from_dlpack(theirs.detach()).data_ptr() == theirs.data_ptr()


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental:UserWarning")
def test_torch_tensors_that_differ_from_their_memory_are_refused() -> None:
    pair = torch.tensor([[1 + 2j, 3 + 4j], [5 + 6j, 7 + 8j]])
    for conjugated in (pair.conj(), pair.conj()[0], pair.conj()[0, 0], pair.T.conj()):
        assert conjugated.is_conj()
        refused(conjugated, r"conjugate bit.*resolve_conj\(\)", inlay.InlayBufferError)
        assert inlay.from_dlpack(conjugated.resolve_conj()).tolist() == conjugated.tolist()
    for half in (pair, pair.to(torch.complex32)):
        negated = half.conj().imag
        for theirs in (negated, negated[0], negated[0, 0], negated.T, negated[:, :1]):
            assert theirs.is_neg()
            refused(theirs, r"negated.*resolve_neg\(\)", inlay.InlayTypeError)
            assert inlay.from_dlpack(theirs.resolve_neg()).tolist() == theirs.tolist()
        # The imaginary part of a tensor that is not conjugated is as it is.
        assert inlay.from_dlpack(half.imag).tolist() == half.imag.tolist()
    both = torch._neg_view(pair)
    assert both.is_neg()
    refused(both, r"resolve_neg\(\)", inlay.InlayTypeError)


def test_paddle_tensors_without_strided_memory_are_refused() -> None:
    coo = paddle.sparse.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
    refused(coo, "sparse", inlay.InlayBufferError)
    refused(coo.to_sparse_csr(), "sparse", inlay.InlayBufferError)
    refused(paddle.zeros([2]).astype("float8_e4m3fn"), "the dtype is", inlay.InlayTypeError)
    assert inlay.from_dlpack(paddle.Tensor()).shape == [0]


def test_paddle_tensors_that_require_gradients_are_refused() -> None:
    leaf = paddle.to_tensor([1.0], stop_gradient=False)
    for theirs in (leaf, leaf * 2, paddle.create_parameter([2], "float32")):
        with pytest.raises(inlay.InlayBufferError, match=r"from_dlpack: x: .*gradient"):
            inlay.from_dlpack(theirs)
        with pytest.raises(inlay.InlayTypeError, match=r"add: x is a paddle.*x.detach\(\)"):
            inlay.add(theirs, 1.0)
        assert inlay.from_dlpack(theirs.detach()).data_ptr() == theirs.data_ptr()
