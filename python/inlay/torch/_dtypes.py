"""The dtypes that torch and Inlay both have."""

from __future__ import annotations

from typing import Any

import torch

NAMES: dict[Any, str] = {
    getattr(torch, name): name
    for name in (
        "bool",
        *("int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64"),
        *("complex64", "complex128"),
    )
    if hasattr(torch, name)
}
DTYPES: dict[str, Any] = {name: dtype for dtype, name in NAMES.items()}


def name_of(dtype: Any, operation: str = "inlay.torch") -> str:
    """Returns Inlay's name of a dtype of torch."""
    try:
        return NAMES[dtype]
    except KeyError:
        raise TypeError(
            f"{operation}: tensors of {dtype} are not supported; convert it, for example with "
            "`.to(torch.float32)`"
        ) from None
