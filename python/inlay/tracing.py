"""Functions that are traced once and then run as programs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import numpy as np

from inlay._inlay import (
    Plan,
    Program,
    Tensor,
    _set_tracing,
    _SizesNeeded,
    _Traces,
    from_numpy,
    is_grad_enabled,
    to_tensor,
)
from inlay.errors import InlayTypeError, InlayValueError

__all__ = ["Jit", "jit"]

P = ParamSpec("P")
R = TypeVar("R")

Rebuild = Callable[[list[Any]], Any]

_TRACES = 256
"""Traces that a function keeps: arguments that are no tensors may have any number of values."""


class _Trace:
    """A plan, the arguments that it takes, and what makes the function's result of its own."""

    def __init__(self, plan: Plan, rebuild: Rebuild | None) -> None:
        self.plan = plan
        self.takes = [int(name.removeprefix("arg")) for name in plan.inputs]
        self.rebuild = rebuild


class Jit(Generic[P, R]):
    """A function of tensors that runs as a program; made by `jit`."""

    def __init__(self, function: Callable[P, R], donate: bool = False) -> None:
        self._function = function
        self._donate = donate
        self._fast = _Traces()
        self._traces: dict[Any, _Trace | None] = {}
        # A function may call itself, or be called while it is traced.
        self._lock = threading.RLock()
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function's result for these arguments."""
        if not kwargs:
            result = self._fast.call(args)
            if result is not NotImplemented:
                return cast(R, result)
        arrays = [value for value in (*args, *kwargs.values()) if _is_array(value)]
        if any(_is_recorded(array) for array in arrays):
            # Gradients go through the function itself, and so does another trace.
            return self._function(*args, **kwargs)
        kinds = [_kind(value) for value in (*args, *kwargs.values())]
        trace = self._find((*kwargs, *kinds), args, kwargs, arrays)
        return cast(R, _Traces.run(arrays, trace.plan, trace.takes, trace.rebuild))

    def explain(self) -> str:
        """The plans of all traces, in words."""
        return "\n".join(str(trace.plan) for trace in self._traces.values() if trace is not None)

    def _find(self, key: Any, args: Any, kwargs: Any, arrays: list[Any]) -> _Trace:
        try:
            hash(key)
        except TypeError:
            raise InlayTypeError(
                "jit: arguments are tensors, arrays, or constants that can be hashed: "
                "pass lists of numbers as arrays"
            ) from None
        with self._lock:
            if key not in self._traces:
                try:
                    trace = self._trace(args, kwargs, [None] * len(arrays))
                except _SizesNeeded:
                    self._keep(key, None)
                else:
                    self._keep(key, trace)
                    if not kwargs:
                        self._fast.add(args, trace.plan, trace.takes, trace.rebuild)
            trace_or_none = self._traces[key]
            if trace_or_none is not None:
                return trace_or_none
            # The function asks for sizes: a trace for each set of them.
            shapes = [tuple(array.shape) for array in arrays]
            sized = (key, *shapes)
            if sized not in self._traces:
                try:
                    self._keep(sized, self._trace(args, kwargs, shapes))
                except _SizesNeeded as needed:
                    raise InlayValueError(
                        "jit: the function asks for a size that depends on values, which is not "
                        f"known when it is traced ({needed})"
                    ) from None
            return cast(_Trace, self._traces[sized])

    def _keep(self, key: Any, trace: _Trace | None) -> None:
        while len(self._traces) >= _TRACES:
            self._traces.pop(next(iter(self._traces)))
        self._traces[key] = trace

    def _trace(self, args: Any, kwargs: Any, shapes: list[Any]) -> _Trace:
        program, count = Program(), 0

        def symbolic(value: Any) -> Any:
            nonlocal count
            if not _is_array(value):
                return value
            name, shape = f"arg{count}", shapes[count]
            count += 1
            like = value if isinstance(value, Tensor) else from_numpy(value)
            return program.data(name, [None] * value.ndim if shape is None else shape, like.dtype)

        symbols = [symbolic(value) for value in args]
        named = {name: symbolic(value) for name, value in kwargs.items()}
        before = _set_tracing(True)
        try:
            result = self._function(*symbols, **named)
        finally:
            _set_tracing(before)
        found: list[Tensor] = []
        rebuild = _flatten(result, found)
        single = isinstance(result, Tensor)
        return _Trace(program.plan(found, self._donate), None if single else rebuild)


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)


def _is_recorded(value: Any) -> bool:
    """Whether a trace can't stand for calls with this argument."""
    if not isinstance(value, Tensor):
        return False
    return value._is_symbolic or (not value.stop_gradient and is_grad_enabled())


def _kind(value: Any) -> Any:
    """What arguments must share to share a trace."""
    return (value.dtype, value.ndim) if _is_array(value) else _constant(value)


def _constant(value: Any) -> Any:
    """What tells constants apart: 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    if isinstance(value, tuple):
        return (type(value), *map(_constant, value))
    if _is_array(value):
        raise InlayTypeError("jit: pass tensors and arrays as arguments, not in tuples")
    # The text of a number says its sign, too.
    return (
        (type(value), repr(value)) if isinstance(value, float | complex) else (type(value), value)
    )


def _flatten(result: Any, found: list[Tensor]) -> Rebuild:
    """Adds the tensors of a result to `found`; gives what puts their values in their places."""
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

    The function is called once with symbolic tensors for each set of dtypes and ranks of its
    arguments; what it does is planned, and run from then on. Sizes stay open, unless the function
    asks for them. Arguments that are no tensors are constants. Results are arrays if all arguments
    were.

    A condition on values can't be traced; use `where` or a masked operation instead. Writes in
    place stay inside: an argument is as before. While a gradient is recorded for an argument, the
    function itself is called.

    Args:
        function: of tensors and constants, to a tensor or to tuples, lists or dicts of them.
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
        return functools.partial(jit, donate=donate)
    return Jit(function, donate)
