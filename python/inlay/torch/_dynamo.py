"""Tells Dynamo, the tracer of `torch.compile` and `torch.export`, what Inlay's functions do."""

from __future__ import annotations

import torch

import inlay

from ._traced import traceable

_done = False


def register() -> None:
    """Registers a traceable function for each operation. Imports `torch._dynamo`."""
    global _done
    if _done:
        return
    _done = True
    for operation in inlay.operations():
        for in_place in (False, True):
            name = operation.twin if in_place else operation.name
            if name is not None:
                function = getattr(inlay, name)
                substitute = torch.compiler.substitute_in_graph(function, skip_signature_check=True)
                substitute(traceable(operation, in_place))
