"""JAX, compiled by ``jax.jit``. The time includes waiting until the results are complete."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.inputs import FILL, LAID, view
from benchmarks.libraries import Lines, Variants, jax_chains
from benchmarks.reference import reduction
from benchmarks.rows import CHAINS, Row

VERSION = jax.__version__
Function = Callable[..., Any]

jax.config.update("jax_enable_x64", True)  # for float64 and int64


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    # JAX's default integers have 32 bits, and indexing is faster with them.
    return {
        name: jnp.asarray(base.astype(np.int32) if name == "index" else base)
        for name, base in bases.items()
    }


def array(tensor: Any) -> np.ndarray:
    return np.array(tensor)


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if row.op in CHAINS:
        return jax_chains.variants(row, t)
    if row.op in ("tril_indices", "triu_indices"):
        call = partial(getattr(jnp, row.op), row.shape[0], row.offset, row.shape[1])
        return {row.op: lambda: jax.block_until_ready(call())}
    if row.op == "masked_select":  # the size of the result depends on values
        if row.mode == "backward":
            return {}
        text = "y = x[mask].block_until_ready()"
        return {} if row.layout != "contiguous" else {"key": Lines(text, x=t["x"], mask=t["mask"])}
    return compiled(row, t, functions(row))


def compiled(row: Row, t: dict[str, Any], functions: dict[str, Function]) -> Variants:
    """The variants that call compiled functions of x, values, index and mask."""
    names = [name for name in ("x", "values", "index", "mask") if name in t]
    given = [t[name] for name in names]
    found: Variants = {}
    for name, function in functions.items():

        def on_bases(*bases: Any, function: Function = function) -> Any:
            # JAX has no strided tensors, so slicing and transposing are part of the timed work.
            views = {
                key: view(base, row.layout) if key in LAID else base
                for key, base in zip(names, bases, strict=True)
            }
            return function(**views)

        if row.mode == "backward":
            found[name] = backward(on_bases, names, given, t["weights"])
        elif row.mode == "in place":
            found[name] = donated(on_bases, given)
        else:
            words = {f"a{n}": value for n, value in enumerate(given)}
            text = f"y = f({', '.join(words)}).block_until_ready()"
            found[name] = Lines(text, f=jax.jit(on_bases), **words)
    return found


def donated(function: Function, given: list[Any]) -> Function:
    """An in-place variant: the result reuses the memory of x, and is the x of the next call."""
    compiled = jax.jit(function, donate_argnums=0)
    state = [jnp.array(given[0])]

    def step() -> Any:
        state[0] = compiled(state[0], *given[1:]).block_until_ready()
        return state[0]

    return step


def backward(function: Function, names: list[str], given: list[Any], weights: Any) -> Function:
    count = 2 if "values" in names else 1

    @jax.jit
    def both(weights: Any, *given: Any) -> Any:
        inputs, others = given[:count], given[count:]
        result, back = jax.vjp(lambda *inputs: function(*inputs, *others), *inputs)
        return (result, *back(weights))

    return lambda: jax.block_until_ready(both(weights, *given))


def functions(row: Row) -> dict[str, Function]:
    """The variants as functions of x, values, index and mask, as far as the row has them."""
    axis = row.axis
    if row.op == "slice_scatter":
        return slices(row)
    if row.op == "select_scatter":
        key = (*(slice(None) for _ in row.shape[:axis]), row.at)
        return {"at set": lambda x, values: x.at[key].set(values)}
    if row.op == "diagonal_scatter":
        return diagonals(row)
    if row.op == "masked_scatter":
        return {"where, gathered": partial(gathered, row)}
    if row.op == "masked_fill":
        return {"where": lambda x, mask: jnp.where(mask, jnp.asarray(FILL, x.dtype), x)}
    rows = (*(slice(None) for _ in row.shape[:axis]),)
    if row.op == "index_fill":
        return {"at set": lambda x, index: x.at[(*rows, index)].set(FILL)}
    if row.op == "index_select":
        sure = {"mode": "promise_in_bounds"}
        return {
            "take": lambda x, index: jnp.take(x, index, axis),
            "take, clip": lambda x, index: jnp.take(x, index, axis, mode="clip"),
            "at get": lambda x, index: x.at[(*rows, index)].get(**sure),
        }
    if row.op == "take_along_axis":
        return {
            "take_along_axis": lambda x, index: jnp.take_along_axis(x, index, axis),
            "take_along_axis, in bounds": lambda x, index: jnp.take_along_axis(
                x, index, axis, mode="promise_in_bounds"
            ),
        }
    return scatters(row)


def slices(row: Row) -> dict[str, Function]:
    axis = row.axis

    def joined(x: Any, values: Any) -> Any:
        before = jax.lax.slice_in_dim(x, 0, row.start, axis=axis)
        after = jax.lax.slice_in_dim(x, row.stop, None, axis=axis)
        return jnp.concatenate((before, values, after), axis)

    def stacked(x: Any, values: Any) -> Any:
        others = jax.lax.slice_in_dim(x, 1, None, 2, axis=axis)
        return jnp.stack((values, others), axis + 1).reshape(x.shape)

    found = {"at set": lambda x, values: x.at[row.selection].set(values)}
    if row.step == 1:
        return {**found, "concatenate": joined}
    return {**found, "stack": stacked}


def diagonals(row: Row) -> dict[str, Function]:
    axis1, axis2 = row.axis1, row.axis2

    def diagonal_set(x: Any, values: Any) -> Any:
        step = jnp.arange(values.shape[-1])
        y = jnp.moveaxis(x, (axis1, axis2), (-2, -1))
        y = y.at[..., step + max(-row.offset, 0), step + max(row.offset, 0)].set(values)
        return jnp.moveaxis(y, (-2, -1), (axis1, axis2))

    def where(x: Any, values: Any) -> Any:
        y = jnp.moveaxis(x, (axis1, axis2), (-2, -1))
        on = jnp.eye(*y.shape[-2:], k=row.offset, dtype=bool)
        y = jnp.where(on, values[..., :, None], y)
        return jnp.moveaxis(y, (-2, -1), (axis1, axis2))

    found: dict[str, Function] = {"at set": diagonal_set}
    if row.offset == 0:
        found["where eye"] = where
    return found


def gathered(row: Row, x: Any, values: Any, mask: Any) -> Any:
    if row.mask_rows:
        places = jnp.maximum(jnp.cumsum(mask[:, 0]) - 1, 0)
        wide = values.reshape(-1, row.shape[1])
        return jnp.where(mask, wide.at[places].get(mode="promise_in_bounds"), x)
    places = jnp.maximum(jnp.cumsum(mask.reshape(-1)) - 1, 0)
    taken = values.at[places].get(mode="promise_in_bounds").reshape(x.shape)
    return jnp.where(mask, taken, x)


def scatters(row: Row) -> dict[str, Function]:
    kind, axis = reduction(row), row.axis
    method = {
        "assign": "set",
        "sum": "add",
        "mean": "add",
        "mul": "multiply",
        "amax": "max",
        "amin": "min",
    }[kind]
    neutral = {"sum": 0, "mean": 0, "mul": 1, "amax": -jnp.inf, "amin": jnp.inf}

    def places(index: Any) -> tuple[Any, ...]:
        if row.op != "put_along_axis":
            return (*(slice(None) for _ in row.shape[:axis]), index)
        grid = list(jnp.ogrid[tuple(map(slice, index.shape))])
        return (*grid[:axis], index, *grid[axis + 1 :])

    def at(x: Any, values: Any, index: Any, **options: Any) -> Any:
        key = places(index)
        y = x if row.include_self else x.at[key].set(neutral[kind])
        y = getattr(y.at[key], method)(values, **options)
        if kind != "mean":
            return y
        if row.op == "put_along_axis":
            counts = jnp.zeros(x.shape, x.dtype).at[key].add(1)
        else:
            counts = jnp.bincount(index, length=row.shape[axis])
            counts = counts.reshape(-1, *(1 for _ in row.shape[axis + 1 :]))
        counts = counts + 1 if row.include_self else jnp.maximum(counts, 1)
        return (y / counts.astype(x.dtype)).astype(x.dtype)

    sure: dict[str, Any] = {"mode": "promise_in_bounds"}
    if row.index == "sorted":
        sure["indices_are_sorted"] = True
    if row.index == "permutation":
        sure["unique_indices"] = True
    return {f"at {method}": at, f"at {method}, in bounds": partial(at, **sure)}
