"""Runs the cases in `testdata` with the naive implementations, which checks both."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from cases import Case, all_cases, assert_same


def call(case: Case) -> np.ndarray:
    inputs, attrs = case.arguments(case.tensors)
    if "key" in attrs:
        attrs["key"] = case.key(case.tensors)
    return getattr(naive, case.op)(*inputs, **attrs)


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.id)
def test_naive_agrees_with_the_case(case: Case) -> None:
    before = {name: np.array(tensor) for name, tensor in case.tensors.items()}
    if case.expect is not None:
        assert_same(call(case), case.expect)
    else:
        with pytest.raises(case.error) as raised:
            call(case)
        assert type(raised.value) is case.error
        for word in case.words:
            assert word in str(raised.value)
    for name, tensor in case.tensors.items():
        assert_same(tensor, before[name])
