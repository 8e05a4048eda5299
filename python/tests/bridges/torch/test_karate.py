"""Tests that a graph network trains on torch tensors as on Inlay's own, and when compiled."""

from __future__ import annotations

import numpy as np
import torch
from karate_curves import TOLERANCE, assert_same_curve, assert_same_type, example


def test_the_loss_curve_is_that_of_inlays_own_tensors() -> None:
    assert_same_curve("torch")
    assert_same_type("torch", torch.Tensor)


def test_the_loss_curve_is_the_same_when_compiled(monkeypatch) -> None:
    karate = example("karate")
    eager, _ = karate.train("torch", 20)
    compiled = torch.compile(karate.loss_of, backend="aot_eager", fullgraph=True)
    monkeypatch.setattr(karate, "loss_of", compiled)
    losses, _ = karate.train("torch", 20)
    np.testing.assert_allclose(losses, eager, rtol=0, atol=TOLERANCE)
    assert losses[-1] < losses[0]
