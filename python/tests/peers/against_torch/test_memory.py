"""Memory shared with PyTorch through DLPack."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from arguments import bits, shapes
from naive import DTYPES

import inlay

from .support import assert_bits, each_dtype, laid, t, to_numpy, to_torch, torch_dtype


@each_dtype
def test_pytorch_tensors_are_shared(rng, dtype) -> None:
    for shape in shapes(rng, each=2):
        theirs = laid(rng, to_torch(bits(rng, dtype, shape)))
        ours = inlay.from_dlpack(theirs)
        assert ours.shape == list(shape)
        assert ours.dtype == dtype
        assert_bits(ours.numpy(), to_numpy(theirs))
        back = torch.from_dlpack(ours)
        assert back.dtype == theirs.dtype
        assert_bits(to_numpy(back), to_numpy(theirs))
        if theirs.numel():
            assert ours.data_ptr() == theirs.data_ptr() == back.data_ptr()
        if theirs.numel() > 1:
            # The stride of an axis of size 1 is not used.
            long = [axis for axis in range(theirs.ndim) if shape[axis] > 1]
            for axis in long:
                assert ours.strides[axis] == theirs.stride(axis) * ours.itemsize
                assert back.stride(axis) == theirs.stride(axis)


@each_dtype
def test_writes_show_on_the_other_side(dtype) -> None:
    theirs = torch.zeros(3, 4, dtype=torch_dtype(dtype))
    ours = inlay.from_dlpack(theirs.T[1:])
    inlay.select_scatter_(ours, np.ones(3, DTYPES[dtype]), 0, -1)
    assert theirs[:, 3].tolist() == [1, 1, 1]
    assert not theirs[:, :3].any()
    back = torch.from_dlpack(ours)
    back[0, 0] = 1
    assert ours.tolist()[0][0] == 1
    assert theirs[0, 1] == 1


@each_dtype
def test_each_side_keeps_the_memory_alive(dtype) -> None:
    array = (np.arange(1000) % 2).astype(DTYPES[dtype])
    theirs = torch.from_dlpack(inlay.to_tensor(array))
    ours = inlay.from_dlpack(to_torch(array)[1:])
    gc.collect()
    inlay.empty_cache()
    assert_bits(to_numpy(theirs), array)
    assert_bits(ours.numpy(), array[1:])


def test_memory_that_pytorch_can_not_see_as_it_is() -> None:
    # PyTorch has no negative strides and raises its own error. A copy works.
    array = np.arange(6.0).reshape(2, 3)[::-1]
    ours = inlay.from_numpy(array)
    with pytest.raises(RuntimeError, match="strides=\\[-3, 1\\]"):
        torch.from_dlpack(ours)
    assert torch.from_dlpack(ours.copy()).tolist() == array.tolist()


def test_read_only_memory() -> None:
    # By choice: PyTorch has no read-only tensors and ignores the flag on import, also that of NumPy
    # arrays. Inlay keeps the flag.
    array = np.zeros(2)
    array.flags.writeable = False
    ours = inlay.from_numpy(array)
    theirs = torch.from_dlpack(ours)
    assert theirs.data_ptr() == ours.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        inlay.scatter_(ours, [0], np.ones(1))


def test_tensors_that_are_not_what_their_memory_says() -> None:
    with pytest.raises(inlay.InlayBufferError, match="grad"):
        inlay.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises(inlay.InlayBufferError, match="conjugate bit"):
        inlay.from_dlpack(t([1 + 2j]).conj())
    with pytest.raises(inlay.InlayBufferError, match="layout"):
        inlay.from_dlpack(torch.eye(2).to_sparse())
    with pytest.raises(inlay.InlayError, match="meta"):
        inlay.from_dlpack(torch.ones(2, device="meta"))
    with pytest.raises(inlay.InlayTypeError, match="dtype"):
        inlay.from_dlpack(torch.zeros(2, dtype=torch.float8_e4m3fn))
    # A bug in PyTorch: it exports a tensor with its "negative" bit set as if the bit were not set,
    # and reads the wrong sign when it imports the tensor again. DLPack has no such flag. Inlay
    # refuses the tensor.
    negated = t([1 + 2j]).conj().imag
    assert negated.is_neg()
    assert negated.tolist() == [-2]
    assert torch.from_dlpack(negated).tolist() == [2]
    assert inlay.from_dlpack(negated.resolve_neg()).tolist() == [-2]
    for call in (inlay.from_dlpack, inlay.to_tensor):
        with pytest.raises(inlay.InlayTypeError, match=r"resolve_neg\(\)"):
            call(negated)
