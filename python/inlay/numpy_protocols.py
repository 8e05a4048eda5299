"""NumPy's protocols: what `np.sin(t)`, `np.sum(t)` and `array += t` do with a tensor `t`.

A function that Inlay has is called there, and its result is a tensor with a gradient. Any other
function gets the elements as an array and returns what NumPy returns. That would lose the gradient
of a tensor that requires one, so it is an error then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from inlay._inlay import Tensor, is_grad_enabled
from inlay.errors import InlayTypeError
from inlay.numpy_functions import FUNCTIONS, REDUCTIONS, UFUNCS

__all__ = ["array_function", "array_ufunc"]

_OPERANDS = (Tensor, np.ndarray, np.generic, int, float, complex, list, tuple, range)
_WRITERS = {np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask}
"""The functions that write into their first argument."""


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for calls of ufuncs with a tensor."""
    if method == "__call__" and not kwargs and ufunc in UFUNCS:
        # `array + t` comes here. `all` with a generator would take longer than the operation.
        for one in inputs:
            if not isinstance(one, _OPERANDS):
                break
        else:
            return UFUNCS[ufunc](*inputs)
    elif method == "reduce" and kwargs.keys() <= {"axis", "keepdims"} and ufunc in REDUCTIONS:
        axis, keepdims = kwargs.get("axis", 0), kwargs.get("keepdims", False)
        return REDUCTIONS[ufunc](inputs[0], axis, keepdims)
    name = f"numpy.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
    writes = method == "at"
    if writes and isinstance(inputs[0], Tensor):
        raise _can_not_write(name)
    return _by_numpy(name, getattr(ufunc, method), inputs, kwargs, writes)


def array_function(
    self: Tensor, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """NumPy's protocol for calls of its other functions with a tensor."""
    replacement = FUNCTIONS.get(func)
    if replacement and all(issubclass(one, Tensor | np.ndarray) for one in types):
        result = replacement(*args, **kwargs)
        if result is not NotImplemented:
            return result
    name = f"{func.__module__}.{func.__name__}"
    writes = func in _WRITERS
    if writes and isinstance(next(iter((*args, *kwargs.values())), None), Tensor):
        raise _can_not_write(name)
    return _by_numpy(name, func, args, kwargs, writes)


def _by_numpy(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    writes: bool,
) -> Any:
    """Calls a function of NumPy with arrays instead of tensors.

    A tensor in `out` is written by Inlay, so that a backward pass notices the write.
    """
    out = kwargs.get("out")
    targets = [one for one in (out if isinstance(out, tuple) else [out]) if one is not None]
    recorded = is_grad_enabled() and any(not t.stop_gradient for t in _tensors((args, kwargs)))
    if recorded and (writes or targets):
        raise _gradient_lost(name)
    copies = {id(one): np.array(one) for one in targets if isinstance(one, Tensor)}
    result = function(*_arrays(args, copies), **_arrays(kwargs, copies))
    if recorded and _is_differentiable(result):
        raise _gradient_lost(name)
    written = {id(copies[id(one)]): one for one in targets if isinstance(one, Tensor)}
    for target in written.values():
        target[...] = copies[id(target)]
    if isinstance(result, tuple):
        return tuple(written.get(id(one), one) for one in result)
    return written.get(id(result), result)


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in an argument, which may be a list."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _arrays(value: Any, instead: dict[int, Any]) -> Any:
    """The argument with arrays over the memory of its tensors, or with those of `instead`."""
    if isinstance(value, Tensor):
        return instead[id(value)] if id(value) in instead else np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(_arrays(one, instead) for one in value)
    if isinstance(value, dict):
        return {name: _arrays(one, instead) for name, one in value.items()}
    return value


def _is_differentiable(result: Any) -> bool:
    """Whether a result has floats or complex numbers, which can have gradients."""
    if isinstance(result, list | tuple):
        return any(_is_differentiable(one) for one in result)
    dtype = getattr(result, "dtype", None)
    if dtype is None:
        return isinstance(result, float | complex)
    # bfloat16, which is not NumPy's own, has the kind V.
    return getattr(dtype, "kind", "f") in "fcV"


def _gradient_lost(name: str) -> InlayTypeError:
    return InlayTypeError(
        f"{name}: a tensor requires a gradient, which NumPy would lose; pass t.detach() or "
        "t.numpy(), or call it within inlay.no_grad()"
    )


def _can_not_write(name: str) -> InlayTypeError:
    return InlayTypeError(
        f"{name}: NumPy does not write into a tensor; use an in-place operation of Inlay, or write "
        "into t.numpy()"
    )


Tensor.__array_ufunc__ = array_ufunc  # type: ignore[method-assign]
Tensor.__array_function__ = array_function  # type: ignore[method-assign]
