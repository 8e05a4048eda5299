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


def test_tensors_of_others_are_refused_by_name_without_from_dlpack() -> None:
    for other, name in ((torch.ones(2), "torch.Tensor"), (paddle.ones([2]), "paddle.Tensor")):
        with pytest.raises(inlay.InlayTypeError, match=rf"{name}; .*inlay.from_dlpack"):
            inlay.to_tensor(other)


def test_torch_tensors_that_want_gradients_are_refused() -> None:
    with pytest.raises(inlay.InlayBufferError, match="grad"):
        inlay.from_dlpack(torch.ones(2, requires_grad=True))
