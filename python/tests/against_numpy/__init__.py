"""Inlay against the real NumPy, on every operation that NumPy can express.

Shapes of every rank from 0 to 6, in memory of every kind: transposed, backwards, with gaps, off its
alignment, stretched over one element. Each call is made with arrays and with tensors, and in place
where there is a twin that writes. Results agree bit for bit. Where NumPy differs by choice, a test
shows what each of them does and says why.
"""
