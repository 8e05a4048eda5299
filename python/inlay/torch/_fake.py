"""Kernels that compute no values: shapes and dtypes from Inlay's own rules, with symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._autograd import spec
from ._dtypes import DTYPES, NAMES


def infer(function: Any, tensors: Sequence[Any]) -> list[Any]:
    """Returns empty tensors of the shapes and dtypes that a Function returns."""
    like = tensors[0] if tensors else torch.empty(0)
    return [
        like.new_empty([_size(size, tensors) for size in sizes], dtype=DTYPES[dtype])
        for dtype, sizes in _inferred(function, tensors)
    ]


def _inferred(function: Any, tensors: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """Returns dtypes and sizes, which may be those of an input, or depend on values (None)."""
    specs = [spec(tensor) for tensor in tensors]
    symbolic = any(size is None for _, sizes in specs for size in sizes)
    found: Any = None
    try:
        found = function.infer(specs)
    except Exception:
        if not symbolic:
            raise
    if not symbolic or (found and None not in [size for _, sizes in found for size in sizes]):
        return list(found)
    # A rule that depends on sizes, or a size that is computed from them, such as a product, needs
    # their numbers. Torch then guards them.
    known = function.infer([(NAMES[t.dtype], [int(size) for size in t.shape]) for t in tensors])
    if not found:
        return list(known)
    return [
        (dtype, [b if a is None else a for a, b in zip(sizes, numbers, strict=True)])
        for (dtype, sizes), (_, numbers) in zip(found, known, strict=True)
    ]


def _size(size: Any, tensors: Sequence[Any]) -> Any:
    if size is None:
        return torch.library.get_ctx().new_dynamic_size()
    if isinstance(size, tuple):
        tensor, axis = size
        return tensors[tensor].shape[axis]
    return size
