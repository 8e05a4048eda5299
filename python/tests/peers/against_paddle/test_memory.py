"""Memory shared with Paddle through DLPack."""

from __future__ import annotations

import gc

import numpy as np
import paddle
import pytest
from arguments import assert_bits, bits
from naive import DTYPES

import inlay

from .support import KNOWN, full_shapes, laid, to_numpy, to_paddle


@pytest.mark.parametrize("dtype", KNOWN)
def test_paddle_tensors_are_shared(rng, dtype) -> None:
    for shape in full_shapes(rng, each=2):
        array = bits(rng, dtype, shape)
        theirs = laid(rng, array)
        ours = inlay.from_dlpack(theirs)
        assert ours.shape == list(shape)
        assert ours.dtype == dtype
        assert_bits(ours.numpy(), array)
        back = paddle.from_dlpack(ours)
        assert back.dtype == theirs.dtype
        assert_bits(to_numpy(back), array)
        if array.size:
            assert ours.data_ptr() == theirs.data_ptr() == back.data_ptr()
        for axis in range(array.ndim):
            if array.size and shape[axis] > 1:
                assert ours.strides[axis] == theirs.strides[axis] * ours.itemsize
                assert back.strides[axis] == theirs.strides[axis]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_there_and_back(rng, dtype) -> None:
    array = bits(rng, dtype, (3, 4))
    ours = inlay.from_numpy(array)
    theirs = paddle.from_dlpack(ours.T)
    assert theirs.data_ptr() == ours.data_ptr()
    back = inlay.from_dlpack(theirs)
    assert back.dtype == dtype
    assert_bits(back.numpy(), array.T)


@pytest.mark.parametrize("dtype", KNOWN)
def test_writes_show_on_the_other_side(dtype) -> None:
    theirs = to_paddle(np.zeros((3, 4), DTYPES[dtype]))
    ours = inlay.from_dlpack(theirs.transpose([1, 0])[1:])
    inlay.select_scatter_(ours, np.ones(3, DTYPES[dtype]), 0, -1)
    expected = np.zeros((3, 4), DTYPES[dtype])
    expected[:, 3] = 1
    assert_bits(to_numpy(theirs), expected)
    back = paddle.from_dlpack(ours)
    back.fill_(1)
    expected[:, 1:] = 1
    assert_bits(to_numpy(theirs), expected)


@pytest.mark.parametrize("dtype", KNOWN)
def test_each_side_keeps_the_memory_alive(dtype) -> None:
    array = (np.arange(1000) % 2).astype(DTYPES[dtype])
    theirs = paddle.from_dlpack(inlay.to_tensor(array))
    ours = inlay.from_dlpack(to_paddle(array)[1:])
    gc.collect()
    inlay.empty_cache()
    assert_bits(to_numpy(theirs), array)
    assert_bits(ours.numpy(), array[1:])


def test_uint16_from_numpy_is_bfloat16_in_paddle() -> None:
    # Paddle has stored bfloat16 in NumPy's uint16. With DLPack, the dtype is unambiguous.
    array = np.array([16256], "u2")  # the bits of 1.0
    assert inlay.from_dlpack(paddle.to_tensor(array)).tolist() == [1.0]
    assert inlay.from_dlpack(paddle.from_dlpack(inlay.from_numpy(array))).tolist() == [16256]


def test_memory_that_runs_backwards() -> None:
    # Paddle imports and exports negative strides, but computes the size of a result from them. At
    # best it fails with "Fail to alloc memory of 18446744073709551612 size". So this test makes no
    # Paddle call on them.
    array = np.arange(3, dtype="f4")[::-1]
    theirs = paddle.from_dlpack(inlay.from_numpy(array))
    assert inlay.from_dlpack(theirs).tolist() == [2, 1, 0]
    theirs = paddle.from_dlpack(inlay.from_numpy(array).copy())
    assert (theirs + theirs).tolist() == [4, 2, 0]


def test_read_only_memory() -> None:
    # Paddle has no read-only tensors and ignores the flag on import. Inlay keeps the flag.
    array = np.zeros(2)
    array.flags.writeable = False
    ours = inlay.from_numpy(array)
    assert paddle.from_dlpack(ours).data_ptr() == ours.data_ptr()
    with pytest.raises(ValueError, match="read-only"):
        inlay.scatter_(ours, [0], np.ones(1))


def test_tensors_that_want_gradients_are_refused() -> None:
    theirs = paddle.ones([2])
    theirs.stop_gradient = False
    with pytest.raises(inlay.InlayBufferError, match="gradient"):
        inlay.from_dlpack(theirs)
    assert inlay.from_dlpack(theirs.detach()).tolist() == [1, 1]
