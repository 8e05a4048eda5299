"""Which objects are JAX arrays, and how other arguments become ones."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from inlay.errors import InlayTypeError, InlayValueError
from inlay.jax.functions import dtype_name

__all__ = ["JaxArrays", "canonical"]


class JaxArrays:
    """What the binding of arguments must know about JAX."""

    name = "JAX"

    def is_tensor(self, value: Any) -> bool:
        """Whether an object is a JAX array or a tracer."""
        return isinstance(value, jax.Array)

    def dtype(self, array: Any) -> str:
        """The name of the dtype of an array."""
        name = dtype_name(array.dtype)
        if name is None:
            raise InlayTypeError(f"a JAX array has dtype {array.dtype}, which Inlay does not have")
        return name

    def adopt(self, tensor: Any) -> Any:
        """Returns an Inlay tensor as a NumPy array, which JAX takes like one of its own."""
        array = np.asarray(tensor)
        narrow = canonical(array.dtype)
        if narrow != array.dtype and array.dtype.kind in "iu" and array.size:
            # JAX would wrap them around, and a bad index could become a good one.
            limits = np.iinfo(narrow)
            for value in (array.min(), array.max()):
                if not limits.min <= value <= limits.max:
                    raise InlayValueError(
                        f"{value} does not fit into {narrow}, the integers that JAX has while "
                        "jax_enable_x64 is off"
                    )
        return array


def canonical(dtype: Any) -> np.dtype[Any]:
    """The dtype that JAX uses in place of this one: 64 bits become 32 unless they are enabled."""
    found: np.dtype[Any] = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    return found
