"""Inlay's operations for PyTorch: on its tensors, in its autograd, under its compiler.

Nothing here needs to be called: `inlay.scatter(x, index, updates)` works on torch tensors. Importing
this module registers the operations as `torch.ops.inlay.*`.
"""

from ._call import call as call

__all__ = []
