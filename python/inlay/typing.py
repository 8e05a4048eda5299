"""Type aliases for the arguments of Inlay's functions."""

import builtins
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from inlay._inlay import Tensor, dtype

__all__ = ["ArrayLike", "DTypeLike", "Number", "SupportsArray", "SupportsDLPack"]


class SupportsArray(Protocol):
    """An array of another library that NumPy can read."""

    def __array__(self) -> npt.NDArray[Any]:
        """Returns the elements."""


class SupportsDLPack(Protocol):
    """An array of another library that shares its memory."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a capsule over the array's memory."""


Number: TypeAlias = builtins.bool | int | float | complex
"""A Python number."""

ArrayLike: TypeAlias = (
    Tensor | npt.NDArray[Any] | np.generic | Number | Sequence[Any] | SupportsArray | SupportsDLPack
)
"""An argument that is converted to a tensor. Lists may be nested. Buffers are sequences."""

DTypeLike: TypeAlias = dtype | str | np.dtype[Any] | type[Any]
"""An argument that is converted to a dtype."""
