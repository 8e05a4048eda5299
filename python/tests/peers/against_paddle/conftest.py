"""Comparison of a call with the result of Paddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
from arguments import assert_bits

import inlay

from .support import Compare, laid, to_numpy


@pytest.fixture
def agree(rng) -> Callable[..., None]:
    """Calls an operation on Paddle's memory, and compares the result with that of Paddle."""

    def compare(
        name: str,
        given: list[np.ndarray],
        theirs: paddle.Tensor,
        same: Compare = assert_bits,
        twin: bool = False,
        **attrs: Any,
    ) -> None:
        foreign = [laid(rng, array) for array in given]
        shared = [inlay.from_dlpack(tensor) for tensor in foreign]
        ours = paddle.from_dlpack(getattr(inlay, name)(*shared, **attrs))
        assert ours.dtype == theirs.dtype
        same(to_numpy(ours), to_numpy(theirs))
        for tensor, before in zip(foreign, given, strict=True):
            assert_bits(to_numpy(tensor), before)
        if twin:
            target = inlay.from_dlpack(foreign[0])
            assert getattr(inlay, f"{name}_")(target, *shared[1:], **attrs) is target
            same(to_numpy(foreign[0]), to_numpy(theirs))  # written into Paddle's memory

    return compare
