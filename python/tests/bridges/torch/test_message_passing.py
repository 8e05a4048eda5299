"""Tests Inlay as the aggregation of PyTorch Geometric's layers."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from karate_curves import example

import inlay

if importlib.util.find_spec("torch_geometric") is None:
    pytest.skip("needs PyTorch Geometric", allow_module_level=True)

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", ".torch.jit.script. is deprecated", FutureWarning)
    passing = example("message_passing")
from torch_geometric.nn import aggr

OWN = {
    "sum": aggr.SumAggregation,
    "mean": aggr.MeanAggregation,
    "amax": aggr.MaxAggregation,
    "amin": aggr.MinAggregation,
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads only cost time with 34 members, and much of it on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """The reductions that the layers ask Inlay for."""
    made: list[str] = []
    scatter = inlay.scatter

    def recording(*arguments, reduce, **options):
        made.append(reduce)
        return scatter(*arguments, reduce=reduce, **options)

    monkeypatch.setattr(inlay, "scatter", recording)
    return made


@pytest.mark.parametrize("name", passing.LAYERS)
def test_a_network_has_the_losses_of_their_own_aggregation(name, calls) -> None:
    layer, reduce = passing.LAYERS[name]
    theirs, right_with_theirs = passing.train(layer, reduce, 100)
    assert not calls
    ours, right_with_ours = passing.train(layer, passing.InlayAggregation(reduce), 100)
    assert calls == [reduce] * 200
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)  # in float32
    assert ours[-1] < ours[0] / 2, "the network learns"
    assert right_with_ours == right_with_theirs


@pytest.mark.parametrize("shape", [(40, 3), (2, 40, 3)])
@pytest.mark.parametrize("reduce", OWN)
def test_gradients_are_those_of_their_own_aggregation(rng, reduce, shape) -> None:
    index = torch.from_numpy(rng.integers(0, 8, 40))
    # Few values: many messages share the maximum. Two nodes of ten have no message. No value is 0,
    # as torch would share the gradient of a maximum with the base that it excluded.
    values = rng.integers(1, 5, shape).astype(float)
    upstream = torch.from_numpy(rng.normal(size=(*shape[:-2], 10, 3)))
    results = []
    for aggregation in (OWN[reduce](), passing.InlayAggregation(reduce)):
        x = torch.tensor(values, requires_grad=True)
        made = aggregation(x, index, dim_size=10)
        (gradient,) = torch.autograd.grad(made, x, upstream)
        results.append((made.detach(), gradient))
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_a_layer_compiles_without_breaks(reduce) -> None:
    torch.manual_seed(0)
    layer = passing.SAGEConv(5, 3, aggr=passing.InlayAggregation(reduce))
    x, edges = torch.randn(6, 5), torch.tensor([[0, 1, 5, 2], [1, 0, 1, 3]])
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, edges), layer(x, edges))
