"""Comparison of a call with the result of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arguments import assert_bits, laid

import inlay


@pytest.fixture(autouse=True)
def quiet_everywhere(quiet) -> None:
    """Overflow and NaN are part of the tests."""


@pytest.fixture
def agree(rng) -> Callable[..., None]:
    """Calls an operation in every way, and compares the results with that of NumPy."""

    def compare(
        name: str,
        given: list[np.ndarray],
        expected: np.ndarray,
        same: Callable[..., None] = assert_bits,
        twin: bool = False,
        **attrs: Any,
    ) -> None:
        function = getattr(inlay, name)
        arrays = [laid(rng, array) for array in given]
        result = function(*arrays, **attrs)
        assert isinstance(result, np.ndarray)
        same(result, expected)

        tensors = [inlay.from_numpy(laid(rng, array)) for array in given]
        result = function(*tensors, **attrs)
        assert isinstance(result, inlay.Tensor)
        same(result.numpy(), expected)
        for argument, array in zip([*arrays, *tensors], given * 2, strict=True):
            assert_bits(np.asarray(argument), array)

        if twin:
            in_place = getattr(inlay, f"{name}_")
            for wrap, others in ((np.asarray, arrays), (inlay.from_numpy, tensors)):
                memory = laid(rng, np.array(given[0]))
                target = wrap(memory)
                assert in_place(target, *others[1:], **attrs) is target
                same(memory, expected)

    return compare
