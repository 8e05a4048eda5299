"""A case: a function of random inputs, and its in-place form if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gradcheck import Draw, Function

import inlay


@dataclass
class Case:
    function: Function
    inputs: list[np.ndarray]
    twin: Function | None = None


CASES: dict[str, Callable[[Draw], Case]] = {}
REAL_ONLY = set()


def case(name: str, real_only: bool = False) -> Callable[[Callable[[Draw], Case]], Any]:
    def add(make: Callable[[Draw], Case]) -> Callable[[Draw], Case]:
        assert name not in CASES
        CASES[name] = make
        if real_only:
            REAL_ONLY.add(name)
        return make

    return add


def written(draw: Draw, x: np.ndarray, y: np.ndarray, name: str, **options: Any) -> Case:
    """A write `name(x, **options, y)` that has an in-place form."""
    op, twin = getattr(inlay, name), getattr(inlay, name + "_")
    source = options.pop("source")
    return Case(
        lambda x, y: op(x, **{source: y}, **options),
        [x, y],
        lambda x, y: twin(x, **{source: y}, **options),
    )
