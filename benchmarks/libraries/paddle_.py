"""Paddle: its functions, and common combinations of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import paddle
from paddle import grad

from benchmarks.inputs import FILL, LAID, dtype, view
from benchmarks.libraries import Lines, Variants, packed, with_gradients
from benchmarks.reference import reduction
from benchmarks.rows import Row

VERSION = paddle.__version__
NAMES = {"sum": "add", "mul": "mul", "mean": "mean", "amax": "amax", "amin": "amin"}

paddle.set_device("cpu")


def tensor(array: np.ndarray) -> Any:
    if array.dtype == dtype("bfloat16"):
        return paddle.to_tensor(array.astype(np.float32)).astype("bfloat16")
    return paddle.to_tensor(array)


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    made = {name: tensor(base) for name, base in bases.items()}
    for name in set(LAID) & set(made):
        if row.layout == "transposed":
            made[name] = made[name].transpose(list(range(made[name].ndim))[::-1])
        else:
            made[name] = view(made[name], row.layout)
    if row.mode == "backward":
        for name in {"x", "values"} & set(made):
            made[name].stop_gradient = False
    return made


def array(tensor: Any) -> np.ndarray:
    if tensor.dtype == paddle.bfloat16:
        return tensor.astype("float32").numpy().astype(dtype("bfloat16"))
    return tensor.numpy()


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if row.mode == "in place":
        return in_place(row, t)
    found = reads(row, t) or writes(row, t) or scatters(row, t)
    if row.mode == "backward":
        return with_gradients(found, t, grad)
    return packed(found, row, paddle.Tensor.contiguous)


def reads(row: Row, t: dict[str, Any]) -> Variants:
    x, index, mask = t.get("x"), t.get("index"), t.get("mask")
    if row.op in ("tril_indices", "triu_indices"):
        return {row.op: partial(getattr(paddle, row.op), *row.shape, row.offset)}
    if row.op == "index_select":
        return {
            "index_select": partial(paddle.index_select, x, index, row.axis),
            "gather": partial(paddle.gather, x, index, row.axis),
        }
    if row.op == "take_along_axis":
        return {"take_along_axis": partial(paddle.take_along_axis, x, index, row.axis)}
    if row.op == "masked_select":
        return {"masked_select": partial(paddle.masked_select, x, mask)}
    return {}


def writes(row: Row, t: dict[str, Any]) -> Variants:
    x, values, mask, index = (t.get(name) for name in ("x", "values", "mask", "index"))
    axis = row.axis
    if row.op == "slice_scatter":
        start = 0 if row.start is None else row.start
        stop = row.shape[axis] if row.stop is None else row.stop
        where = ([axis], [start], [stop], [row.step])
        found: Variants = {
            "slice_scatter": partial(paddle.slice_scatter, x, values, *where),
            "clone, assign": cloned(x, row.selection, values),
        }
        if row.step == 1:
            before, after = list(row.selection), list(row.selection)
            before[axis], after[axis] = slice(0, start), slice(stop, None)

            def joined() -> Any:
                return paddle.concat((x[tuple(before)], values, x[tuple(after)]), axis)

            return {**found, "concat": joined}
        others = (*row.selection[:axis], slice(1, None, 2))

        def stacked() -> Any:
            return paddle.stack((values, x[others]), axis + 1).reshape(row.shape)

        return {**found, "stack": stacked}
    if row.op == "select_scatter":
        key = (*(slice(None) for _ in row.shape[:axis]), row.at)
        return {
            "select_scatter": partial(paddle.select_scatter, x, values, axis, row.at),
            "clone, assign": cloned(x, key, values),
        }
    if row.op == "diagonal_scatter":
        where = (row.offset, row.axis1, row.axis2)
        fill = ("fill_diagonal_tensor", paddle.Tensor.fill_diagonal_tensor)
        return {
            "diagonal_scatter": partial(paddle.diagonal_scatter, x, values, *where),
            fill[0]: partial(fill[1], x, values, *where),
        }
    if row.op == "masked_scatter":
        found = {"masked_scatter": partial(paddle.masked_scatter, x, mask, values)}
        if row.mask_rows:
            wide = values.reshape([-1, row.shape[1]])

            def rows() -> Any:
                return paddle.scatter(x, mask[:, 0].nonzero().flatten(), wide)

            found["scatter of rows"] = rows
        elif row.layout == "contiguous":
            found["clone, assign"] = cloned(x, mask, values)
        return found
    if row.op == "masked_fill":
        fill_value = paddle.full([], FILL, x.dtype)
        return {
            "masked_fill": partial(paddle.masked_fill, x, mask, FILL),
            "where": partial(paddle.where, mask, fill_value, x),
        }
    if row.op == "index_fill":
        return {"index_fill": partial(paddle.index_fill, x, index, axis, FILL)}
    return {}


def cloned(x: Any, key: Any, value: Any) -> Lines:
    return Lines("y = x.clone(); y[key] = value", x=x, key=key, value=value)


def scatters(row: Row, t: dict[str, Any]) -> Variants:
    x, values, index = t["x"], t["values"], t["index"]
    axis, kind = row.axis, reduction(row)
    put = {"reduce": "assign" if kind == "assign" else NAMES[kind]}
    if kind != "assign":
        put["include_self"] = row.include_self
    if row.op == "put_along_axis":
        # `broadcast=False` gives the same result and skips a check of the sizes.
        call = partial(paddle.put_along_axis, x, index, values, axis, broadcast=False, **put)
        return {"put_along_axis": call}
    shape = [1] * x.ndim
    shape[axis] = -1
    wide = index.reshape(shape).expand(values.shape)

    def along() -> Any:
        return paddle.put_along_axis(x, wide, values, axis, broadcast=False, **put)

    found: Variants = {"put_along_axis": along}
    if kind == "assign":
        if axis == 0:
            found["scatter"] = partial(paddle.scatter, x, index, values)
            found["index_put"] = partial(paddle.index_put, x, (index,), values)
        return found
    if kind not in ("sum", "mean"):
        return found

    def finish(y: Any) -> Any:
        if kind == "sum":
            return y
        counts = paddle.bincount(index, minlength=row.shape[axis]).astype(x.dtype)
        counts = counts + 1 if row.include_self else counts.clip(min=1)
        return y / counts.reshape(shape)

    def base() -> Any:
        return x if row.include_self else paddle.index_fill(x, index, axis, 0)

    found["index_add"] = lambda: finish(paddle.index_add(base(), index, axis, values))
    if axis == 0:
        found["scatter_nd_add"] = lambda: finish(
            paddle.scatter_nd_add(base(), index.unsqueeze(-1), values)
        )
        if not row.include_self:
            found["scatter"] = lambda: finish(paddle.scatter(x, index, values, overwrite=False))
    return found


def in_place(row: Row, t: dict[str, Any]) -> Variants:
    x, values, mask, index = (t.get(name) for name in ("x", "values", "mask", "index"))
    axis, kind = row.axis, reduction(row)

    def assigned(key: Any, value: Any) -> Lines:
        return Lines("x[key] = value; y = x", x=x, key=key, value=value)

    if row.op == "slice_scatter":
        return {"assign": assigned(row.selection, values)}
    if row.op == "select_scatter":
        key = (*(slice(None) for _ in row.shape[:axis]), row.at)
        return {"assign": assigned(key, values)}
    if row.op == "diagonal_scatter":
        fill = partial(x.fill_diagonal_tensor_, values, row.offset, row.axis1, row.axis2)
        return {"fill_diagonal_tensor_": fill}
    if row.op == "masked_scatter":
        return {"masked_scatter_": partial(x.masked_scatter_, mask, values)}
    if row.op == "masked_fill":
        return {"masked_fill_": partial(x.masked_fill_, mask, FILL)}
    if row.op == "index_fill":
        return {"index_fill_": partial(x.index_fill_, index, axis, FILL)}
    if row.op == "index_add":
        return {"index_add_": partial(x.index_add_, index, axis, values)}
    put = {"reduce": "assign" if kind == "assign" else NAMES[kind], "broadcast": False}
    if row.op == "put_along_axis":
        return {"put_along_axis_": partial(x.put_along_axis_, index, values, axis, **put)}
    shape = [1] * x.ndim
    shape[axis] = -1
    wide = index.reshape(shape).expand(values.shape)
    found: Variants = {"put_along_axis_": partial(x.put_along_axis_, wide, values, axis, **put)}
    if kind == "assign" and axis == 0:
        found["scatter_"] = partial(x.scatter_, index, values)
    if kind == "sum":
        found["index_add_"] = partial(x.index_add_, index, axis, values)
    return found
