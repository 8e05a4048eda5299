"""The decorator `jit`, which traces a function once and then runs it as a program."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from functools import partial, update_wrapper
from types import FunctionType, MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import numpy as np

from inlay._inlay import Tensor, _Traces, is_grad_enabled
from inlay.errors import InlayTypeError
from inlay.tracing.arrays import bring_in, type_name
from inlay.tracing.copies import Copies
from inlay.tracing.keys import ByIdentity, RefusedError, key_of, paths_to
from inlay.tracing.results import Rebuild, flatten

__all__ = ["Jit", "jit"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


class Jit(ByIdentity, Generic[P, R]):
    """A function of tensors that runs as a program. `jit` makes it."""

    def __init__(self, function: Callable[P, R], donate: bool = False) -> None:
        self._function = function
        self._traces = _Traces(donate)
        self._names, self._unnamed = _positions(function)
        # Only one thread at a time makes traces, so that two don't make the same one. The lock is
        # reentrant, because a function may call itself while it is traced.
        self._lock = threading.RLock()
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns the function's result for these arguments."""
        if not kwargs:
            result = self._traces.call(args)
            if result is not NotImplemented:
                return result  # type: ignore[no-any-return]
        return cast(R, self._call(args, kwargs))

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Jit[P, R]: ...
    @overload
    def __get__(
        self: Jit[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> Jit[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The method of an instance. `MethodType` passes attributes on, such as `explain`."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        # As a function, it is pickled by name, and its copy is the function itself.
        return self.__qualname__  # type: ignore[no-any-return, attr-defined]

    def explain(self) -> str:
        """The plans of all traces, as text."""
        return self._traces.explain()

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with any arguments."""
        if kwargs:
            args, kwargs = self._by_position(args, kwargs)
        found: list[Any] = []
        key = self._key(args, kwargs, found)
        arrays = [
            array
            if isinstance(array, Tensor | np.ndarray)
            else bring_in(array, self._where(array, args, kwargs))
            for array in found
        ]
        function = partial(self._apply, args, kwargs)
        if any(_is_recorded(array) for array in arrays):
            return self._traces.run_itself(arrays, function)
        # Plain arguments have no key, so that `_Traces.call` finds their trace.
        plain = not kwargs and len(arrays) == len(args) and all(part is None for part in key)
        with self._lock:
            trace = self._traces.find(arrays, None if plain else key, function)
        return trace.run(arrays)

    def _by_position(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Moves keyword arguments to their positions, so that both ways to pass them are one."""
        if len(args) < self._unnamed:
            return args, kwargs
        positional, named = list(args), dict(kwargs)
        for name in self._names[len(args) :]:
            if name not in named:
                break
            positional.append(named.pop(name))
        return tuple(positional), named

    def _key(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], found: list[Any]
    ) -> tuple[Any, ...]:
        """The keys of all arguments, and the names of those that are passed by name."""
        try:
            keys = [key_of(value, found) for value in args]
            return (*keys, *[(name, key_of(value, found)) for name, value in kwargs.items()])
        except RefusedError as error:
            where = self._where(error.value, args, kwargs)
            raise InlayTypeError(
                f"jit: {where} is a {type_name(error.value)}, whose changes can't be seen: pass "
                "tensors, arrays, constants, and lists, tuples, dicts and plain objects of them"
            ) from None
        except RecursionError:
            raise InlayTypeError("jit: an argument contains itself") from None

    def _where(self, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The place of a value in the arguments, for messages."""
        more = [f"args[{at}]" for at in range(len(self._names), len(args))]
        named = [*zip([*self._names, *more], args, strict=False), *kwargs.items()]
        paths = (path for name, outer in named for path in paths_to(value, outer, name))
        return next(paths, "an argument")

    def _apply(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]
    ) -> tuple[list[Tensor], Rebuild | None]:
        """Calls the function with `tensors` in place of arrays, and flattens its result."""
        copies = Copies(tensors)
        positional = [copies.of(value) for value in args]
        named = {name: copies.of(value) for name, value in kwargs.items()}
        try:
            result: Any = self._function(*positional, **named)
        finally:
            changed = copies.restore()
        if changed is not None:
            raise InlayTypeError(
                f"jit: the function sets {changed}, which has no effect outside of it: return the "
                "new value, or a new object, instead"
            )
        found: list[Tensor] = []
        rebuild = flatten(result, found)
        return found, None if isinstance(result, Tensor) else rebuild


def _is_recorded(value: Any) -> bool:
    """Whether operations on this argument are recorded, so that the function itself must run."""
    if not isinstance(value, Tensor):
        return False
    return value._is_symbolic or (not value.stop_gradient and is_grad_enabled())


def _positions(function: Any) -> tuple[list[str], int]:
    """The parameters that can be passed by position, and how many of them only so."""
    try:
        # What a decorator wraps may have other parameters than its wrapper, which is called.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return [], 0
    only, both = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    names = list(signature.parameters)[: kinds.count(only) + kinds.count(both)]
    return names, kinds.count(only)


@overload
def jit(  # type: ignore[overload-overlap]  # a static method is callable, too
    function: staticmethod[P, R], *, donate: bool = False
) -> staticmethod[P, R]: ...
@overload
def jit(function: classmethod[S, P, R], *, donate: bool = False) -> classmethod[S, P, R]: ...
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
    function asks for a size, it is traced for each combination of sizes. The results are arrays if
    no argument is a tensor.

    Arguments may be tensors, arrays of any library, constants such as numbers and strings, and
    lists, tuples, dicts, dataclasses and other objects of these. A new value of a constant causes a
    new trace. On a method, ``self`` is an argument like the others: its attributes are read at
    each call.

    A condition on values can't be traced; use `where` or a masked operation instead. Writes in
    place don't change the arguments of the call. While a gradient is recorded for an argument, the
    function itself is called.

    Args:
        function: takes arguments as above; returns tensors, constants, or lists, tuples, dicts or
            dataclasses of them. A method, a static method or a class method may be given, too.
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
    if isinstance(function, staticmethod | classmethod):
        return type(function)(jit(function.__func__, donate=donate))
    if isinstance(function, MethodType):
        return MethodType(jit(function.__func__, donate=donate), function.__self__)
    if not callable(function):
        raise InlayTypeError(f"jit: function is a {type_name(function)}, expected a function")
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise InlayTypeError("jit: function is a generator or a coroutine: return a list instead")
    method = type(function).__call__
    if isinstance(method, FunctionType) and not isinstance(function, Jit | type):
        # An object with `__call__`: its attributes are arguments.
        return MethodType(Jit(method, donate), function)
    return Jit(function, donate)
