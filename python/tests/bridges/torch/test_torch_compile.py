"""`torch.compile(fullgraph=True)`, `torch.export` and TorchScript around Inlay's functions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from cases import OPERATIONS, Case
from torch_support import CASES, call, tensors_of, wants_gradient

import inlay
import inlay.torch

INDEX = torch.tensor([1, 3, 1])


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


def samples() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.rand(4, 3, requires_grad=True), torch.rand(3, 3, requires_grad=True)


def chosen() -> list[Any]:
    """Some cases of each operation that has tensors."""
    found = []
    for op in OPERATIONS:
        good = [
            case
            for case in CASES
            if case.op == op
            and case.tensors
            and case.error is None
            and case.dtype in ("", "float32")
        ]
        good.sort(key=lambda case: min(array.size for array in case.tensors.values()) < 2)
        found += [pytest.param(case, id=case.id) for case in good[:2]]
    return found


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", chosen())
def test_every_operation(case: Case, dynamic: bool) -> None:
    """The same result and the same gradients as without the compiler."""
    outcomes = []
    names = list(case.tensors)

    def run(*given: Any) -> Any:
        return call(case, dict(zip(names, given, strict=True)))

    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    for function in (run, compiled(run, dynamic=dynamic)):
        tensors = [
            tensor.requires_grad_(wants_gradient(tensor)) for tensor in tensors_of(case).values()
        ]
        result = function(*tensors)
        outcome = [result.detach()]
        if result.requires_grad:
            result.backward(torch.ones_like(result))
            outcome += [tensor.grad for tensor in tensors]
        outcomes.append(outcome)
    torch.testing.assert_close(*outcomes, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("case", [sample for sample in chosen() if sample.values[0].inplace])
@pytest.mark.parametrize("with_gradient", [False, True])
def test_every_in_place_form(case: Case, with_gradient: bool) -> None:
    outcomes = []
    names = list(case.tensors)
    first = names.index(case.inputs[0])

    def run(*given: Any) -> Any:
        target = given[first] * 1 if with_gradient else given[first]
        tensors = {**dict(zip(names, given, strict=True)), names[first]: target}
        result = call(case, tensors, in_place=True)
        assert result is target
        return target + target if wants_gradient(target) else target

    for function in (run, compiled(run)):
        tensors = list(tensors_of(case).values())
        if with_gradient:
            tensors = [tensor.requires_grad_(wants_gradient(tensor)) for tensor in tensors]
        result = function(*tensors)
        outcome = [result.detach(), *(tensor.detach() for tensor in tensors)]
        if result.requires_grad:
            result.backward(torch.ones_like(result))
            outcome += [tensor.grad for tensor in tensors]
        outcomes.append(outcome)
    torch.testing.assert_close(*outcomes, rtol=0, atol=0)


ARGUMENTS = {
    "keywords": lambda x, u: inlay.scatter(
        x, updates=u, index=INDEX, reduce="sum", overwrite=False
    ),
    "other names": lambda x, u: inlay.sum(x, dim=1, keepdims=True),
    "a list": lambda x, u: inlay.scatter(x, [2, 0, 1], u),
    "a number": lambda x, u: inlay.masked_fill(x, x > 0.5, 2),
    "a number first": lambda x, u: inlay.subtract(1.5, x),
    "a list of numbers": lambda x, u: inlay.add(x, [1, 2, 3.5]),
    "a list of flags": lambda x, u: inlay.masked_fill(x, [True, False, True], 0.0),
    "a list of tensors": lambda x, u: inlay.concat([x, u, x], axis=0),
    "integers one by one": lambda x, u: inlay.reshape(x, 2, 6),
    "sizes": lambda x, u: inlay.reshape(x, (x.shape[1], x.shape[0])),
    "bounds": lambda x, u: inlay.slice_scatter(x, u[:2], start=1, stop=None, step=2),
    "several axes": lambda x, u: inlay.slice_scatter(
        x, u[:2, :1], axis=[0, 1], start=[1, None], stop=[None, -2], step=[2, 1]
    ),
    "a dtype of torch": lambda x, u: inlay.cast(x, torch.float64),
    "the name of a dtype": lambda x, u: inlay.cast(x, "float64"),
    "a label": lambda x, u: inlay.scatter(x, INDEX, u, name="write"),
    "an axis of None": lambda x, u: inlay.sum(x, None),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    x, u = samples()
    torch.testing.assert_close(compiled(ARGUMENTS[name])(x, u), ARGUMENTS[name](x, u))


def test_arrays_of_numpy() -> None:
    x, _ = samples()
    array = np.ones((4, 3), np.float32)
    torch.testing.assert_close(compiled(lambda x, y: inlay.add(x, y))(x, array), x + 1)


def test_a_call_that_does_not_fit_gives_the_error_of_inlay() -> None:
    function = torch.compile(lambda x: inlay.add(x, 1.5), backend="aot_eager")
    with pytest.raises(TypeError, match="add: y is a float"):
        function(INDEX)


def test_arrays_alone_stay_arrays() -> None:
    def run(x: Any) -> Any:
        return x + float(inlay.sum(np.ones(3)))

    x, _ = samples()
    torch.testing.assert_close(torch.compile(run, backend="aot_eager")(x), x + 3)


def test_one_graph_for_several_sizes() -> None:
    counter = torch._dynamo.testing.CompileCounter()

    def run(x: Any, index: Any, updates: Any) -> Any:
        return inlay.scatter(x, index, updates, overwrite=False).sin()

    function = torch.compile(run, fullgraph=True, dynamic=True, backend=counter)
    for rows in (7, 9, 14):
        x, index, updates = torch.rand(rows, 3), torch.arange(rows - 1), torch.rand(rows - 1, 3)
        torch.testing.assert_close(function(x, index, updates), run(x, index, updates))
    assert counter.frame_count == 1


def test_training_step() -> None:
    """Forward, backward and optimizer: the same losses with and without the compiler."""

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            messages = self.linear(inlay.index_select(x, INDEX))
            zeros = torch.zeros_like(x)
            return inlay.scatter(zeros, INDEX, messages, overwrite=False, reduce="mean")

    x = torch.rand(4, 3)
    curves = []
    for compile_it in (False, True):
        layer = Layer()
        model = compiled(layer) if compile_it else layer
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = ((model(x) - 1) ** 2).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        curves.append(losses)
    assert curves[0][-1] < curves[0][0]
    np.testing.assert_allclose(*curves, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inductor() -> None:
    def run(x: Any, u: Any) -> Any:
        y = inlay.scatter(x.sin(), INDEX, u, overwrite=False, reduce="sum")
        y = y * 1
        inlay.slice_scatter_(y, u[:2], start=0, stop=2)
        return inlay.sum(y, 0) + inlay.diagonal(y).sum()

    x, u = samples()
    function = torch.compile(run, fullgraph=True)
    torch.testing.assert_close(function(x, u), run(x, u))
    function(x, u).sum().backward()
    got, x.grad = x.grad, None
    run(x, u).sum().backward()
    torch.testing.assert_close(got, x.grad)


def graph_of(function: Any, *args: Any) -> list[str]:
    """The names of the operations that a function calls after Inductor's passes."""
    from torch._inductor import config

    names: list[str] = []

    def look(graph: Any) -> None:
        names.extend(str(node.target) for node in graph.nodes if node.op == "call_function")

    with config.patch(post_grad_custom_post_pass=look, fx_graph_cache=False):
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True)
        torch.testing.assert_close(compiled(*args), function(*args), rtol=0, atol=0)
    return names


def test_a_chain_of_writes_becomes_one_call() -> None:
    mask, source = torch.tensor([True, False, True]), torch.arange(12.0)

    def run(x: Any, u: Any) -> Any:
        y = inlay.slice_scatter(x, u[:2], start=1, stop=3)
        y = inlay.diagonal_scatter(y, u[0])
        y = inlay.scatter(y, INDEX, u, overwrite=False, reduce="mean")
        return inlay.masked_scatter(y, mask, source)

    x, u = (each.detach() for each in samples())
    names = graph_of(run, x, u)
    assert [name for name in names if name.startswith("inlay")] == ["inlay.chain.default"]

    x, u = samples()
    got = torch.autograd.grad(torch.compile(run, fullgraph=True)(x, u).square().sum(), (x, u))
    expected = torch.autograd.grad(run(x, u).square().sum(), (x, u))
    torch.testing.assert_close(got, expected)


def test_a_result_that_is_used_again_ends_a_chain() -> None:
    def run(x: Any, u: Any) -> Any:
        y = inlay.tril(x)
        z = inlay.scatter(y, INDEX, u)
        return inlay.triu(inlay.slice_scatter(u, z[:2], stop=2)), y

    x, u = (each.detach() for each in samples())
    names = [name for name in graph_of(run, x, u) if name.startswith("inlay")]
    # The second call of the last chain takes its first input from elsewhere.
    assert names == ["inlay.tril.default", "inlay.scatter.default", "inlay.chain.default"]


@pytest.mark.parametrize(
    "run",
    [
        lambda x, u: inlay.transpose(inlay.tril(x), [1, 0]),
        lambda x, u: inlay.scatter(inlay.transpose(inlay.tril(x), [1, 0]), INDEX % 3, u.T[:3]),
        lambda x, u: inlay.diagonal(inlay.tril(x)),
        lambda x, u: inlay.broadcast_to(inlay.sum(x, 0), [5, 3]),
    ],
)
def test_the_result_of_a_chain_is_contiguous(run: Any) -> None:
    x, u = torch.rand(4, 3), torch.rand(4, 3)
    names = graph_of(run, x, u)
    assert "inlay.chain.default" in names
    assert torch.compile(run, fullgraph=True)(x, u).is_contiguous()


def test_a_chain_finds_the_errors_of_all_steps() -> None:
    def run(x: Any, index: Any) -> Any:
        return inlay.zeros_like(inlay.index_add(inlay.tril(x), index, 0, x[:1]))

    x = torch.rand(3, 3)
    compiled = torch.compile(run, fullgraph=True)
    torch.testing.assert_close(compiled(x, torch.tensor([1])), torch.zeros(3, 3))
    with pytest.raises(inlay.InlayIndexError, match=r"^index_add: index\[0\] is 9"):
        compiled(x, torch.tensor([9]))


def test_an_error_in_a_chain_names_the_operation() -> None:
    run = torch.compile(lambda x, i, u: inlay.tril(inlay.index_add(x, i, 0, u)), fullgraph=True)
    x, u = (each.detach() for each in samples())
    run(x, INDEX, u)
    with pytest.raises(inlay.InlayIndexError, match=r"^index_add: index\[0\] is 9, out of range"):
        run(x, INDEX * 0 + 9, u)


def test_kernels_raise_the_errors_of_inlay() -> None:
    x, u = (each.detach() for each in samples())
    with pytest.raises(inlay.InlayIndexError, match=r"^scatter: index\[0\] is 9, out of range"):
        torch.ops.inlay.scatter(x, INDEX * 0 + 9, u)
    with pytest.raises(inlay.InlayTypeError, match=r"^scatter: "):
        torch.ops.inlay.scatter(x, INDEX, u.double())


def test_kernels_record_above_autograd_and_not_below() -> None:
    x, u = samples()
    scatter = torch.ops.inlay.scatter
    result = scatter(x, INDEX, u, overwrite=False, include_self=True)
    assert result.grad_fn is not None
    (got,) = torch.autograd.grad(result, u, torch.ones_like(x))
    torch.testing.assert_close(got, torch.ones_like(u))
    with torch._C._AutoDispatchBelowAutograd():
        assert scatter(x, INDEX, u).grad_fn is None
    with torch.no_grad():
        assert scatter(x, INDEX, u).grad_fn is None


class Scatter(torch.nn.Module):
    def forward(self, x: Any, index: Any, updates: Any) -> Any:
        y = inlay.scatter(x, index, updates, overwrite=False)
        return inlay.masked_fill(y, y > 1, 0.0)


@pytest.mark.parametrize("strict", [False, True])
def test_export_with_dynamic_shapes(strict: bool) -> None:
    rows, count = torch.export.Dim("rows", min=2), torch.export.Dim("count", min=2)
    program = torch.export.export(
        Scatter(),
        (torch.rand(5, 3), torch.tensor([1, 4, 0]), torch.rand(3, 3)),
        dynamic_shapes=({0: rows}, {0: count}, {0: count}),
        strict=strict,
    )
    called = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "inlay.scatter.default" in called
    given = (torch.rand(9, 3), torch.tensor([8, 0, 8, 3]), torch.rand(4, 3))
    torch.testing.assert_close(program.module()(*given), Scatter()(*given))


def test_export_to_a_file(tmp_path: Any) -> None:
    given = (torch.rand(5, 3), torch.tensor([1, 4, 0]), torch.rand(3, 3))
    path = tmp_path / "scatter.pt2"
    torch.export.save(torch.export.export(Scatter(), given), path)
    torch.testing.assert_close(torch.export.load(path).module()(*given), Scatter()(*given))


def test_torchscript_calls_the_operations() -> None:
    source = """
def run(x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
    y = torch.ops.inlay.scatter(x, index, updates, False, 0, "sum", include_self=True)
    torch.ops.inlay.index_add_(y, index, 0, updates)
    return y
"""
    unit = torch.jit.CompilationUnit(source)
    x, u = samples()
    got = unit.run(x, INDEX, u)
    expected = x.index_add(0, INDEX, 2 * u)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(
        torch.autograd.grad(got.sum(), u), torch.autograd.grad(expected.sum(), u)
    )


def test_jit_trace_records_the_operation() -> None:
    x, u = samples()
    traced = torch.jit.trace(lambda x, u: inlay.scatter(x, INDEX, u), (x, u))
    assert "inlay::scatter" in str(traced.graph)
    torch.testing.assert_close(traced(x * 2, u), inlay.scatter(x * 2, INDEX, u))


ORDERS = {
    "torch first": "import torch, torch._dynamo, inlay",
    "torch first, Dynamo later": "import torch, inlay",
    "inlay first": "import inlay, torch",
    "inlay first, Dynamo at once": "import inlay, torch._dynamo, torch",
}


@pytest.mark.parametrize("order", ORDERS)
def test_order_of_imports(order: str) -> None:
    code = f"""
import sys
{ORDERS[order]}
f = torch.compile(lambda x: inlay.sum(x, 0), fullgraph=True, backend="aot_eager")
assert torch.equal(f(torch.ones(3, 2)), torch.full((2,), 3.0))
import torch._dynamo
assert type(torch._dynamo.__spec__.loader).__module__ != "inlay._torch_hook"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_inlay_does_not_import_torch() -> None:
    code = "import sys, inlay; inlay.zeros([2]); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
