"""Gradients against the real PyTorch: equal if PyTorch is correct, and tests of its errors.

Each test of an error shows the results of PyTorch and of Inlay, with the correct value derived by
hand, so that it fails when PyTorch changes.
"""
