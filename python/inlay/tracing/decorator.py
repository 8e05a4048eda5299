"""The decorator `jit`, which traces a function once and then runs it as a program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import numpy as np

from inlay._inlay import Tensor, _Traces, is_grad_enabled, to_tensor
from inlay.errors import InlayTypeError

__all__ = ["Jit", "jit"]

P = ParamSpec("P")
R = TypeVar("R")

Rebuild = Callable[[list[Any]], Any]


class Jit(Generic[P, R]):
    """A function of tensors that runs as a program. `jit` makes it."""

    def __init__(self, function: Callable[P, R], donate: bool = False) -> None:
        self._function = function
        self._traces = _Traces(donate)
        # Only one thread at a time makes traces, so that two don't make the same one. The lock is
        # reentrant, because a function may call itself while it is traced.
        self._lock = threading.RLock()
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns the function's result for these arguments."""
        if not kwargs:
            result = self._traces.call(args)
            if result is not NotImplemented:
                return cast(R, result)
        values = (*args, *kwargs.values())
        arrays = [value for value in values if _is_array(value)]
        if any(_is_recorded(array) for array in arrays):
            # The function runs itself: its operations are recorded for a gradient, or by a trace of
            # an outer function.
            return self._function(*args, **kwargs)
        plain = not kwargs and len(arrays) == len(args)
        constants = None if plain else (*kwargs, *map(_kind, values))
        with self._lock:
            trace = self._traces.find(arrays, constants, partial(self._trace, args, kwargs))
        return cast(R, trace.run(arrays))

    def explain(self) -> str:
        """The plans of all traces, as text."""
        return self._traces.explain()

    def _trace(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], symbols: list[Tensor]
    ) -> tuple[list[Tensor], Rebuild | None]:
        """Calls the function with `symbols` instead of arrays, and flattens its result."""
        left = iter(symbols)
        positional = [next(left) if _is_array(value) else value for value in args]
        named = {n: next(left) if _is_array(value) else value for n, value in kwargs.items()}
        result: Any = self._function(*positional, **named)  # type: ignore[arg-type]
        found: list[Tensor] = []
        rebuild = _flatten(result, found)
        return found, None if isinstance(result, Tensor) else rebuild


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)


def _is_recorded(value: Any) -> bool:
    """Whether operations on this argument are recorded, so that the function itself must run."""
    if not isinstance(value, Tensor):
        return False
    return value._is_symbolic or (not value.stop_gradient and is_grad_enabled())


def _kind(value: Any) -> Any:
    """The key of a constant. It is None for an array, whose dtype and rank are keys elsewhere."""
    return None if _is_array(value) else _constant(value)


def _constant(value: Any) -> Any:
    """A key that differs if constants differ, even if `==` holds: 1, 1.0 and True; 0.0 and -0.0."""
    if isinstance(value, tuple):
        return (type(value), *map(_constant, value))
    if _is_array(value):
        raise InlayTypeError("jit: pass tensors and arrays as arguments, not in tuples")
    # Unlike `==`, `repr` shows the sign of 0.0.
    return (
        (type(value), repr(value)) if isinstance(value, float | complex) else (type(value), value)
    )


def _flatten(result: Any, found: list[Tensor]) -> Rebuild:
    """Appends the tensors of a result to `found`. Returns a callable that rebuilds the result."""
    if isinstance(result, np.ndarray):
        result = to_tensor(result)
    if isinstance(result, Tensor):
        at = len(found)
        found.append(result)
        return lambda values: values[at]
    if isinstance(result, dict):
        parts = {key: _flatten(value, found) for key, value in result.items()}
        return lambda values: {key: part(values) for key, part in parts.items()}
    if isinstance(result, tuple | list):
        items = [_flatten(value, found) for value in result]
        make = result._make if hasattr(result, "_make") else type(result)
        return lambda values: make([item(values) for item in items])
    return lambda values: result


@overload
def jit(function: Callable[P, R], *, donate: bool = False) -> Jit[P, R]: ...
@overload
def jit(
    function: None = None, *, donate: bool = False
) -> Callable[[Callable[P, R]], Jit[P, R]]: ...
def jit(function: Any = None, *, donate: bool = False) -> Any:
    """Make a function of tensors run as a program.

    The function is called once with symbolic tensors for each combination of dtypes and ranks of
    its arguments. Its operations are recorded and planned, and later calls run the plan. If the
    function asks for a size, it is traced for each combination of sizes. Arguments that are not
    tensors or arrays are constants. The results are arrays if no argument is a tensor.

    A condition on values can't be traced; use `where` or a masked operation instead. Writes in
    place don't change the arguments of the call. While a gradient is recorded for an argument, the
    function itself is called.

    Args:
        function: takes tensors and constants; returns a tensor, or tuples, lists or dicts of them.
        donate: calls may write into the memory of their arguments.

    >>> import numpy as np
    >>> import inlay
    >>> @inlay.jit
    ... def step(cache, new):
    ...     return inlay.slice_scatter(cache, new, start=0, stop=1) * 2
    >>> step(np.ones((2, 2)), np.zeros((1, 2)))
    array([[0., 0.],
           [2., 2.]])

    """
    if function is None:
        return partial(jit, donate=donate)
    return Jit(function, donate)
