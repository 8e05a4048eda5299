"""Tensors that Inlay can't read or write: each error says why, and how to go on."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import inlay
import inlay.torch

INDEX = torch.tensor([1, 0])
VALUES = torch.ones(2, 3)


def nested() -> Any:
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])


def resized() -> Any:
    tensor = torch.ones(4, 3)
    tensor.untyped_storage().resize_(0)
    return tensor


BAD = {
    "sparse": (lambda: torch.ones(4, 3).to_sparse(), "sparse_coo", "to_dense"),
    "csr": (lambda: torch.ones(4, 3).to_sparse_csr(), "sparse_csr", "to_dense"),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.qint8),
        "quantized",
        "dequantize",
    ),
    "nested": (nested, "nested", "to_padded_tensor"),
    "meta": (lambda: torch.ones(4, 3, device="meta"), "meta tensor", "CPU"),
    "float8": (
        lambda: torch.ones(4, 3).to(torch.float8_e4m3fn),
        "float8_e4m3fn",
        "to(torch.float32)",
    ),
    "resized": (resized, "storage", "resized"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("in_place", [False, True])
def test_each_kind(kind: str, place: int, in_place: bool) -> None:
    make, *words = BAD[kind]
    given = [torch.zeros(4, 3), INDEX, VALUES]
    given[place] = make()
    function = inlay.scatter_ if in_place else inlay.scatter
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*given)
    for word in ("scatter", *words):
        assert word in str(caught.value)
    assert torch.equal(VALUES, torch.ones(2, 3))
    if place == 2:
        assert torch.equal(given[0], torch.zeros(4, 3))


def test_other_devices() -> None:
    """There is no such device here, so the sentence itself is checked."""
    from inlay.torch import _checks

    class Elsewhere:
        is_nested = is_quantized = False
        layout = torch.strided
        device = torch.device("cuda:1")

    text = _checks._problem(Elsewhere())
    assert "cuda:1" in text
    assert ".cpu()" in text


def test_conjugate_and_negative_views_are_read_right() -> None:
    z = torch.complex(torch.rand(4, 3), torch.rand(4, 3))
    for view in (z.conj(), z.conj().imag, torch._neg_view(z), z.mH.mT.real):
        plain = view.resolve_conj().resolve_neg().clone()
        values = torch.ones(2, 3, dtype=view.dtype)
        assert torch.equal(inlay.scatter(view, INDEX, values), inlay.scatter(plain, INDEX, values))
        target = torch.zeros(4, 3, dtype=view.dtype)
        expected = inlay.scatter(target, INDEX, plain[:2])
        assert torch.equal(inlay.scatter_(target, INDEX, view[:2]), expected)
        view = view.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(inlay.multiply(view, view).sum().abs(), view)
        assert torch.isfinite(
            torch.view_as_real(gradient) if gradient.is_complex() else gradient
        ).all()


def test_conjugate_and_negative_views_are_not_written() -> None:
    z = torch.complex(torch.rand(4, 3), torch.rand(4, 3))
    for view, word in ((z.conj(), "conjugate"), (z.conj().imag, "negative")):
        before = view.clone()
        with pytest.raises(ValueError, match=f"scatter_: x is a view with the {word} bit"):
            inlay.scatter_(view, INDEX, torch.ones(2, 3, dtype=view.dtype))
        assert torch.equal(view, before)


def test_zero_tensors() -> None:
    zero = torch._efficientzerotensor((4, 3))
    assert torch.equal(inlay.add(zero, 1.0), torch.ones(4, 3))


def test_inlays_tensors_beside_torch_tensors() -> None:
    ours = inlay.to_tensor(np.ones((2, 3), np.float32))
    result = inlay.scatter(torch.zeros(4, 3), INDEX, ours)
    assert type(result) is torch.Tensor
    assert result.sum() == 6


def test_a_tensor_of_a_transform_that_has_ended() -> None:
    kept = []
    torch.vmap(lambda x: kept.append(x) or x)(torch.rand(2, 3))
    with pytest.raises((TypeError, RuntimeError)):
        inlay.add(kept[0], 1.0)


class Labelled(torch.Tensor):
    """A subclass without a protocol of its own."""


class Logging(torch.Tensor):
    seen: list[Any] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_gives_its_subclass() -> None:
    x = torch.zeros(4, 3).as_subclass(Labelled)
    result = inlay.scatter(x, INDEX, VALUES)
    assert type(result) is Labelled
    assert inlay.scatter_(x, INDEX, VALUES) is x
    assert torch.equal(x, result)


def test_the_protocol_of_a_subclass() -> None:
    x = torch.zeros(4, 3).as_subclass(Logging)
    assert type(inlay.scatter(x, INDEX, VALUES)) is Logging
    assert inlay.scatter in Logging.seen


def test_a_function_mode_sees_the_function() -> None:
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.zeros(4, 3)
    for function in (inlay.scatter, inlay.scatter_):
        seen.clear()
        with Mode():
            function(x, INDEX, VALUES)
        assert seen[0] is function


FIRST_TENSOR = """
import gc, weakref
import torch, inlay
x = {make}
{attribute}
inlay.add(x, 1.0)
seen = weakref.ref(x)
del x
gc.collect()
negative = torch._neg_view(torch.ones(3))
print(seen() is None, inlay.add(negative, 1.0).tolist())
"""


@pytest.mark.parametrize("make", ["torch.ones(3)", "torch.nn.Parameter(torch.ones(3))"])
@pytest.mark.parametrize("attribute", ["", "x.is_neg = x.numel", "x.is_neg = ''.isascii"])
def test_the_first_tensor_of_a_process(make: str, attribute: str) -> None:
    """It is freed, and what it has under the name of a method does not matter for others."""
    code = FIRST_TENSOR.format(make=make, attribute=attribute)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1) == ["True", "[0.0, 0.0, 0.0]\n"]


def test_a_method_that_is_replaced() -> None:
    """The class of a process that has replaced it is asked by its name."""
    code = (
        "import torch, inlay\n"
        "own = torch.Tensor.is_neg\n"
        "torch.Tensor.is_neg = lambda self: own(self)\n"
        "print(inlay.add(torch._neg_view(torch.ones(3)), 1.0).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0.0, 0.0, 0.0]\n"


def test_arrays_of_another_byte_order_beside_tensors() -> None:
    swapped = np.arange(6, dtype=">f4").reshape(2, 3)
    result = inlay.scatter(torch.zeros(4, 3), INDEX, swapped)
    assert result[:2].tolist() == [[3, 4, 5], [0, 1, 2]]


def test_a_default_device_does_not_matter() -> None:
    with torch.device("cpu"):
        assert inlay.scatter(torch.zeros(4, 3), INDEX, VALUES).sum() == 6


def test_wrapper_subclasses_go_through_their_dispatch() -> None:
    two = pytest.importorskip("torch.testing._internal.two_tensor")
    x = two.TwoTensor(torch.zeros(4, 3), torch.ones(4, 3))
    result = inlay.scatter(x, INDEX, VALUES)
    assert type(result) is two.TwoTensor
    assert torch.equal(result.a, inlay.scatter(torch.zeros(4, 3), INDEX, VALUES))
    assert torch.equal(result.b, inlay.scatter(torch.ones(4, 3), INDEX, VALUES))


def test_buffers_and_parameters() -> None:
    for make in (torch.nn.Parameter, torch.nn.Buffer):
        x = make(torch.zeros(4, 3))
        result = inlay.scatter(x, INDEX, VALUES)
        assert type(result) is torch.Tensor
        assert result.requires_grad == x.requires_grad


def test_install_and_uninstall() -> None:
    own = torch.Tensor.index_add
    names = inlay.torch.install()
    try:
        assert {"slice_scatter_", "diagonal_scatter_", "select_scatter_", "put_along_axis"} <= set(
            names
        )
        assert torch.Tensor.index_add is own
        assert inlay.torch.install() == names
        x = torch.zeros(4, 3)
        assert x.diagonal_scatter_(torch.ones(3)) is x
        assert x.sum() == 3
        assert x.cast("float64").dtype is torch.float64
    finally:
        inlay.torch.uninstall()
    assert not any(hasattr(torch.Tensor, name) for name in names)
    inlay.torch.uninstall()
