"""Imports the other libraries once, so that their import warnings don't fail a test."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle  # noqa: F401


@pytest.fixture(autouse=True)
def quiet_everywhere(quiet) -> None:
    """Overflow and NaN are part of the tests."""
