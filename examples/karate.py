"""One graph network on four kinds of tensors: Inlay's own, PyTorch's, Paddle's and JAX's.

    python examples/karate.py [inlay|torch|paddle|jax]

A GCN of two layers finds the two sides of Zachary's karate club from two labelled members. The
network and its loss are written once. Only the descent differs, as each library has its own way to
ask for gradients. Without an argument, all libraries that are installed train side by side.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from karate_club import LABELLED, LABELS, MEMBERS, PAIRS, WENT_WITH_INSTRUCTOR

import inlay

# Messages go both ways along each pair of members who met.
SENDER, RECEIVER = np.concatenate((PAIRS, PAIRS[:, ::-1])).T
WIDTH, RATE, EPOCHS = 16, 0.1, 200


def aggregate(x: Any) -> Any:
    """Give each member the mean of its own row and its neighbours', in a tensor of x's type."""
    messages = inlay.index_select(x, SENDER)
    return inlay.scatter(x, RECEIVER, messages, overwrite=False, reduce="mean", include_self=True)


def relu(x: Any) -> Any:
    return inlay.where(x > 0, x, 0)


def matmul(x: Any, y: Any) -> Any:
    """The product of two matrices, which Inlay's own tensors spell out: they have no `@`."""
    return (x[:, :, None] * y[None]).sum(axis=1) if isinstance(x, inlay.Tensor) else x @ y


def network(first: Any, second: Any) -> Any:
    """One score for each member: above 0 is the instructor's side.

    The features are one-hot, so their product with the first layer's weights is those weights.
    """
    hidden = relu(aggregate(first))
    return aggregate(matmul(hidden, second))


def loss_of(first: Any, second: Any) -> Any:
    """The squared error of the labelled members."""
    error = inlay.subtract(inlay.index_select(network(first, second), LABELLED), LABELS)
    return (error * error).mean()


def initial() -> list[np.ndarray]:
    """The weights of both layers in float64, the same for all libraries."""
    random = np.random.default_rng(0)
    scales = {(MEMBERS, WIDTH): 0.1, (WIDTH, 1): WIDTH**-0.5}
    return [random.normal(0, scale, shape) for shape, scale in scales.items()]


# Each descent gives the loss and the weights before each step.
Descent = Iterator[tuple[float, list[Any]]]


def descend_inlay() -> Descent:
    weights = [inlay.to_tensor(weight, stop_gradient=False) for weight in initial()]
    while True:
        loss = loss_of(*weights)
        yield loss.item(), weights
        gradients = inlay.grad(loss, weights)
        with inlay.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight[...] = weight - RATE * gradient


def descend_torch() -> Descent:
    import torch

    weights = [torch.tensor(weight, requires_grad=True) for weight in initial()]
    optimizer = torch.optim.SGD(weights, lr=RATE)
    while True:
        loss = loss_of(*weights)
        yield loss.item(), weights
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def descend_paddle() -> Descent:
    import paddle

    weights = [paddle.to_tensor(weight, stop_gradient=False) for weight in initial()]
    optimizer = paddle.optimizer.SGD(RATE, parameters=weights)
    while True:
        loss = loss_of(*weights)
        yield loss.item(), weights
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()


def descend_jax() -> Descent:
    import jax

    jax.config.update("jax_enable_x64", True)  # JAX has 32 bits by default
    compiled = jax.jit(jax.value_and_grad(loss_of, argnums=(0, 1)))
    weights = [jax.numpy.asarray(weight) for weight in initial()]
    while True:
        loss, gradients = compiled(*weights)
        yield loss.item(), weights
        weights = [w - RATE * g for w, g in zip(weights, gradients, strict=True)]


DESCENTS = {
    "inlay": descend_inlay,
    "torch": descend_torch,
    "paddle": descend_paddle,
    "jax": descend_jax,
}


def train(library: str, epochs: int = EPOCHS) -> tuple[list[float], int]:
    """The loss before each epoch and after the last, and how many members are right in the end."""
    steps = list(islice(DESCENTS[library](), epochs + 1))
    losses, weights = [loss for loss, _ in steps], steps[-1][1]
    scores = np.asarray(network(*weights).tolist())[:, 0]
    return losses, int(np.sum((scores > 0) == WENT_WITH_INSTRUCTOR))


def main() -> None:
    libraries = sys.argv[1:] or [name for name in DESCENTS if importlib.util.find_spec(name)]
    if len(sys.argv) > 2 or not set(libraries) <= set(DESCENTS):
        sys.exit(f"usage: python examples/karate.py [{'|'.join(DESCENTS)}]")
    curves, rights = zip(*(train(library) for library in libraries), strict=True)
    print("epoch", *(f"{library:>22}" for library in libraries))
    for epoch in range(0, EPOCHS + 1, 20):
        print(f"{epoch:5}", *(f"{curve[epoch]:22.16f}" for curve in curves))
    print("right", *(f"{f'{right} of {MEMBERS}':>22}" for right in rights))
    if len(libraries) > 1:
        apart = np.ptp(curves, axis=0).max()
        print(f"\nThe curves are at most {apart:.1e} apart.")


if __name__ == "__main__":
    main()
