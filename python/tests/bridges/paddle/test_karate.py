"""Tests that a graph network trains on Paddle's tensors as on Inlay's own."""

from __future__ import annotations

import paddle
from karate_curves import assert_same_curve, assert_same_type


def test_the_loss_curve_is_that_of_inlays_own_tensors() -> None:
    assert_same_curve("paddle")
    assert_same_type("paddle", paddle.Tensor)
