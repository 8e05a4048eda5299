"""Imports Paddle once, so that its import warnings don't fail a test."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle


@pytest.fixture(autouse=True)
def quiet_everywhere(quiet: None) -> None:
    """Overflow and NaN are part of the tests."""


@pytest.fixture(autouse=True)
def dynamic_mode() -> Iterator[None]:
    """No test leaves the dynamic graph. Static graphs are built in processes of their own."""
    yield
    assert paddle.in_dynamic_mode()
