"""Memory shared with PyTorch and Paddle without a copy, in both directions."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch
from naive import DTYPES

import inlay

# Paddle has no unsigned integers except uint8.
PADDLE_KNOWS = [name for name in DTYPES if name not in ("uint16", "uint32", "uint64")]


def ones(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.ones(shape, dtype=DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_torch_tensors_are_shared_both_ways(dtype) -> None:
    theirs = torch.ones((3, 4), dtype=getattr(torch, dtype)).T[1:]
    ours = inlay.from_dlpack(theirs)
    assert ours.shape == [3, 3]
    assert ours.dtype == dtype
    assert ours.data_ptr() == theirs.data_ptr()
    assert ours.strides == tuple(stride * ours.itemsize for stride in theirs.stride())
    theirs[0, 0] = 0
    assert ours.tolist()[0][0] == 0
    back = torch.from_dlpack(ours)
    assert back.dtype == theirs.dtype
    assert back.data_ptr() == theirs.data_ptr()
    assert torch.equal(back, theirs)


@pytest.mark.parametrize("dtype", PADDLE_KNOWS)
def test_paddle_tensors_are_shared_both_ways(dtype) -> None:
    theirs = paddle.ones([3, 4], dtype=dtype)
    ours = inlay.from_dlpack(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == dtype
    assert ours.data_ptr() == theirs.data_ptr()
    back = paddle.from_dlpack(ours)
    assert back.dtype == theirs.dtype
    assert back.data_ptr() == theirs.data_ptr()
    assert bool((back == theirs).all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_memory_of_ours_outlives_us_in_torch(dtype) -> None:
    theirs = torch.from_dlpack(inlay.to_tensor(ones((4, 5), dtype)))
    inlay.empty_cache()
    assert torch.equal(theirs, torch.ones((4, 5), dtype=getattr(torch, dtype)))


def to_torch(values: object) -> torch.Tensor:
    return torch.from_numpy(np.array(values))


each_library = pytest.mark.parametrize(
    "make", [to_torch, paddle.to_tensor], ids=["torch", "paddle"]
)


@each_library
def test_their_tensors_are_arguments_of_every_kind(make) -> None:
    x, flat = make(np.ones((2, 2), "f4")), make(np.ones(2, "f4"))
    index, column, mask = make([0]), make([[0]]), make([True, False])
    ours = inlay.arange(4, dtype="float32").reshape(2, 2)
    for call in (
        lambda a: inlay.scatter(a(x), [0], np.zeros((1, 2), "f4")),
        lambda a: inlay.scatter(ours, a(index), np.ones((1, 2), "f4")),
        lambda a: inlay.scatter_(ours.copy(), [0], a(x)),
        lambda a: ours.scatter([0], a(x)),
        lambda a: inlay.masked_scatter(ours, a(mask), ours),
        lambda a: inlay.masked_scatter(ours, [True, False], a(flat)),
        lambda a: inlay.slice_scatter(a(x), ours),
        lambda a: inlay.diagonal_scatter(ours, a(flat)),
        lambda a: inlay.put_along_axis(ours, a(column), 7.0, 0),
        lambda a: inlay.index_select(ours, a(index)),
        lambda a: inlay.where(a(mask), ours, ours),
        lambda a: inlay.tril(a(x)),
        lambda a: inlay.sum(a(x)),
        lambda a: inlay.cast(a(x), "int8"),
        lambda a: inlay.add(ours, a(x)),
        lambda a: inlay.to_tensor(a(x)),
    ):
        got, expected = call(lambda theirs: theirs), call(lambda theirs: theirs.numpy())
        # A result belongs to the library of the arguments, but a target stays what it is, and
        # `to_tensor` returns a Tensor.
        assert type(got) in (type(x), inlay.Tensor)
        assert np.array_equal(np.asarray(got), np.asarray(expected))


@each_library
def test_their_tensors_are_written_in_place(make) -> None:
    theirs = make(np.zeros((2, 2), "f4"))
    assert inlay.slice_scatter_(theirs, np.ones((2, 2), "f4")) is theirs
    assert theirs.tolist() == [[1, 1], [1, 1]]


@each_library
def test_their_tensors_are_keys(make) -> None:
    for key in ([0], [0, 1], [True, False], True):
        ours, array = inlay.zeros([2, 2]), np.zeros((2, 2), "f4")
        ours[make(key)] = 1.0
        array[np.array(key)] = 1.0
        assert np.array_equal(ours, array)
        assert np.array_equal(ours[make(key)], array[np.array(key)])


def test_tensors_of_others_are_arguments() -> None:
    for other in (torch.ones(2), paddle.ones([2])):
        assert inlay.to_tensor(other).tolist() == [1, 1]
        result = inlay.scatter(other, [0], [5.0])
        assert type(result) is type(other)
        assert result.tolist() == [5, 1]
    other = torch.ones(2)
    assert inlay.scatter_(other, [0], [5.0]) is other
    assert other.tolist() == [5, 1]
    assert inlay.sum([torch.ones(2), torch.ones(2)]).item() == 4


def test_tensors_are_arguments_of_others() -> None:
    ours = inlay.to_tensor([1.0, 2.0])
    assert torch.as_tensor(ours).tolist() == [1, 2]
    assert torch.as_tensor(ours).data_ptr() == ours.data_ptr()
    # `paddle.to_tensor` takes neither arrays of other libraries nor `__array__`.
    assert paddle.from_dlpack(ours).tolist() == [1, 2]


def test_torch_tensors_that_want_gradients_are_refused() -> None:
    with pytest.raises(inlay.InlayBufferError, match="grad"):
        inlay.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(inlay.InlayTypeError, match=r"torch.Tensor that requires .*data.detach\(\)"):
        inlay.to_tensor(torch.ones(2, requires_grad=True))
    leaf = paddle.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(inlay.InlayTypeError, match=r"data.detach\(\)"):
        inlay.to_tensor(leaf)
