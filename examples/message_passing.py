"""Inlay as the aggregation of PyTorch Geometric's layers.

    python examples/message_passing.py        # needs torch and torch_geometric

`MessagePassing`, the base of PyTorch Geometric's layers, gathers messages along the edges of a
graph and hands them to an `Aggregation`. The class below is one that calls `inlay.scatter`; any
layer takes it as `aggr`. Two networks train on the karate club, with PyTorch Geometric's own
aggregation and with this one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch_geometric.datasets import KarateClub
from torch_geometric.nn import Aggregation, GCNConv, MessagePassing, SAGEConv
from torch_geometric.utils import add_self_loops

import inlay

WIDTH, RATE, EPOCHS = 16, 0.5, 200
Layer = Callable[..., MessagePassing]
# PyTorch Geometric's layers, unchanged, and how they reduce.
LAYERS: dict[str, tuple[Layer, str]] = {
    "GCNConv": (GCNConv, "sum"),
    "SAGEConv": (partial(SAGEConv, root_weight=False), "mean"),
}


class InlayAggregation(Aggregation):
    """Reduces the messages of each node by `inlay.scatter`; a node without messages is 0.

    `reduce` is "sum", "mean", "mul", "amax" or "amin".
    """

    def __init__(self, reduce: str = "mean") -> None:
        super().__init__()
        self.reduction = reduce

    def forward(
        self,
        x: torch.Tensor,
        index: torch.Tensor | None = None,
        ptr: torch.Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> torch.Tensor:
        """One row for each of `dim_size` nodes, from the messages in x to the nodes in index."""
        self.assert_index_present(index)
        shape = list(x.shape)
        shape[dim] = dim_size
        nodes = x.new_zeros(shape)
        return inlay.scatter(nodes, index, x, overwrite=False, axis=dim, reduce=self.reduction)


class Network(torch.nn.Module):
    """Two layers with a chosen aggregation."""

    def __init__(self, layer: Layer, aggr: str | Aggregation, features: int, classes: int) -> None:
        super().__init__()
        self.first = layer(features, WIDTH, aggr=aggr)
        self.second = layer(WIDTH, classes, aggr=aggr)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """A score of each node for each class."""
        return self.second(self.first(x, edges).relu(), edges)


def train(layer: Layer, aggr: str | Aggregation, epochs: int = EPOCHS) -> tuple[list[float], float]:
    """The loss before each epoch, and the share of the members that are right before the last.

    One member of each of the four communities is labelled.
    """
    club = KarateClub()
    graph = club[0]
    edges, _ = add_self_loops(graph.edge_index)
    torch.manual_seed(0)
    network = Network(layer, aggr, club.num_features, club.num_classes)
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    losses = []
    for _ in range(epochs):
        scores = network(graph.x, edges)
        told = graph.train_mask
        loss = torch.nn.functional.cross_entropy(scores[told], graph.y[told])
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses, (scores.argmax(dim=1) == graph.y).double().mean().item()


def main() -> None:
    for name, (layer, reduce) in LAYERS.items():
        own, right = train(layer, reduce)
        ours, ours_right = train(layer, InlayAggregation(reduce))
        print(f"{name}, {reduce}\nepoch   PyG        Inlay")
        for epoch in range(0, EPOCHS, 20):
            print(f"{epoch:5}   {own[epoch]:.6f}   {ours[epoch]:.6f}")
        print(f"right   {right:8.0%}   {ours_right:8.0%}\n")


if __name__ == "__main__":
    main()
