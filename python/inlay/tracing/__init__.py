"""Functions that are traced once and then run as programs: the decorator `jit`."""

from inlay.tracing.decorator import Jit, jit

__all__ = ["Jit", "jit"]
