"""The node of a call that Paddle records: plain tensors in the dynamic graph.

The call itself and its derivative run in Rust. A gradient that is recorded itself goes on as in
`layer`.
"""

from __future__ import annotations

from typing import Any

import paddle

from inlay._inlay import Recording
from inlay.paddle.layer import apply


class InlayRecorded(paddle.autograd.PyLayer):  # type: ignore[misc]
    """A call of an operation on plain tensors. Its second argument is that of `layer.InlayCall`."""

    # It returns the result, which was computed before.
    forward = staticmethod(Recording.enter_paddle)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[list[Any]]:
        """The gradients of the inputs that need one, as one list."""
        recording, saved = ctx.recording, ctx.saved
        found = recording.gradients(saved, grad)
        if found is None:
            found = apply(recording.vjp, [*recording.inputs(saved), grad])
        return (found,)


record = InlayRecorded.apply
