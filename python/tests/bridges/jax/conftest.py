"""Fixtures of the tests with JAX."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True)
def in_64_bits(request: pytest.FixtureRequest) -> Iterator[None]:
    """JAX has 64 bits in these tests, except in those that are marked by a fixture."""
    enabled = "in_32_bits" not in request.fixturenames
    before = jax.config.read("jax_enable_x64"), jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_enable_x64", enabled)
    jax.config.update("jax_disable_most_optimizations", True)  # compiles sooner
    yield
    jax.config.update("jax_enable_x64", before[0])
    jax.config.update("jax_disable_most_optimizations", before[1])


@pytest.fixture
def in_32_bits() -> None:
    """JAX has 32 bits in this test, as it has by default."""
