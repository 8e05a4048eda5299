"""Inlay against the real PyTorch, memory shared through DLPack.

Results agree bit for bit. Where PyTorch is wrong or differs by choice, a test of its own shows what
each of them does and says why, so that it fails when PyTorch changes.
"""
