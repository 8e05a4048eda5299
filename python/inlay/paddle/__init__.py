"""Inlay's operations on Paddle tensors: dynamic and static graph, and methods of `paddle.Tensor`.

`inlay.scatter(x, index, updates)` and all other operations take Paddle tensors without any import
of this package. `install` adds the operations that Paddle lacks as methods of `paddle.Tensor`.
"""

from inlay.paddle.calls import call
from inlay.paddle.methods import install, uninstall

__all__ = ["call", "install", "uninstall"]
