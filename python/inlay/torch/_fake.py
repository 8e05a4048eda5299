"""Kernels that compute no values: shapes and dtypes from Inlay's own rules, with symbolic sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._autograd import spec
from ._dtypes import DTYPES, NAMES


def infer(function: Any, tensors: Sequence[Any]) -> list[Any]:
    """Returns empty tensors of the shapes and dtypes that a Function returns."""
    found = function.infer([spec(tensor) for tensor in tensors])
    if any(size is None for _, sizes in found for size in sizes):
        # A size that is computed from symbolic ones, such as a product, needs their numbers; torch
        # then guards them. A size that depends on values is still unknown.
        known = function.infer([(NAMES[t.dtype], [int(size) for size in t.shape]) for t in tensors])
        found = [
            (dtype, [b if a is None else a for a, b in zip(sizes, other, strict=True)])
            for (dtype, sizes), (_, other) in zip(found, known, strict=True)
        ]
    like = tensors[0] if tensors else torch.empty(0)
    return [
        like.new_empty([_size(size, tensors) for size in sizes], dtype=DTYPES[dtype])
        for dtype, sizes in found
    ]


def _size(size: Any, tensors: Sequence[Any]) -> Any:
    if size is None:
        return torch.library.get_ctx().new_dynamic_size()
    if isinstance(size, tuple):
        tensor, axis = size
        return tensors[tensor].shape[axis]
    return size
