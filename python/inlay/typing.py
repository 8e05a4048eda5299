"""Names for annotations: what the functions of Inlay take."""

import builtins
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from inlay._inlay import Tensor, dtype

__all__ = ["ArrayLike", "DTypeLike", "Number", "SupportsDLPack"]

Number: TypeAlias = builtins.bool | int | float | complex
"""A Python number."""

ArrayLike: TypeAlias = Tensor | npt.NDArray[Any] | np.generic | Number | Sequence[Any]
"""What every function takes for a tensor: lists may be nested."""

DTypeLike: TypeAlias = dtype | str | np.dtype[Any] | type[Any]
"""What stands for an element type."""


class SupportsDLPack(Protocol):
    """An array of another library, as `inlay.from_dlpack` takes it."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """A capsule over the array's memory."""
