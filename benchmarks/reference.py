"""The expected result of each operation in plain NumPy, and the comparison with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import chains
from benchmarks.inputs import FILL, Arrays, dtype
from benchmarks.rows import CHAINS, READS, TRIANGLES, Row

REDUCTIONS = {
    "sum": np.add,
    "mean": np.add,
    "mul": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def results(row: Row, arrays: Arrays) -> Arrays:
    """The expected arrays: ``result``, and the gradients of its sum weighted with ``weights``."""
    found = {"result": np.ascontiguousarray(forward(row, arrays))}
    if row.mode == "backward":
        found.update(gradients(row, arrays))
    return found


def forward(row: Row, arrays: Arrays) -> np.ndarray:
    if row.op in CHAINS:
        return chains.forward(row, arrays)
    if row.op in TRIANGLES:
        function = np.tril_indices if row.op == "tril_indices" else np.triu_indices
        return np.array(function(row.shape[0], row.offset, row.shape[1]))
    if row.op == "index_select":
        return np.take(arrays["x"], arrays["index"], row.axis)
    if row.op == "take_along_axis":
        return np.take_along_axis(arrays["x"], arrays["index"], row.axis)
    if row.op == "masked_select":
        return arrays["x"][arrays["mask"]]
    if row.op == "put_along_axis":
        flat = {"x": arrays["x"].reshape(-1), "values": arrays["values"].reshape(-1)}
        reduced = scatter(row, {**flat, "index": along(row, arrays).reshape(-1)}, axis=0)
        return reduced.reshape(row.shape)
    if row.op in ("scatter", "index_add"):
        return scatter(row, arrays, row.axis)
    out = arrays["x"].copy()
    if row.op == "masked_scatter":
        out[np.broadcast_to(arrays["mask"], out.shape)] = arrays["values"]
    elif row.op == "masked_fill":
        out[np.broadcast_to(arrays["mask"], out.shape)] = FILL
    elif row.op == "index_fill":
        np.moveaxis(out, row.axis, 0)[arrays["index"]] = FILL
    else:
        region(row, out)[...] = arrays["values"]
    return out


def region(row: Row, x: np.ndarray) -> np.ndarray:
    """A view of the part of x that a slice, a place or a diagonal selects."""
    if row.op == "slice_scatter":
        return x[row.selection]
    if row.op == "select_scatter":
        return np.moveaxis(x, row.axis, 0)[row.at]
    view = x.diagonal(row.offset, row.axis1, row.axis2)
    view.flags.writeable = True
    return view


def along(row: Row, arrays: Arrays) -> np.ndarray:
    """The flat positions in x that an index along an axis selects."""
    every = np.arange(row.count).reshape(row.shape)
    return np.take_along_axis(every, arrays["index"], row.axis)


def reduction(row: Row) -> str:
    """The reduction of a row. For index_add it is always a sum."""
    return "sum" if row.op == "index_add" else row.reduce


def scatter(row: Row, arrays: Arrays, axis: int) -> np.ndarray:
    """Sort the entries by place, and reduce them in a wider dtype."""
    x, index = arrays["x"], arrays["index"]
    out = np.moveaxis(x.copy(), axis, 0)
    updates = np.moveaxis(arrays["values"], axis, 0)
    if reduction(row) == "assign":
        out[index] = updates  # for duplicates, NumPy keeps the last one
        return np.moveaxis(out, 0, axis)
    order = np.argsort(index, kind="stable")
    named, starts, counts = np.unique(index[order], return_index=True, return_counts=True)
    wide = np.int64 if row.dtype == "int64" else np.float64
    function = REDUCTIONS[reduction(row)]
    reduced = function.reduceat(updates[order], starts, axis=0, dtype=wide)
    if row.include_self:
        reduced = function(out[named].astype(wide), reduced)
    if reduction(row) == "mean":
        counts = (counts + row.include_self).reshape(-1, *(1 for _ in out.shape[1:]))
        reduced = reduced // counts if wide is np.int64 else reduced / counts
    out[named] = reduced.astype(out.dtype)
    return np.moveaxis(out, 0, axis)


def gradients(row: Row, arrays: Arrays) -> Arrays:
    """The gradients of x and of values, computed in a wider dtype and rounded."""
    weights = arrays["weights"].astype(np.float64)
    if row.reduce == "assign":
        # The same move is applied to positions instead of values. It shows which weight belongs to
        # which input element.
        size = row.count
        tokens = {"x": np.arange(size).reshape(row.shape)}
        if "values" in arrays:
            values = arrays["values"]
            tokens["values"] = np.arange(size, size + values.size).reshape(values.shape)
            size += values.size
        from_fill = row.op in ("masked_fill", "index_fill")
        moved = forward(row, {**arrays, **tokens}).reshape(-1)
        flat = weights.reshape(-1).copy()
        if from_fill:
            flat[arrays["mask"].reshape(-1)] = 0
        back = np.bincount(moved, flat, size)
        found = {"grad_x": back[: row.count].reshape(row.shape)}
        if "values" in tokens:
            found["grad_values"] = back[row.count :].reshape(arrays["values"].shape)
    else:
        found = reduction_gradients(row, arrays, weights)
    return {name: array.astype(dtype(row.dtype)) for name, array in found.items()}


def reduction_gradients(row: Row, arrays: Arrays, weights: np.ndarray) -> Arrays:
    """The gradients of a scatter that reduces along axis 0 and includes the base."""
    x, index = arrays["x"].astype(np.float64), arrays["index"]
    values = arrays["values"].astype(np.float64)
    if row.reduce == "sum":
        return {"grad_x": weights, "grad_values": weights[index]}
    if row.reduce == "mean":
        counts = np.bincount(index, minlength=row.shape[0])[:, None] + 1
        return {"grad_x": weights / counts, "grad_values": (weights / counts)[index]}
    doubled = Row(**{**row.__dict__, "dtype": "float64"})
    result = scatter(doubled, {"x": x, "index": index, "values": values}, 0)
    if row.reduce == "mul":  # no factor is zero
        share = weights * result
        return {"grad_x": share / x, "grad_values": share[index] / values}
    chosen, updates = x == result, values == result[index]
    ties = chosen.astype(np.float64)
    np.add.at(ties, index, updates)
    share = weights / ties
    return {"grad_x": chosen * share, "grad_values": updates * share[index]}


# The largest relative error of a correct result: one unit in the last place for 16-bit floats,
# which are rounded once, and the error of a long sum for 32 and 64 bits.
ROUNDED_ONCE = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 1e-4, "float64": 1e-11}
# The same for a library that rounds at every step. It has another result, but does the same work.
ROUNDED_OFTEN = {"float16": 2**-5, "bfloat16": 2**-2, "float32": 1e-2, "float64": 1e-9}


def compare(row: Row, found: Arrays, expected: Arrays) -> tuple[str, float]:
    """Whether results are ``same``, ``rounded`` or ``different``, and the largest error.

    The error is relative. For values that are only moved, it is the fraction of them that differs.
    """
    verdict, worst = "same", 0.0
    for name, right in expected.items():
        got = found[name]
        if got.shape != right.shape or got.dtype != right.dtype:
            return "different", float("inf")
        exact = row.dtype in ("int64", "bool")
        if exact or (row.reduce == "assign" and row.mode != "backward" and row.op != "index_add"):
            worst = max(worst, float(np.mean(got != right)))
            verdict = "different" if worst else verdict
            continue
        a, b = got.astype(np.float64), right.astype(np.float64)
        with np.errstate(invalid="ignore"):
            error = np.abs(a - b) / np.maximum(np.abs(b), 1e-6)
        error = float(np.max(error, initial=0.0)) if not np.isnan(error).any() else float("inf")
        worst = max(worst, error)
        if error > ROUNDED_OFTEN[row.dtype]:
            verdict = "different"
        elif error > ROUNDED_ONCE[row.dtype] and verdict == "same":
            verdict = "rounded"
    return verdict, worst


def result_shape(row: Row, arrays: Arrays) -> tuple[int, ...]:
    if row.op == "index_select":
        return (*row.shape[: row.axis], len(arrays["index"]), *row.shape[row.axis + 1 :])
    if row.op in READS:
        return forward(row, arrays).shape
    return row.shape


def weights(row: Row, arrays: Arrays) -> np.ndarray:
    """The weights with which the result is multiplied before it is summed."""
    rng = np.random.default_rng(1)
    return (rng.random(result_shape(row, arrays), np.float32) + 0.5).astype(dtype(row.dtype))


def given(row: Row, arrays: Arrays) -> dict[str, Any]:
    """The arrays of a workload, and the weights if it computes gradients."""
    return {**arrays, "weights": weights(row, arrays)} if row.mode == "backward" else dict(arrays)
