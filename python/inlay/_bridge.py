"""What the bridges share: arguments as tensors of one library, and threads."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from inlay._inlay import Function, Tensor, _argument, _use_openmp, operations
from inlay.errors import InlayTypeError

# For each operation: its arguments that are tensors or lists of tensors, as (place, name, kind).
_TENSOR = {"Tensor", "Like", "Operand", "Index", "Mask"}
_LISTS = {"Tensors", "Indices"}
ARGUMENTS: dict[str, list[tuple[int, str, str]]] = {
    operation.name: [
        (place, argument.name, argument.kind)
        for place, argument in enumerate(operation.arguments)
        if argument.kind in _TENSOR | _LISTS
    ]
    for operation in operations()
}


class Library(Protocol):
    """How the bridge of a library handles its tensors."""

    name: str

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor of the library."""

    def dtype(self, tensor: Any) -> str:
        """The name of a tensor's dtype, as Inlay has it."""

    def adopt(self, tensor: Tensor) -> Any:
        """A tensor of the library with the elements of one of Inlay's."""


def bind(name: str, objects: tuple[Any, ...], library: Library) -> tuple[Function, list[Any]]:
    """Return the function of a call, and its tensors as tensors of the library.

    `objects` are the arguments in declared order. Numbers, lists and arrays become tensors by the
    rules of the operation: a number takes the dtype of the tensor that it meets.
    """
    function = Function(name, objects)
    tensors: list[Any] = []
    for place, argument, kind in ARGUMENTS[name]:
        value = objects[place]
        if kind in _LISTS:
            items = value if isinstance(value, (list, tuple)) else [value]
            tensors += [_convert(name, place, argument, item, None, library) for item in items]
            continue
        like = None
        if not library.is_tensor(value):
            like = _dtype_beside(name, objects, place, kind, tensors, library)
        tensors.append(_convert(name, place, argument, value, like, library))
    return function, tensors


def _dtype_beside(
    name: str, objects: tuple[Any, ...], place: int, kind: str, tensors: list[Any], library: Library
) -> str | None:
    """The dtype that a number in this place takes: that of the first tensor, or of the operand."""
    if kind == "Like":
        return library.dtype(tensors[0]) if tensors else None
    if kind != "Operand":
        return None
    pair = [other for other, _, kind in ARGUMENTS[name] if kind == "Operand" and other != place]
    for other in pair:
        if library.is_tensor(objects[other]):
            return library.dtype(objects[other])
        if other < place:
            # It was converted before, and is the last of the tensors.
            return library.dtype(tensors[-1])
    return None


def _convert(
    name: str, place: int, argument: str, value: Any, like: str | None, library: Library
) -> Any:
    if library.is_tensor(value):
        return value
    if isinstance(value, Tensor) and not value.stop_gradient:
        raise InlayTypeError(
            f"{name}: {argument} is a Tensor of Inlay that requires a gradient, beside a tensor of "
            f"{library.name}: pass {argument}.detach(), or convert the others to Tensors"
        )
    return library.adopt(_argument(name, place, value, like))


def share_threads(library: str) -> bool:
    """Compute on the OpenMP threads of a library, if it has some. Return whether that is so.

    After an operation, the threads of such a library wait for the next one in a loop, for
    milliseconds. Other threads would compete with them for the cores.
    """
    module = sys.modules.get(library)
    maps = Path("/proc/self/maps")
    if module is None or not module.__file__ or not maps.exists():
        return False
    home = str(Path(module.__file__).resolve().parent)
    loaded = {line.split(maxsplit=5)[-1].strip() for line in maps.read_text().splitlines()}
    runtimes = [path for path in sorted(loaded) if re.search(r"lib(gomp|omp|iomp5)[-.]", path)]
    # The wheels have a runtime of their own, in their directory or beside it.
    runtimes.sort(key=lambda path: not path.startswith(home))
    return any(_use_openmp(path) for path in runtimes)


def libtorch(torch: ModuleType) -> ctypes.CDLL:
    """Return the library with the C functions of LibTorch, which torch has loaded."""
    # A function of a library that this one depends on is found, too.
    return ctypes.CDLL(torch._C.__file__)
