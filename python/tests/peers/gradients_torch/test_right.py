"""Cases in which PyTorch is correct: gradients of pairs of functions, to second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gradcheck import Draw, leaf, random_like
from gradient_pairs import Function

import inlay

from .pairs import ignores_beta, pair

pytestmark = ignores_beta


def of_torch(function: Function, arrays: list[np.ndarray], seed: np.ndarray, weights: Any) -> Any:
    tensors = [torch.tensor(array, requires_grad=True) for array in [*arrays, seed]]
    y = function(*tensors[:-1])
    first = torch.autograd.grad(y, tensors[:-1], tensors[-1], create_graph=True)
    weights = [torch.tensor(weight) for weight in weights]
    second = torch.autograd.grad(first, tensors, weights, allow_unused=True)
    second = [
        t.new_zeros(t.shape) if g is None else g for g, t in zip(second, tensors, strict=True)
    ]
    return (
        y.detach(),
        [g.detach().resolve_conj() for g in first],
        [g.resolve_conj() for g in second],
    )


def of_inlay(function: Function, arrays: list[np.ndarray], seed: np.ndarray, weights: Any) -> Any:
    tensors = [leaf(array) for array in [*arrays, seed]]
    y = function(*tensors[:-1])
    first = inlay.grad(y, tensors[:-1], grad_outputs=[tensors[-1]], create_graph=True)
    second = inlay.grad(first, tensors, grad_outputs=weights, allow_unused=True)
    second = [
        np.zeros(t.shape) if g is None else g.numpy() for g, t in zip(second, tensors, strict=True)
    ]
    return y, first, second


@pair.each()
def test_gradients_are_those_of_pytorch(name: str, dtype: str) -> None:
    for k in range(12):
        draw = Draw((name, dtype, k), dtype, zero_size=k % 4 == 3)
        arrays, ours, theirs = pair.makes[name](draw)
        seed = random_like(ours(*map(inlay.to_tensor, arrays)).numpy(), draw.rng)
        weights = [random_like(array, draw.rng) for array in arrays]
        y, first, second = of_inlay(ours, arrays, seed, weights)
        peer_y, peer_first, peer_second = of_torch(theirs, arrays, seed, weights)
        np.testing.assert_allclose(y.numpy(), peer_y.numpy(), rtol=1e-12, atol=1e-12)
        for got, expected in zip(first, peer_first, strict=True):
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-9, atol=1e-9)
        for got, expected in zip(second, peer_second, strict=True):
            np.testing.assert_allclose(got, expected.numpy(), rtol=1e-9, atol=1e-9)
