"""Comparison of a call with the result of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import inlay

from .support import Compare, assert_bits, laid, to_numpy


@pytest.fixture
def agree(rng) -> Callable[..., None]:
    """Calls an operation on PyTorch's memory, and compares the result with that of PyTorch."""

    def compare(
        name: str,
        given: list[torch.Tensor],
        theirs: torch.Tensor,
        same: Compare = assert_bits,
        twin: bool = False,
        **attrs: Any,
    ) -> None:
        foreign = [laid(rng, tensor) for tensor in given]
        shared = [inlay.from_dlpack(tensor) for tensor in foreign]
        ours = torch.from_dlpack(getattr(inlay, name)(*shared, **attrs))
        assert ours.dtype == theirs.dtype
        same(to_numpy(ours), to_numpy(theirs))
        for tensor, before in zip(foreign, given, strict=True):
            assert_bits(to_numpy(tensor), to_numpy(before))
        if twin:
            target = inlay.from_dlpack(foreign[0])
            assert getattr(inlay, f"{name}_")(target, *shared[1:], **attrs) is target
            same(to_numpy(foreign[0]), to_numpy(theirs))  # written into PyTorch's memory

    return compare
