"""Pairs of a function in Inlay and in another library, whose gradients must be equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradcheck import Draw

import inlay

Function = Callable[..., Any]
Make = Callable[[Draw], tuple[list[np.ndarray], Function, Function]]


class Pairs:
    """Functions by name. Each draws the arrays and returns the two functions."""

    def __init__(self) -> None:
        self.makes: dict[str, Make] = {}
        self.real_only: set[str] = set()

    def __call__(self, name: str, real_only: bool = False) -> Callable[[Function], Function]:
        """A decorator that adds a function."""

        def add(make: Function) -> Function:
            assert name not in self.makes
            self.makes[name] = make
            if real_only:
                self.real_only.add(name)
            return make

        return add

    def add_folds(self, peer: Any) -> None:
        """Adds reductions over an axis, which have the same arguments in other libraries."""
        for fold in ["sum", "mean", "prod", "amax", "amin"]:

            @self(f"{fold} over an axis", fold in ("amax", "amin"))
            def _(draw: Draw, name: str = fold) -> Any:
                draw.zero_size &= name in ("sum", "prod")
                shape = draw.shape()
                axis = draw.axis(shape)
                return (
                    [draw.numbers(*shape)],
                    lambda x: getattr(inlay, name)(x, axis),
                    lambda x: getattr(peer, name)(x, axis),
                )

    def each(self) -> pytest.MarkDecorator:
        """The arguments `name` and `dtype` of a test."""
        return pytest.mark.parametrize(
            ("name", "dtype"),
            [
                pytest.param(name, dtype, id=f"{name}-{dtype}")
                for name in self.makes
                for dtype in ("float64", "complex128")
                if not (dtype == "complex128" and name in self.real_only)
            ],
        )
