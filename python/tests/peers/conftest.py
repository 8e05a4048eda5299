"""The peers are imported here once, so that what they warn of at import is no error of a test."""

from __future__ import annotations

import warnings

import pytest

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle  # noqa: F401


@pytest.fixture(autouse=True)
def quiet_everywhere(quiet) -> None:
    """Overflow and NaN are part of the tests."""
