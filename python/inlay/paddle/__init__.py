"""Inlay's operations on Paddle tensors: dynamic and static graph, and methods of `paddle.Tensor`.

`inlay.scatter(x, index, updates)` and all other operations take Paddle tensors without any import
of this package. `install` adds the operations that Paddle lacks as methods of `paddle.Tensor`.
"""

from pathlib import Path

from paddle.base import core

from inlay.paddle.calls import call
from inlay.paddle.methods import install, uninstall
from inlay.paddle.recorded import record

# `to_static(full_graph=False)` translates the bytecode of all functions that are not Paddle's own.
# It fails at those of this package, which have nothing to translate.
core.eval_frame_skip_file_prefix((f"{Path(__file__).parent.parent}/",))

__all__ = ["call", "install", "record", "uninstall"]
