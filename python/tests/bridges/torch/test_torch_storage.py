"""Storages that are smaller than their tensors, shared until written, or replaced during a call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

import inlay
import inlay.torch

SIZES = [4, 300]

CALLS: dict[str, Callable[..., Any]] = {
    "scatter": lambda x, index, mask, values: inlay.scatter(x, index, values),
    "scatter_": lambda x, index, mask, values: inlay.scatter_(x, index, values),
    "index_select": lambda x, index, mask, values: inlay.index_select(x, index),
    "masked_scatter": lambda x, index, mask, values: inlay.masked_scatter(x, mask, values),
    "masked_fill_": lambda x, index, mask, values: inlay.masked_fill_(x, mask, 1.0),
    "add": lambda x, index, mask, values: inlay.add(x, values),
    "sum": lambda x, index, mask, values: inlay.sum(x),
    "concat": lambda x, index, mask, values: inlay.concat([x, values]),
    "index_put": lambda x, index, mask, values: inlay.index_put(x, (index,), values),
    "ops": lambda x, index, mask, values: torch.ops.inlay.scatter(x, index, values),
}
# The calls that use each argument.
USES = {
    "x": [*CALLS],
    "index": ["scatter", "scatter_", "index_select", "index_put", "ops"],
    "mask": ["masked_scatter", "masked_fill_"],
    "values": ["scatter", "scatter_", "masked_scatter", "add", "concat", "index_put", "ops"],
}


def arguments(size: int) -> dict[str, torch.Tensor]:
    return {
        "x": torch.zeros(size, size),
        "index": torch.arange(size),
        "mask": torch.ones(size, size, dtype=torch.bool),
        "values": torch.ones(size, size),
    }


def shorten(tensor: torch.Tensor) -> None:
    """Take the last byte of a tensor's storage away."""
    tensor.untyped_storage().resize_(tensor.untyped_storage().nbytes() - 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("call", "short"), [(call, name) for name in USES for call in USES[name]])
def test_a_storage_that_is_too_short(call: str, short: str, size: int) -> None:
    given = arguments(size)
    shorten(given[short])
    before = {name: tensor.flatten()[:-1].clone() for name, tensor in given.items()}
    with pytest.raises(TypeError, match="storage is smaller than its shape"):
        CALLS[call](**given)
    for name, tensor in given.items():
        assert torch.equal(tensor.flatten()[:-1], before[name])


@pytest.mark.parametrize("size", SIZES)
def test_from_dlpack(size: int) -> None:
    tensor = torch.ones(size)
    shorten(tensor)
    with pytest.raises(TypeError, match="storage is smaller than its shape"):
        inlay.from_dlpack(tensor)


def test_views_of_a_short_storage() -> None:
    """Views within the storage are read, and others are not, whatever their offset and strides."""
    base = torch.arange(12.0).reshape(4, 3)
    views = {
        "first rows": (base[:3], True),
        "last row": (base[3:], False),
        "last columns": (base[:, 1:], False),
        "first column": (base[:, 0], True),
        "transposed": (base.T, False),
        "first row, expanded": (base[0].expand(5, 3), True),
        "last row, expanded": (base[3].expand(5, 3), False),
        "nothing": (base[4:], True),
    }
    shorten(base)
    for name, (view, is_inside) in views.items():
        if is_inside:
            assert inlay.add(view, 1.0).tolist() == (view + 1).tolist(), name
        else:
            with pytest.raises(TypeError, match="storage is smaller than its shape"):
                inlay.add(view, 1.0)


def test_gradients_with_a_short_storage() -> None:
    """A saved tensor, or the gradient itself."""
    x, index = torch.ones(4, 3, requires_grad=True), torch.tensor([1, 0])
    y = inlay.index_select(x, index)
    shorten(index)
    with pytest.raises(TypeError, match="storage is smaller than its shape"):
        y.backward(torch.ones(2, 3))
    y = inlay.index_select(x, torch.tensor([1, 0]))
    grad = torch.ones(2, 3)
    shorten(grad)
    with pytest.raises(TypeError, match="storage is smaller than its shape"):
        y.backward(grad)


def test_empty_tensors_need_no_storage() -> None:
    empty = torch.ones(0, 3)
    empty.untyped_storage().resize_(0)
    assert inlay.add(empty, 1.0).shape == (0, 3)
    assert inlay.scatter_(torch.zeros(4, 3), torch.ones(0, dtype=torch.int64), empty).sum() == 0


def test_memory_that_is_shared_until_it_is_written() -> None:
    """A read leaves it shared. A write gives the target memory of its own."""
    first = torch.zeros(4, 3)
    second = torch._lazy_clone(first)
    assert inlay.add(second, 1.0).sum() == 12
    assert torch._C._is_cow_tensor(second)
    inlay.scatter_(second, torch.tensor([1]), torch.ones(1, 3))
    assert (first.sum(), second.sum()) == (0, 3)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_first_tensor_of_a_process(device: str) -> None:
    """It shows where the tensor of C++ is in the object, also if it has no memory itself."""
    code = (
        "import torch, inlay\n"
        f"first = torch.ones(3, device={device!r})\n"
        "try: print(inlay.add(first, 1.0).tolist())\n"
        "except TypeError as error: print(error)\n"
        "print(inlay.add(torch.ones(3), 1.0).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = {"cpu": "[2.0, 2.0, 2.0]", "meta": "add: a meta tensor has no elements"}[device]
    assert done.stdout.startswith(expected)
    assert done.stdout.endswith("[2.0, 2.0, 2.0]\n")


def test_without_the_c_functions() -> None:
    """An older torch does not have all of them. Its tensors are imported, with the same checks."""
    code = """
import torch, inlay, inlay._bridge
def missing(torch): raise AttributeError("torch_has_storage")
inlay._bridge.libtorch = missing
x = torch.zeros(4, 3, requires_grad=True)
y = inlay.scatter(x, torch.tensor([1]), torch.ones(1, 3))
y.sum().backward()
print(int(y.sum()), int(x.grad.sum()))
inlay.scatter_(z := torch.zeros(4, 3), torch.tensor([1]), torch.ones(1, 3))
print(int(z.sum()))
z.untyped_storage().resize_(47)
try: inlay.add(z, 1.0)
except TypeError as error: print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second, third = done.stdout.splitlines()
    assert (first, second) == ("3 9", "3")
    assert "storage is smaller than its shape" in third


def test_other_memory_during_a_call() -> None:
    """A call reads the memory that its argument had when it began, and the memory stays."""
    x, index = torch.full((5000,), 3.0), torch.arange(4_000_000) % 5000
    ended = threading.Event()

    def replace() -> None:
        while not ended.is_set():
            x.data = torch.full((5000,), 3.0)
            # They take the memory that was freed, if it was.
            for _ in range(64):
                torch.full((5000,), 7.0)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(20):
            assert bool((inlay.index_select(x, index) == 3).all())
    finally:
        ended.set()
        thread.join()


RESIZED = """
import threading, time, torch, inlay, inlay.torch
calls = {{
    "read": lambda x, index: inlay.index_select(x, index),
    "write": lambda x, index: inlay.scatter_(x, index, torch.full((1,), 3.0).expand(len(index))),
    "list": lambda x, index: inlay.concat([x, inlay.index_select(x, index)]),
    "gradient": lambda x, index: (
        inlay.index_select(x.detach().requires_grad_(), index).backward(x[0].expand(len(index)))
    ),
    "ops": lambda x, index: torch.ops.inlay.index_select(x, index),
    "own": lambda x, index: inlay.scatter_(inlay.zeros([5000]), index, inlay.ones([len(index)])),
}}
raised = 0
for _ in range(20):
    x, index = torch.full((5000,), 3.0), {index}
    begun = threading.Event()
    def resize():
        begun.wait()
        time.sleep(0.002)
        {resized}.untyped_storage().resize_({resized}.untyped_storage().nbytes() * 2)
    thread = threading.Thread(target=resize)
    thread.start()
    begun.set()
    try:
        calls[{call!r}](x, index)
    except RuntimeError as error:
        assert "another thread resized a tensor during the call" in str(error), error
        raised += 1
    thread.join()
print(raised)
"""


@pytest.mark.parametrize(
    ("call", "resized"),
    [
        ("read", "x"),
        ("read", "index"),
        # A call that writes into freed memory could end the process.
        ("write", "index"),
        ("list", "x"),
        ("gradient", "index"),
        ("ops", "x"),
        ("own", "index"),
    ],
)
def test_a_tensor_that_is_resized_during_a_call(call: str, resized: str) -> None:
    """The memory is freed, which nobody can prevent. The call says so."""
    code = RESIZED.format(call=call, resized=resized, index="(torch.arange(8_000_000) % 5000)")
    # Freed memory stays mapped, or the process would end.
    environment = os.environ | {
        "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0
