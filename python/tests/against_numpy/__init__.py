"""Inlay against NumPy, for every operation that NumPy can express.

Shapes have ranks from 0 to 6. Memory is transposed, reversed, strided, unaligned, or broadcast.
Each call is made with arrays and with tensors, and in place if there is an in-place form. Results
must be equal bit by bit. If Inlay differs from NumPy by design, a test shows both results and gives
the reason. Such comments start with "By choice".
"""
