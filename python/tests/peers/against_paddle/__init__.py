"""Inlay against the real Paddle, memory shared through DLPack.

Results must agree bit by bit. If Paddle is wrong or differs by design, a separate test shows the
results of both and gives the reason, so that it fails when Paddle changes. If Paddle reads or
writes past its memory, the memory is the middle of a larger array, or the call runs in a separate
process.
"""
