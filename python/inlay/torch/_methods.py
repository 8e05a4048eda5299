"""Inlay's operations as methods of `torch.Tensor`, for those that torch does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import inlay

_installed: dict[str, Any] = {}


def install() -> list[str]:
    """Adds the operations that `torch.Tensor` lacks as methods, and returns their names.

    Methods that torch has are never replaced. `uninstall` removes the added ones.

    >>> import torch, inlay.torch
    >>> 'slice_scatter_' in inlay.torch.install()
    True
    >>> torch.zeros(4).slice_scatter_(torch.ones(2), start=1, stop=3)
    tensor([0., 1., 1., 0.])
    >>> inlay.torch.uninstall()
    """
    for operation in inlay.operations():
        for name in (operation.name, operation.twin) if operation.is_method else ():
            if name is not None and not hasattr(torch.Tensor, name):
                _installed[name] = _method(name)
                setattr(torch.Tensor, name, _installed[name])
    return sorted(_installed)


def uninstall() -> None:
    """Removes the methods that `install` added. Does nothing if there are none."""
    for name, method in _installed.items():
        if torch.Tensor.__dict__.get(name) is method:
            delattr(torch.Tensor, name)
    _installed.clear()


def _method(name: str) -> Callable[..., Any]:
    function = getattr(inlay, name)

    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return function(self, *args, **keywords)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = function.__doc__
    return method
