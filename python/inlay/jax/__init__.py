"""Operations of Inlay on JAX arrays: eager, compiled, differentiated and batched.

Nothing here needs to be called. `inlay.scatter(x, index, updates)` and every other operation take
JAX arrays and tracers, and return JAX arrays. Importing this package registers Inlay with XLA,
which the first such call does. Import it before running a program that was compiled elsewhere.
"""

from inlay.jax.calls import call
from inlay.jax.registration import register

__all__ = ["call"]

register()
