"""Naive reference implementations of every operation: plain loops over elements.

The tests compare with them, so they are written to be obviously right rather than fast. They have
the signatures of `inlay`, take NumPy arrays, and return a new array.
"""

# ruff: noqa: F401  (the names are for importers)

from __future__ import annotations

from .five import (
    diagonal,
    diagonal_scatter,
    masked_scatter,
    scatter,
    slice_scatter,
    tril_indices,
    triu_indices,
)
from .numbers import COMPLEXES, DTYPES, FLOATS, INTEGERS
from .pointwise import (
    add,
    amax,
    amin,
    divide,
    equal,
    greater_equal,
    greater_than,
    less_equal,
    less_than,
    mean,
    multiply,
    not_equal,
    prod,
    subtract,
    sum,
    where,
)
from .reads import getitem, index_select, masked_select, setitem, take_along_axis, tril, triu
from .shapes import arange, broadcast_to, cast, concat, full, ones, reshape, stack, transpose, zeros
from .writes import (
    index_add,
    index_fill,
    index_put,
    masked_fill,
    put_along_axis,
    scatter_nd,
    scatter_nd_add,
    select_scatter,
)
