"""Makes `torch.compile` know Inlay's functions, whichever of the two is imported first.

Dynamo, the tracer of `torch.compile`, must be told what C functions do before it meets them. This
module waits until `torch._dynamo` is imported, so `import inlay` imports nothing of torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NAME = "torch._dynamo"


def watch() -> None:
    """Registers Inlay's functions with Dynamo, now if it is there, else when it is imported."""
    if _NAME in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register() -> None:
    importlib.import_module("inlay.torch._dynamo").register()


class _Finder(MetaPathFinder):
    """Finds `torch._dynamo` by the other finders, once, and has it loaded by `_Loader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the specification of `torch._dynamo`, and None for all other modules."""
        if fullname != _NAME:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads a module by its own loader, then registers Inlay's functions."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Creates the module."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module. It keeps no trace of this loader."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _register()
