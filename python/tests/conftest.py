"""Fixtures that the tests against other libraries share."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def rng(request) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


@pytest.fixture
def quiet() -> Iterator[None]:
    """Allows overflow and NaN. In other tests, a NumPy warning is an error."""
    with np.errstate(all="ignore"):
        yield
