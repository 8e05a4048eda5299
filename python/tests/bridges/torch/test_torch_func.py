"""The transforms of `torch.func`, modes and tracers: all see the operations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cases import Case
from torch._subclasses import FakeTensorMode
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch_support import WITH_TENSORS, call, tensors_of

import inlay


def samples() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    x, u = (torch.rand(4, 3, dtype=torch.float64, generator=generator) + 0.5 for _ in range(2))
    return {"x": x, "index": torch.tensor([1, 3, 1]), "updates": u[:3]}


def product(x: Any, index: Any, updates: Any) -> Any:
    """A function whose derivative depends on all inputs."""
    return inlay.scatter(x, index, updates, overwrite=False, reduce="mul", include_self=True)


def reference(x: Any, index: Any, updates: Any) -> Any:
    rows = list(x)
    for k, row in enumerate(index.tolist()):
        rows[row] = rows[row] * updates[k]
    return torch.stack(rows)


def loss(function: Any) -> Any:
    return lambda x, index, updates: (function(x, index, updates) ** 2).sum()


X, INDEX, UPDATES = samples().values()


@pytest.mark.parametrize("transform", [jacrev, jacfwd, hessian])
@pytest.mark.parametrize("argument", [0, 2])
def test_jacobians(transform: Any, argument: int) -> None:
    got = transform(product, argument)(X, INDEX, UPDATES)
    torch.testing.assert_close(got, transform(reference, argument)(X, INDEX, UPDATES))


def test_grad_of_grad_of_grad() -> None:
    def squared(inner: Any) -> Any:
        return lambda *given: (grad(inner)(*given) ** 2).sum()

    def third(function: Any) -> Any:
        return squared(squared(squared(loss(function))))(X, INDEX, UPDATES)

    torch.testing.assert_close(third(product), third(reference))


def test_grad_inside_of_autograd() -> None:
    results = []
    for function in (product, reference):
        x = X.clone().requires_grad_()
        inner = grad(loss(function), 2)(x, INDEX, UPDATES)
        results.append(torch.autograd.grad((inner**2).sum(), x)[0])
    torch.testing.assert_close(*results)


def test_vjp_and_jvp() -> None:
    for argument, tangent in ((0, torch.rand_like(X)), (2, torch.rand_like(UPDATES))):
        got, expected = [], []
        for function, into in ((product, got), (reference, expected)):

            def one(value: Any, argument: int = argument, function: Any = function) -> Any:
                given = [X, INDEX, UPDATES]
                given[argument] = value
                return function(*given)

            at = (X, INDEX, UPDATES)[argument]
            value, pull = vjp(one, at)
            into += [value, pull(torch.ones_like(value))[0], *jvp(one, (at,), (tangent,))]
        for a, b in zip(got, expected, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    "axes", [(0, None, None), (None, 0, None), (0, 0, 0), (1, None, -1), (None, None, 2)]
)
def test_vmap(axes: tuple[Any, ...]) -> None:
    given = []
    for tensor, axis in zip((X, INDEX, UPDATES), axes, strict=True):
        if axis is None:
            given.append(tensor)
        elif tensor.dtype.is_floating_point:
            given.append(torch.stack([tensor, tensor * 2, -tensor], axis))
        else:
            given.append(torch.stack([tensor, tensor.flip(0), tensor * 0], axis))
    batched = vmap(product, axes)(*given)
    for k in range(3):
        one = [t if a is None else t.select(a, k) for t, a in zip(given, axes, strict=True)]
        torch.testing.assert_close(batched[k], product(*one))


def test_vmap_of_vmap_of_grad() -> None:
    x = torch.rand(2, 5, 4, 3, dtype=torch.float64)
    got = vmap(vmap(grad(loss(product)), (0, None, None)), (0, None, None))(x, INDEX, UPDATES)
    for i in range(2):
        for j in range(5):
            torch.testing.assert_close(got[i, j], grad(loss(reference))(x[i, j], INDEX, UPDATES))


def test_in_place_under_vmap_and_grad() -> None:
    def write(x: Any, updates: Any) -> Any:
        target = x * 1
        assert inlay.scatter_(target, INDEX, updates, overwrite=False, reduce="mul") is target
        return (target**2).sum()

    def plain(x: Any, updates: Any) -> Any:
        return (inlay.scatter(x * 1, INDEX, updates, overwrite=False, reduce="mul") ** 2).sum()

    for argument in (0, 1):
        torch.testing.assert_close(
            grad(write, argument)(X, UPDATES), grad(plain, argument)(X, UPDATES)
        )
    x = torch.stack([X, 2 * X])
    torch.testing.assert_close(
        vmap(write, (0, None))(x, UPDATES), vmap(plain, (0, None))(x, UPDATES)
    )


def test_functional_call_of_a_module() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(UPDATES.clone())

        def forward(self, x: Any) -> Any:
            return product(x, INDEX, self.weight).sum()

    layer = Layer()
    parameters = dict(layer.named_parameters())
    got = grad(lambda p: functional_call(layer, p, (X,)))(parameters)["weight"]
    layer(X).backward()
    torch.testing.assert_close(got, layer.weight.grad)


CHOSEN = [
    case for case in WITH_TENSORS if case.error is None and case.dtype in ("", "float32", "int64")
]
# The shape of a result that is selected by a mask depends on its values.
SHAPED = [
    case
    for case in CHOSEN
    if case.op not in ("masked_select", "index_get")
    or all(array.dtype != bool for array in case.tensors.values())
]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_make_fx_records_one_operation(case: Case) -> None:
    tensors = tensors_of(case)
    names = list(tensors)
    graph = make_fx(lambda *given: call(case, dict(zip(names, given, strict=True))))(
        *tensors.values()
    )
    calls = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert calls.count(f"inlay.{case.op}.default") == 1
    torch.testing.assert_close(
        graph(*tensors.values()), call(case, tensors), rtol=0, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("case", SHAPED, ids=lambda case: case.id)
def test_fake_tensors(case: Case) -> None:
    expected = call(case, tensors_of(case))
    with FakeTensorMode() as mode:
        fakes = {name: mode.from_tensor(tensor) for name, tensor in tensors_of(case).items()}
        result = call(case, fakes)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    assert result.stride() == expected.stride()


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_make_fx_of_a_gradient(mode: str) -> None:
    graph = make_fx(vmap(grad(loss(product)), (0, None, None)), tracing_mode=mode)(
        torch.stack([X, X + 1]), INDEX, UPDATES
    )
    x = torch.stack([X, X * 2])
    expected = torch.stack([grad(loss(reference))(row, INDEX, UPDATES) for row in x])
    torch.testing.assert_close(graph(x, INDEX, UPDATES), expected)


def test_a_dispatch_mode_sees_the_operation() -> None:
    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Seen():
        product(X, INDEX, UPDATES)
        inlay.scatter_(X.clone(), INDEX, UPDATES)
    assert "inlay.scatter.default" in seen
    assert "inlay.scatter_.default" in seen


def test_batched_gradients() -> None:
    x = X.clone().requires_grad_()
    y = product(x, INDEX, UPDATES)
    seeds = torch.rand(5, *y.shape, dtype=torch.float64)
    (got,) = torch.autograd.grad(y, x, seeds, is_grads_batched=True, retain_graph=True)
    for k in range(5):
        torch.testing.assert_close(
            got[k], torch.autograd.grad(y, x, seeds[k], retain_graph=True)[0]
        )


def test_vectorized_jacobian_of_autograd() -> None:
    got = torch.autograd.functional.jacobian(
        lambda x: product(x, INDEX, UPDATES), X, vectorize=True
    )
    torch.testing.assert_close(got, jacrev(reference)(X, INDEX, UPDATES))


def test_functionalize() -> None:
    def write(x: Any) -> Any:
        target = x * 1
        inlay.scatter_(target, INDEX, UPDATES)
        return inlay.add(target, 1.0)

    got = torch.func.functionalize(write)(X)
    torch.testing.assert_close(got, write(X))
