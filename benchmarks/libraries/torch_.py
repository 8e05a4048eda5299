"""PyTorch: its functions, and common combinations of them."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.autograd import grad

from benchmarks.inputs import FILL, LAID, dtype, view
from benchmarks.libraries import Lines, Variants, packed, torch_chains, with_gradients
from benchmarks.reference import reduction
from benchmarks.rows import CHAINS, Row

VERSION = torch.__version__
NAMES = {"sum": "sum", "mul": "prod", "mean": "mean", "amax": "amax", "amin": "amin"}

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def tensor(array: np.ndarray) -> torch.Tensor:
    """A copy in memory that torch has allocated: NumPy aligns arrays to 16 bytes, torch to 64."""
    if array.dtype == dtype("bfloat16"):
        return torch.from_numpy(array.view("i2")).clone().view(torch.bfloat16)
    return torch.from_numpy(array).clone()


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, torch.Tensor]:
    made = {name: tensor(base) for name, base in bases.items()}
    for name in set(LAID) & set(made):
        if row.layout == "transposed":
            made[name] = made[name].permute(*range(made[name].ndim)[::-1])
        else:
            made[name] = view(made[name], row.layout)
    # No tensor requires a gradient. Disabling gradients also saves the check for that.
    torch.set_grad_enabled(row.mode == "backward")
    if row.mode == "backward":
        for name in {"x", "values"} & set(made):
            made[name].requires_grad_()
    return made


def array(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(dtype("bfloat16"))
    return tensor.numpy()


def variants(row: Row, t: dict[str, torch.Tensor]) -> Variants:
    if row.op in CHAINS:
        return torch_chains.variants(row, t)
    if row.mode == "in place":
        return in_place(row, t)
    found = reads(row, t) or writes(row, t) or scatters(row, t)
    if row.mode == "backward":
        return with_gradients(found, t, grad)
    return packed(found, row, torch.Tensor.contiguous)


def reads(row: Row, t: dict[str, torch.Tensor]) -> Variants:
    x, index, mask = t.get("x"), t.get("index"), t.get("mask")
    if row.op in ("tril_indices", "triu_indices"):
        return {row.op: partial(getattr(torch, row.op), *row.shape, row.offset)}
    if row.op == "index_select":
        rows = (*(slice(None) for _ in row.shape[: row.axis]), index)
        found = {
            "index_select": partial(torch.index_select, x, row.axis, index),
            "key": partial(x.__getitem__, rows),
        }
        if row.axis == 0 and len(row.shape) == 2:
            found["embedding"] = partial(torch.nn.functional.embedding, index, x)
        return found
    if row.op == "take_along_axis":
        return {"gather": partial(torch.gather, x, row.axis, index)}
    if row.op == "masked_select":
        return {
            "masked_select": partial(torch.masked_select, x, mask),
            "key": partial(x.__getitem__, mask),
        }
    return {}


def writes(row: Row, t: dict[str, torch.Tensor]) -> Variants:
    x, values, mask, index = (t.get(name) for name in ("x", "values", "mask", "index"))
    axis, n = row.axis, row.shape[row.axis]
    if row.op == "slice_scatter":
        found: Variants = {
            "slice_scatter": partial(
                torch.slice_scatter, x, values, axis, row.start, row.stop, row.step
            ),
            "clone, assign": cloned(x, row.selection, values),
        }
        if row.step == 1:
            text = "y = cat((x.narrow(axis, 0, a), values, x.narrow(axis, b, n - b)), axis)"
            names = {"x": x, "values": values, "axis": axis, "a": row.start, "b": row.stop, "n": n}
            return {**found, "cat": Lines(text, cat=torch.cat, **names)}
        others = (*row.selection[:axis], slice(1, None, 2))

        def two_copies() -> torch.Tensor:
            y = torch.empty(x.shape, dtype=x.dtype)
            y[row.selection] = values
            y[others] = x[others]
            return y

        def stack() -> torch.Tensor:
            return torch.stack((values, x[others]), axis + 1).flatten(axis, axis + 1)

        return {**found, "empty, two copies": two_copies, "stack": stack}
    if row.op == "select_scatter":
        text = "y = x.clone(); y.select(axis, at).copy_(values)"
        return {
            "select_scatter": partial(torch.select_scatter, x, values, axis, row.at),
            "clone, copy": Lines(text, x=x, values=values, axis=axis, at=row.at),
        }
    if row.op == "diagonal_scatter":
        where = {"offset": row.offset, "axis1": row.axis1, "axis2": row.axis2}
        text = "y = x.clone(); y.diagonal(offset, axis1, axis2).copy_(values)"
        return {
            "diagonal_scatter": partial(torch.diagonal_scatter, x, values, *where.values()),
            "clone, copy": Lines(text, x=x, values=values, **where),
        }
    if row.op == "masked_fill":
        fill = torch.tensor(FILL, dtype=x.dtype)
        return {
            "masked_fill": partial(torch.masked_fill, x, mask, FILL),
            "where": partial(torch.where, mask, fill, x),
        }
    if row.op == "index_fill":
        rows = (*(slice(None) for _ in row.shape[:axis]), index)
        return {
            "index_fill": partial(torch.index_fill, x, axis, index, FILL),
            "clone, assign": cloned(x, rows, FILL),
        }
    return masked_scatters(row, x, mask, values) if row.op == "masked_scatter" else {}


def cloned(x: torch.Tensor, key: Any, value: Any) -> Lines:
    return Lines("y = x.clone(); y[key] = value", x=x, key=key, value=value)


def masked_scatters(row: Row, x: Any, mask: Any, values: Any) -> Variants:
    found: Variants = {"masked_scatter": partial(torch.masked_scatter, x, mask, values)}
    if row.mask_rows:
        rows, wide = mask[:, 0], values.view(-1, row.shape[1])

        def copy_rows() -> torch.Tensor:
            return x.index_copy(0, rows.nonzero()[:, 0], wide)

        def gather_rows() -> torch.Tensor:
            return torch.where(mask, wide[rows.cumsum(0).sub_(1).clamp_(0)], x)

        return {
            **found,
            "clone, assign rows": cloned(x, rows, wide),
            "index_copy of rows": copy_rows,
            "where, gathered rows": gather_rows,
        }

    def gather() -> torch.Tensor:
        before = mask.view(-1).cumsum(0).sub_(1).clamp_(0)
        return torch.where(mask, values[before].view(x.shape), x)

    found["clone, assign"] = cloned(x, mask, values)
    if row.layout == "contiguous":
        found["where, gathered"] = gather
    return found


def scatters(row: Row, t: dict[str, torch.Tensor]) -> Variants:
    x, values, index = t["x"], t["values"], t["index"]
    axis, kind = row.axis, reduction(row)
    if row.op == "put_along_axis":
        return elements(row, x, index, values)
    rows = (*(slice(None) for _ in row.shape[:axis]), index)
    shape = [1] * x.ndim
    shape[axis] = -1
    wide = index.view(shape).expand(values.shape)  # a view that is made before the timing
    if kind == "assign":
        return {
            "index_copy": partial(torch.index_copy, x, axis, index, values),
            "scatter": partial(torch.scatter, x, axis, wide, values),
            "clone, assign": cloned(x, rows, values),
        }
    name, options = NAMES[kind], {"include_self": row.include_self}
    found: Variants = {
        "scatter_reduce": partial(torch.scatter_reduce, x, axis, wide, values, name, **options)
    }
    if kind != "sum":
        found["index_reduce"] = partial(torch.index_reduce, x, axis, index, values, name, **options)
    if kind in ("sum", "mean"):
        found.update(sums(row, x, index, values, wide, rows))
    return found


def sums(row: Row, x: Any, index: Any, values: Any, wide: Any, rows: Any) -> Variants:
    """Variants for sums, and for means as sums divided by counts."""
    axis = row.axis
    shape = [1] * x.ndim
    shape[axis] = -1

    def base() -> torch.Tensor:
        return x if row.include_self else x.index_fill(axis, index, 0)

    def finish(y: torch.Tensor) -> torch.Tensor:
        if reduction(row) == "sum":
            return y
        counts = torch.bincount(index, minlength=row.shape[axis])
        counts = counts.add_(1) if row.include_self else counts.clamp_(min=1)
        return y.div_(counts.view(shape).to(y.dtype))

    if reduction(row) == "sum" and row.include_self:
        found: Variants = {
            "index_add": partial(torch.index_add, x, axis, index, values),
            "scatter_add": partial(torch.scatter_add, x, axis, wide, values),
            "index_put": partial(torch.index_put, x, (index,), values, True),
        }
        if axis:
            del found["index_put"]
    else:
        found = {
            "index_add, counts": lambda: finish(base().index_add(axis, index, values)),
            "scatter_add, counts": lambda: finish(base().scatter_add(axis, wide, values)),
        }
    if x.ndim == 1 and row.include_self and row.dtype == "float32":
        found["bincount"] = lambda: finish(x + torch.bincount(index, values, len(x)))
    if row.dtype in ("float16", "bfloat16"):
        # These variants round once, like Inlay.
        def widened() -> torch.Tensor:
            return base().float().index_add_(axis, index, values.float()).to(x.dtype)

        found["index_add in float32"] = widened
    return found


def elements(row: Row, x: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> Variants:
    if row.reduce == "assign":
        return {"scatter": partial(torch.scatter, x, row.axis, index, values)}
    found: Variants = {
        "scatter_reduce": partial(
            torch.scatter_reduce,
            x,
            row.axis,
            index,
            values,
            NAMES[row.reduce],
            include_self=row.include_self,
        )
    }
    if row.reduce == "sum" and row.include_self:
        found["scatter_add"] = partial(torch.scatter_add, x, row.axis, index, values)
    return found


def in_place(row: Row, t: dict[str, torch.Tensor]) -> Variants:
    x, values, mask, index = (t.get(name) for name in ("x", "values", "mask", "index"))
    axis, kind = row.axis, reduction(row)
    rows = (*(slice(None) for _ in row.shape[:axis]), index)

    def assigned(key: Any, value: Any) -> Lines:
        return Lines("x[key] = value; y = x", x=x, key=key, value=value)

    if row.op == "slice_scatter":
        return {"assign": assigned(row.selection, values)}
    if row.op == "select_scatter":
        return {"assign": assigned((*rows[:-1], row.at), values)}
    if row.op == "diagonal_scatter":
        text = "x.diagonal(offset, axis1, axis2).copy_(values); y = x"
        where = {"offset": row.offset, "axis1": row.axis1, "axis2": row.axis2}
        return {"diagonal, copy": Lines(text, x=x, values=values, **where)}
    if row.op == "masked_scatter":
        return {
            "masked_scatter_": partial(x.masked_scatter_, mask, values),
            "assign": assigned(mask, values),
        }
    if row.op == "masked_fill":
        return {"masked_fill_": partial(x.masked_fill_, mask, FILL)}
    if row.op == "index_fill":
        return {"index_fill_": partial(x.index_fill_, axis, index, FILL)}
    if row.op == "put_along_axis":
        return {"scatter_": partial(x.scatter_, axis, index, values)}
    shape = [1] * x.ndim
    shape[axis] = -1
    wide = index.view(shape).expand(values.shape)
    if kind == "assign":
        return {
            "index_copy_": partial(x.index_copy_, axis, index, values),
            "scatter_": partial(x.scatter_, axis, wide, values),
            "assign": assigned(rows, values),
        }
    found: Variants = {
        "scatter_reduce_": partial(
            x.scatter_reduce_, axis, wide, values, NAMES[kind], include_self=row.include_self
        )
    }
    if kind == "sum":
        found["index_add_"] = partial(x.index_add_, axis, index, values)
        found["scatter_add_"] = partial(x.scatter_add_, axis, wide, values)
    else:
        found["index_reduce_"] = partial(
            x.index_reduce_, axis, index, values, NAMES[kind], include_self=row.include_self
        )
    return found
