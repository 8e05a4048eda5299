"""The switch that turns the recording of gradients off."""

from __future__ import annotations

from contextlib import ContextDecorator

from inlay._inlay import _set_grad_enabled

__all__ = ["no_grad"]


class no_grad(ContextDecorator):
    """A context in which operations of this thread are not recorded for gradients.

    It is a context manager and a decorator:

    >>> import inlay
    >>> x = inlay.to_tensor([1.0], stop_gradient=False)
    >>> with inlay.no_grad():
    ...     y = x * 2
    >>> y.stop_gradient
    True
    >>> @inlay.no_grad()
    ... def double(x):
    ...     return x * 2
    >>> double(x).stop_gradient
    True
    """

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> no_grad:
        self._before.append(_set_grad_enabled(False))
        return self

    def _recreate_cm(self) -> no_grad:
        # `ContextDecorator` calls this for each call of a decorated function. The function may run
        # in several threads at once, and the mode is per thread, so each call needs its own object.
        return no_grad()

    def __exit__(self, *exception: object) -> None:
        _set_grad_enabled(self._before.pop())
