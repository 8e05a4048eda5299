"""Inlay's operations for PyTorch: on its tensors, in its autograd, under its compiler.

Nothing here needs to be called: `inlay.scatter(x, index, updates)` works on torch tensors.
Importing this module registers the operations as `torch.ops.inlay.*`.

>>> import torch, inlay
>>> x = torch.zeros(3, requires_grad=True)
>>> inlay.scatter(x, torch.tensor([2, 0]), torch.tensor([1., 2.])).sum().backward()
>>> x.grad
tensor([0., 1., 0.])
"""

from ._call import call as call
from ._methods import install, uninstall
from ._recorded import record as record

__all__ = ["install", "uninstall"]
