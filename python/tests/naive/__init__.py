"""Naive reference implementations of every operation: plain loops over elements.

The tests compare with them, so they are written to be obviously correct rather than fast. They have
the signatures of `inlay`, take NumPy arrays, and return a new array.
"""

# ruff: noqa: F401, F403  (other modules import these names from here)

from __future__ import annotations

from .five import *
from .numbers import COMPLEXES, DTYPES, FLOATS, INTEGERS
from .pointwise import *
from .reads import *
from .shapes import *
from .writes import *
