"""NumPy's functions that Inlay has, too, for calls such as `np.sum(t)` with a tensor `t`.

`inlay.numpy_protocols` uses these tables. An entry of `FUNCTIONS` is called with the arguments of
NumPy's function. It returns `NotImplemented` if Inlay's operation can't take one of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from inlay import _inlay
from inlay._inlay import Operation, Tensor

__all__ = ["FUNCTIONS", "REDUCTIONS", "UFUNCS"]

UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: _inlay.add,
    np.subtract: _inlay.subtract,
    np.multiply: _inlay.multiply,
    np.divide: _inlay.divide,
    np.negative: operator.neg,
    np.equal: _inlay.equal,
    np.not_equal: _inlay.not_equal,
    np.less: _inlay.less_than,
    np.less_equal: _inlay.less_equal,
    np.greater: _inlay.greater_than,
    np.greater_equal: _inlay.greater_equal,
}
"""The operation for a call of a ufunc."""

REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: _inlay.sum,
    np.multiply: _inlay.prod,
    np.maximum: _inlay.amax,
    np.minimum: _inlay.amin,
}
"""The operation for the method `reduce` of a ufunc."""

OPERATIONS = {
    "sum": ("sum", "a axis -dtype -out keepdims"),
    "prod": ("prod", "a axis -dtype -out keepdims"),
    "max": ("amax", "a axis -out keepdims"),
    "min": ("amin", "a axis -out keepdims"),
    "amax": ("amax", "a axis -out keepdims"),
    "amin": ("amin", "a axis -out keepdims"),
    "where": ("where", "condition x y"),
    "concatenate": ("concat", "arrays axis -out"),
    "stack": ("stack", "arrays axis -out"),
    "reshape": ("reshape", "a shape"),
    "squeeze": ("squeeze", "a axis"),
    "expand_dims": ("unsqueeze", "a axis"),
    "broadcast_to": ("broadcast_to", "array shape"),
    "diagonal": ("diagonal", "a offset axis1 axis2"),
    "tril": ("tril", "m k"),
    "triu": ("triu", "m k"),
    "take_along_axis": ("take_along_axis", "arr indices axis"),
    "zeros_like": ("zeros_like", "a dtype"),
    "ones_like": ("ones_like", "a dtype"),
    "full_like": ("full_like", "a fill_value dtype"),
    "real": ("real", "val"),
    "imag": ("imag", "val"),
}
"""NumPy's function, Inlay's operation, and NumPy's names of the operation's first arguments. A `-`
marks an argument that only NumPy has."""


class _ByOperation:
    """A function of NumPy as a call of an operation."""

    def __init__(self, operation: Operation, names: str) -> None:
        self.call = getattr(_inlay, operation.name)
        self.names = [name.lstrip("-") for name in names.split()]
        shared = [name for name in names.split() if not name.startswith("-")]
        self.arguments = dict(zip(shared, operation.arguments, strict=False))
        self.required = {argument.name for argument in operation.arguments if argument.required}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self.names, args, strict=False))
        if len(given) < len(args) or not kwargs.keys() <= set(self.names) - given.keys():
            return NotImplemented
        passed = {}
        for name, value in (given | kwargs).items():
            argument = self.arguments.get(name)
            optional = argument is None or (argument.default is None and not argument.required)
            if value is None and optional:
                continue
            if value is None or argument is None:
                return NotImplemented
            # To Inlay, Python's `float` is float32.
            is_float = argument.kind == "DType" and value in (float, complex)
            passed[argument.name] = np.dtype(value) if is_float else value
        return self.call(**passed) if self.required <= passed.keys() else NotImplemented


def _mean(
    a: Tensor,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    **rest: Any,
) -> Any:
    if dtype is not None or out is not None or rest:
        return NotImplemented
    # Inlay's mean of integers is an integer.
    real = "float" in a.dtype.name or "complex" in a.dtype.name
    return _inlay.mean(a if real else a.cast("float64"), axis, keepdims)


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.T if axes is None else _inlay.transpose(a, axes)


def _copy(a: Tensor, order: str = "K", subok: bool = False) -> Any:
    return a.copy()


def _shape(a: Tensor) -> Any:
    return a.shape


def _ndim(a: Tensor) -> int:
    return a.ndim


def _size(a: Tensor, axis: Any = None) -> Any:
    return a.size if axis is None else NotImplemented


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    if not isinstance(dst, Tensor) or where is not True:
        return NotImplemented
    dst[...] = src
    return None


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Any:
    if not isinstance(arr, Tensor) or axis is None:
        return NotImplemented
    arr.put_along_axis_(indices, values, axis)
    return None


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.mean: _mean,
    np.transpose: _transpose,
    np.copy: _copy,
    np.shape: _shape,
    np.ndim: _ndim,
    np.size: _size,
    np.copyto: _copyto,
    np.put_along_axis: _put_along_axis,
}
"""The replacement of a function of NumPy."""

_table = {operation.name: operation for operation in _inlay.operations()}
FUNCTIONS |= {
    getattr(np, name): _ByOperation(_table[operation], names)
    for name, (operation, names) in OPERATIONS.items()
    if operation in _table
}
