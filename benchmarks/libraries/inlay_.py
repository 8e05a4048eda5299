"""Inlay on its own tensors, one call per workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import inlay
from benchmarks.inputs import FILL, LAID, view
from benchmarks.libraries import Variants, with_gradients
from benchmarks.libraries.inlay_chains import function
from benchmarks.rows import CHAINS, READS, Row

VERSION = inlay.__version__


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    made = {name: inlay.to_tensor(base) for name, base in bases.items()}
    made = {
        name: view(tensor, row.layout) if name in LAID else tensor for name, tensor in made.items()
    }
    if row.mode == "backward":
        made["x"].stop_gradient = False
        if "values" in made:
            made["values"].stop_gradient = False
    return made


def array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor)


def arguments(row: Row, t: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the operation, as a user would write them."""
    if row.op == "slice_scatter":
        return (t["x"], t["values"], row.axis, row.start, row.stop, row.step), {}
    if row.op == "select_scatter":
        return (t["x"], t["values"], row.axis, row.at), {}
    if row.op == "diagonal_scatter":
        return (t["x"], t["values"], row.offset, row.axis1, row.axis2), {}
    if row.op == "masked_scatter":
        return (t["x"], t["mask"], t["values"]), {}
    if row.op == "masked_fill":
        return (t["x"], t["mask"], FILL), {}
    if row.op == "masked_select":
        return (t["x"], t["mask"]), {}
    if row.op == "index_fill":
        return (t["x"], t["index"], row.axis, FILL), {}
    if row.op == "index_add":
        return (t["x"], t["index"], row.axis, t["values"]), {}
    if row.op in READS:
        return (t["x"], t["index"], row.axis), {}
    if row.op == "put_along_axis":
        return (t["x"], t["index"], t["values"], row.axis, row.reduce, row.include_self), {}
    if row.op == "scatter" and row.reduce == "assign":
        return (t["x"], t["index"], t["values"], True, row.axis), {}
    if row.op == "scatter":
        options = {"include_self": True} if row.include_self else {}
        return (t["x"], t["index"], t["values"], False, row.axis, row.reduce), options
    return (*row.shape, row.offset), {}


def variants(
    row: Row, t: dict[str, Any], grad: Callable[..., Sequence[Any]] = inlay.grad
) -> Variants:
    if row.op in CHAINS:
        return {} if row.op == "build_program" else {"eager": partial(function(row), **t)}
    name = f"{row.op}_" if row.mode == "in place" else row.op
    positional, named = arguments(row, t)
    call = partial(getattr(inlay, name), *positional, **named)
    found: Variants = {name: call}
    return with_gradients(found, t, grad) if row.mode == "backward" else found
