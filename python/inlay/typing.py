"""Type aliases for the arguments of Inlay's functions."""

import builtins
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from inlay._inlay import Tensor, dtype

__all__ = [
    "ArrayLike",
    "DTypeLike",
    "ForeignTensor",
    "Number",
    "PlainLike",
    "Reduce",
    "ReduceOrAssign",
    "SupportsArray",
    "SupportsDLPack",
]

Number: TypeAlias = builtins.bool | int | float | complex
"""A Python number."""


class SupportsArray(Protocol):
    """An object that NumPy converts to an array, such as a column of a table."""

    def __array__(self, *args: Any, **kwargs: Any) -> npt.NDArray[Any]:
        """Returns the object as an array."""
        ...


class SupportsDLPack(Protocol):
    """An array of another library that `inlay.from_dlpack` accepts."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a capsule over the array's memory."""


class _TorchTensor(SupportsDLPack, Protocol):
    @property
    def requires_grad(self) -> builtins.bool: ...


class _PaddleTensor(SupportsDLPack, Protocol):
    @property
    def stop_gradient(self) -> builtins.bool: ...


class _JaxArray(SupportsDLPack, Protocol):
    @property
    def at(self) -> Any: ...


ForeignTensor: TypeAlias = _TorchTensor | _PaddleTensor | _JaxArray
"""A tensor of PyTorch, Paddle or JAX. A call with one returns one."""

PlainLike: TypeAlias = npt.NDArray[Any] | np.generic | Number | Sequence["PlainLike"]
"""NumPy arrays, numbers and nested lists of them. A call with only these returns an array."""

ArrayLike: TypeAlias = Tensor | PlainLike | SupportsArray | SupportsDLPack | Sequence[Any]
"""An argument that is converted to a tensor."""

DTypeLike: TypeAlias = dtype | str | np.dtype[Any] | type[Any]
"""An argument that is converted to a dtype."""

Reduce: TypeAlias = Literal[
    "sum", "add", "mul", "multiply", "prod", "mean", "amax", "max", "amin", "min"
]
"""The name of a reduction."""

ReduceOrAssign: TypeAlias = Reduce | Literal["assign"]
"""The name of a reduction, or ``'assign'``, which overwrites."""
