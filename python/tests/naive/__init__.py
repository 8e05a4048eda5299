"""Naive reference implementations of every operation: loops over elements, no cleverness.

They are the oracle of the tests, so they are written to be obviously right rather than fast.
Same signatures as in `inlay`, NumPy arrays in, a fresh array out; nothing is done in place.
"""

# ruff: noqa: F401, F403  (the names are for those who import this)

from __future__ import annotations

from .five import *
from .numbers import COMPLEXES, DTYPES, FLOATS, INTEGERS
from .pointwise import *
from .reads import *
from .shapes import *
from .writes import *
