"""Tests that a graph network trains on JAX arrays as on Inlay's own tensors."""

from __future__ import annotations

import jax
import numpy as np
from karate_curves import TOLERANCE, assert_same_curve, assert_same_type, example


def test_the_loss_curve_is_that_of_inlays_own_tensors() -> None:
    assert_same_curve("jax")
    assert_same_type("jax", jax.Array)


def test_the_loss_curve_is_the_same_without_jit() -> None:
    karate = example("karate")
    compiled, _ = karate.train("jax", 5)
    with jax.disable_jit():
        eager, _ = karate.train("jax", 5)
    np.testing.assert_allclose(eager, compiled, rtol=0, atol=TOLERANCE)
