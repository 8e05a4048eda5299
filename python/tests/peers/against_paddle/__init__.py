"""Inlay against the real Paddle, memory shared through DLPack.

Results agree bit for bit. Where Paddle is wrong or differs by choice, a test of its own shows what
each of them does and says why, so that it fails when Paddle changes. Where Paddle reads or writes
past its memory, the memory is the middle of a larger array, or the call is made in a process of its
own.
"""
