"""Naive reference implementations of every operation: plain loops over elements.

The tests compare with them, so they are written to be obviously right rather than fast. They have
the signatures of `inlay`, take NumPy arrays, and return a new array.
"""

# ruff: noqa: F401, F403  (the names are for those who import this)

from __future__ import annotations

from .five import *
from .numbers import COMPLEXES, DTYPES, FLOATS, INTEGERS
from .pointwise import *
from .reads import *
from .shapes import *
from .writes import *
