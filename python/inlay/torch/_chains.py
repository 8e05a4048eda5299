"""Joins calls in graphs that Inductor compiles: a chain of writes becomes one call.

The result of each call is the first input of the next, and nothing else uses it. As one call,
Inlay writes intermediate results in place, and the chain is dispatched once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, Node

from inlay._inlay import Function

from ._library import LAYOUTS


class Step(NamedTuple):
    """A call in a graph that can be part of a chain."""

    node: Node
    function: Any
    tensors: list[Any]


# The operations and the layouts of their arguments. Those with lists of tensors are left out, and
# those that read only the shape of their input: a plan would not compute that, nor find its errors.
_LAYOUTS = {
    getattr(torch.ops.inlay, name).default: layout
    for name, layout in LAYOUTS.items()
    if name == layout.name
    and layout.tensors
    and not any(several for _, several in layout.tensors)
    and not name.endswith("_like")
}


def register() -> None:
    """Registers the pass with Inductor, which runs it after autograd."""
    from torch._inductor.fx_passes.post_grad import pass_patterns
    from torch._inductor.pattern_matcher import CallFunctionVarArgs, register_graph_pattern

    # The last patterns are applied when other passes have simplified the graph.
    decorate = register_graph_pattern(
        CallFunctionVarArgs(list(_LAYOUTS)), pass_dict=pass_patterns[-1]
    )
    decorate(_matched)


def _matched(match: Any, *_args: Any, **_keywords: Any) -> None:
    join(match.graph)


def join(graph: Graph) -> None:
    """Replaces each chain of at least two calls by one call."""
    steps = {node: step for node in graph.nodes if (step := _step(node)) is not None}
    for step in steps.values():
        if not _continues(steps, step):
            chain = list(_chain(steps, step))
            if len(chain) > 1:
                _replace(graph, chain)


def _step(node: Node) -> Step | None:
    layout = _LAYOUTS.get(node.target) if node.op == "call_function" else None
    if layout is None:
        return None
    objects = layout.objects(node.args, node.kwargs)
    tensors = layout.split(objects)
    rest = layout.filled(objects, [None] * len(tensors))
    # A symbolic size among the arguments is a node, and no part of a text.
    if any(_has_node(value) for value in rest) or not all(isinstance(x, Node) for x in tensors):
        return None
    return Step(node, Function(layout.name, tuple(rest)), tensors)


def _has_node(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_node, value))
    return isinstance(value, Node)


def _user(steps: dict[Node, Step], step: Step) -> Step | None:
    """Returns the step that takes the result of this one as its first input, and nowhere else."""
    users = list(step.node.users)
    user = steps.get(users[0]) if len(users) == 1 else None
    if user is None or user.tensors[0] is not step.node or step.node in user.tensors[1:]:
        return None
    return user


def _continues(steps: dict[Node, Step], step: Step) -> bool:
    """Whether a step is part of a chain that has begun before."""
    before = steps.get(step.tensors[0])
    return before is not None and _user(steps, before) is step


def _chain(steps: dict[Node, Step], step: Step | None) -> Iterable[Step]:
    while step is not None:
        yield step
        step = _user(steps, step)


def _replace(graph: Graph, chain: list[Step]) -> None:
    last = chain[-1].node
    text = Function.chain([step.function for step in chain]).text
    inputs = chain[0].tensors[:1]
    for step in chain:
        inputs += step.tensors[1:]
    with graph.inserting_before(last):
        call = graph.call_function(torch.ops.inlay.chain.default, (text, inputs))
    # Other entries describe the arguments of the last call.
    call.meta.update({key: last.meta[key] for key in ("val", "stack_trace") if key in last.meta})
    last.replace_all_uses_with(call)
    for step in reversed(chain):
        graph.erase_node(step.node)
