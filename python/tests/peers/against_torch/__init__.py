"""Inlay against the real PyTorch, memory shared through DLPack.

Results must agree bit by bit. If PyTorch is wrong or differs by design, a separate test shows the
results of both and gives the reason, so that it fails when PyTorch changes. Comments on differences
by design start with "By choice".
"""
