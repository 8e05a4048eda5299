"""Methods of `paddle.Tensor` for the operations, and for the arguments, that Paddle lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import paddle

import inlay
from inlay.paddle.tensors import OPERATIONS

#: The classes that get methods: eager tensors, and the values of static graphs.
_CLASSES = (paddle.Tensor, paddle.pir.Value)
#: Methods that Paddle has with fewer arguments.
_EXTENDED = ("scatter", "scatter_")
_OWN_KEYWORDS = frozenset(["index", "updates", "overwrite", "name", "out"])
_MISSING = object()
#: For each added method: the class, its name, the method, and what was there before.
_added: list[tuple[Any, str, Any, Any]] = []


def install() -> None:
    """Adds methods to `paddle.Tensor`: the operations that it lacks.

    `Tensor.scatter` and `Tensor.scatter_` also take `axis`, `reduce` and `include_self`. A call
    that Paddle's own method takes still goes to that method. Installing twice has no effect.

    >>> import inlay.paddle, paddle  # doctest: +SKIP
    >>> inlay.paddle.install()  # doctest: +SKIP
    >>> x, index = paddle.zeros([2, 3]), paddle.to_tensor([2, 0])  # doctest: +SKIP
    >>> x.scatter(index, paddle.ones([2, 2]), axis=1).tolist()  # doctest: +SKIP
    [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    """
    if _added:
        return
    for operation in OPERATIONS.values():
        if not operation.is_method:
            continue
        for name in filter(None, [operation.name, operation.twin]):
            for owner in _CLASSES:
                if not hasattr(owner, name):
                    _add(owner, name, _method(name))
    for name in _EXTENDED:
        for owner in _CLASSES:
            _add(owner, name, _extended(name, getattr(owner, name)))


def uninstall() -> None:
    """Takes away what `install` added. A method that someone replaced since is left alone."""
    while _added:
        owner, name, method, before = _added.pop()
        if owner.__dict__.get(name) is not method:
            continue
        if before is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _add(owner: Any, name: str, method: Any) -> None:
    _added.append((owner, name, method, owner.__dict__.get(name, _MISSING)))
    setattr(owner, name, method)


def _method(name: str) -> Callable[..., Any]:
    """An operation as a method. Functions of C don't bind to objects, so it is one of Python."""
    operation = getattr(inlay, name)

    @paddle.jit.not_to_static  # type: ignore[untyped-decorator]
    @functools.wraps(operation)
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return operation(self, *args, **keywords)

    return method  # type: ignore[no-any-return]


def _extended(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """Paddle's `scatter` with the arguments of Inlay's."""
    operation = getattr(inlay, name)

    @functools.wraps(own)
    def method(self: Any, *args: Any, **keywords: Any) -> Any:
        return (operation if _is_extended(args, keywords) else own)(self, *args, **keywords)

    return method


def _is_extended(args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether a call of `scatter` has an argument that Paddle's does not have.

    Paddle's takes `(index, updates, overwrite, name, out)`, and PyTorch's `(dim, index, src,
    reduce)`. Of the two it takes the second if `dim` comes first, or by name without anything by
    position.
    """
    if (args and isinstance(args[0], int)) or (not args and "dim" in keywords):
        return "updates" in keywords
    if len(args) > 3 and isinstance(args[3], int):
        return True
    return not _OWN_KEYWORDS.issuperset(keywords)
