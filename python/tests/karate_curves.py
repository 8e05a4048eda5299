"""What the karate example has to show on the tensors of each library."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples"
# The losses start at 1. Libraries sum the products of a matrix in orders of their own.
TOLERANCE = 1e-12


def example(name: str) -> ModuleType:
    """The module of an example, which imports others from its folder."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return __import__(name)


def assert_same_curve(library: str) -> None:
    """Training on a library's tensors has the losses that Inlay's own tensors have."""
    karate = example("karate")
    own, right_with_own = karate.train("inlay")
    theirs, right_with_theirs = karate.train(library)
    np.testing.assert_allclose(theirs, own, rtol=0, atol=TOLERANCE)
    assert len(own) == karate.EPOCHS + 1
    assert own[-1] < own[0] / 10_000, "the network learns"
    assert right_with_theirs == right_with_own >= karate.MEMBERS - 1


def assert_same_type(library: str, kind: type) -> None:
    """The network computes in the library's tensors from its first operation on."""
    karate = example("karate")
    _, weights = next(karate.DESCENTS[library]())
    for made in (weights[0], karate.aggregate(weights[0]), karate.network(*weights)):
        assert isinstance(made, kind)
