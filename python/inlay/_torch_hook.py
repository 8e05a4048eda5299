"""Makes `torch.compile` know Inlay's functions, whichever of the two is imported first.

Dynamo, the tracer of `torch.compile`, must be told what C functions do before it meets them, and
Inductor, the compiler behind it, how calls are joined. This module waits until their modules are
imported, so `import inlay` imports nothing of torch.
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

# Modules of torch, and the modules of Inlay whose `register` is called after they were imported.
_WATCHED = {
    "torch._dynamo": "inlay.torch._dynamo",
    "torch._inductor.fx_passes.post_grad": "inlay.torch._chains",
}


def watch() -> None:
    """Registers Inlay's functions with what is there now, and with the rest when it is imported."""
    for name in _WATCHED:
        if name in sys.modules:
            _register(name)
    left = set(_WATCHED) - set(sys.modules)
    if left and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(left))


def _register(name: str) -> None:
    importlib.import_module(_WATCHED[name]).register()


class _Finder(MetaPathFinder):
    """Finds the watched modules by the other finders, each once, for `_Loader` to load them."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the specification of a watched module, and None for all others."""
        if fullname not in self._names:
            return None
        self._names.remove(fullname)
        if not self._names:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(fullname, spec.loader)
        return spec


class _Loader(Loader):
    """Loads a module by its own loader, then registers Inlay's functions."""

    def __init__(self, name: str, loader: Loader) -> None:
        self._name = name
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
        _register(self._name)
