"""The class of `Tensor.shape`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

__all__ = ["Shape"]


class Shape(tuple[int, ...]):
    """The sizes of a tensor's axes: a tuple that also equals the list of the same sizes.

    As in NumPy, PyTorch and JAX, a shape is a tuple. Code that was written for Paddle, where it is
    a list, may compare it with lists and concatenate it with them.

    >>> import inlay
    >>> shape = inlay.zeros([2, 3]).shape
    >>> shape
    (2, 3)
    >>> shape == (2, 3), shape == [2, 3]
    (True, True)
    >>> [7] + shape[1:]
    (7, 3)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return tuple.__ne__(self, tuple(other) if isinstance(other, list) else other)

    # Equal objects need equal hashes. Lists have none.
    __hash__ = tuple.__hash__

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> Shape: ...
    def __getitem__(self, key: Any, /) -> Any:
        found = tuple.__getitem__(self, key)
        return Shape(found) if isinstance(key, slice) else found

    def __add__(self, other: Sequence[int], /) -> Shape:  # type: ignore[override]
        if not isinstance(other, tuple | list):
            return NotImplemented
        return Shape((*self, *other))

    def __radd__(self, other: Sequence[int], /) -> Shape:
        if not isinstance(other, tuple | list):
            return NotImplemented
        return Shape((*other, *self))

    def __mul__(self, count: SupportsIndex, /) -> Shape:
        return Shape(tuple.__mul__(self, count))

    __rmul__ = __mul__
