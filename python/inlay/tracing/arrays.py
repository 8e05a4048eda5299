"""Which objects are arrays, and how arrays of other libraries are brought in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inlay._inlay import Tensor, _library, from_dlpack
from inlay.errors import InlayTypeError

__all__ = ["bring_in", "is_array_like", "type_name"]

_TO_NUMPY = ("__array__", "__array_interface__", "__array_struct__")


def is_array_like(value: Any) -> bool:
    """Whether an object is a tensor, an array, or offers its elements by a protocol for arrays."""
    if isinstance(value, Tensor | np.ndarray):
        return True
    # They have the protocols, too, but are constants as the Python numbers and strings are.
    if isinstance(value, np.generic | bytes | str):
        return False
    # The class is asked: an instance with `__getattr__` may claim to have any attribute.
    cls = type(value)
    if any(hasattr(cls, name) for name in (*_TO_NUMPY, "__dlpack__")):
        return True
    return "__array_interface__" in getattr(value, "__dict__", ()) or _has_buffer(value)


def bring_in(value: Any, where: str) -> npt.NDArray[Any]:
    """Returns an array of another library as a NumPy array. Errors name it by `where`."""
    try:
        return _to_numpy(value)
    except MemoryError:
        raise
    except Exception as error:
        text = f"jit: {where} is a {type_name(value)}, which gives no array: {error}"
        raise InlayTypeError(text) from error


def type_name(value: Any) -> str:
    """The qualified name of the object's class."""
    cls = type(value)
    module = cls.__module__
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"


def _to_numpy(value: Any) -> npt.NDArray[Any]:
    array: npt.NDArray[Any]
    cls = type(value)
    if hasattr(cls, "__dlpack__"):
        try:
            array = from_dlpack(value).numpy()
        except Exception:
            # The libraries with a bridge say what is wrong. NumPy might read it all the same.
            if _library(value) or not any(hasattr(cls, name) for name in _TO_NUMPY):
                raise
        else:
            return array
    # Not `asarray`, which would drop the mask of a masked array.
    array = np.asanyarray(value)
    return array


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    except Exception:
        # It has a buffer, but does not give it now. The conversion will say why.
        return True
    return True
