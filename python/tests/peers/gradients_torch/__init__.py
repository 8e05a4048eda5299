"""Gradients against the real PyTorch: equal where it is right, and a table of where it is not.

Each entry of the table shows what PyTorch gives and what Inlay gives, with the right value derived
by hand, so that it fails when PyTorch changes.
"""
