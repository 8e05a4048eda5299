"""Storages that are smaller than their tensors, shared until written, or replaced during a call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
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


def free(tensor: torch.Tensor) -> None:
    """Take all bytes of a tensor's storage away."""
    tensor.untyped_storage().resize_(0)


class Subclass(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


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


@pytest.mark.parametrize("call", CALLS)
def test_a_storage_that_was_freed(call: str) -> None:
    given = arguments(4)
    free(given["x"])
    with pytest.raises(TypeError, match="storage is smaller than its shape"):
        CALLS[call](**given)


READS: dict[str, Callable[[Any], Any]] = {
    "from_dlpack": inlay.from_dlpack,
    "to_tensor": inlay.to_tensor,
    "operator": lambda x: inlay.ones(list(x.shape)) + x,
    "argument": lambda x: inlay.scatter_(inlay.ones([len(x)]), list(range(len(x))), x),
    "jit": inlay.jit(lambda x: inlay.add(x, 1.0)),
    "vmap": torch.vmap(lambda x: inlay.add(x, 1.0)),
    "ops": lambda x: torch.ops.inlay.add(x, torch.zeros(x.shape, requires_grad=True)),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("take", [shorten, free])
@pytest.mark.parametrize("kind", [torch.Tensor, Subclass])
@pytest.mark.parametrize("read", READS)
def test_other_ways_to_read(
    read: str, kind: type, take: Callable[[torch.Tensor], None], size: int
) -> None:
    tensor = torch.ones(size).as_subclass(kind)
    take(tensor)
    with pytest.raises(TypeError, match="storage is smaller than its shape"):
        READS[read](tensor)


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
    free(grad)
    y = inlay.index_select(x, torch.tensor([1, 0]))
    with pytest.raises(TypeError, match="storage is smaller than its shape"):
        y.backward(grad)


def test_empty_tensors_need_no_storage() -> None:
    empty = torch.ones(0, 3)
    empty.untyped_storage().resize_(0)
    assert inlay.add(empty, 1.0).shape == (0, 3)
    assert inlay.scatter_(torch.zeros(4, 3), torch.ones(0, dtype=torch.int64), empty).sum() == 0


def test_memory_that_is_shared_until_it_is_written() -> None:
    """A small read leaves it shared. A write gives the target memory of its own."""
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


class Resizing:
    """An array whose conversion replaces the memory of a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.tensor.untyped_storage().resize_(200_000)
        return np.ones((2, 3), np.float32)


@pytest.mark.parametrize("function", [inlay.scatter, inlay.scatter_])
@pytest.mark.parametrize("rows", [4, 10_000])
def test_an_argument_that_resizes_another(function: Callable[..., Any], rows: int) -> None:
    """The call sees it before it reads or writes."""
    x = torch.full((rows, 3), 7.0)
    version = x._version
    with pytest.raises(RuntimeError, match=r"replaced .* while other arguments were converted"):
        function(x, torch.tensor([1, 0]), Resizing(x))
    assert x._version == version
    assert bool((x == 7).all())


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
    "write, recorded": lambda x, index: inlay.scatter_(
        x, index, torch.full((1,), 3.0, requires_grad=True).expand(len(index))
    ),
    "list": lambda x, index: inlay.concat([index, index]),
    "gradient": lambda x, index: (
        inlay.index_select(x.detach().requires_grad_(), index).backward(x[0].expand(len(index)))
    ),
    "ops": lambda x, index: torch.ops.inlay.index_select(x, index),
    "own": lambda x, index: inlay.scatter_(inlay.zeros([5000]), index, inlay.ones([len(index)])),
}}
raised = 0
for _ in range(20):
    x, index = torch.full((5000,), 3.0), {index}
    version = x._version
    begun = threading.Event()
    def resize():
        begun.wait()
        time.sleep(0.002)
        {change}
    thread = threading.Thread(target=resize)
    thread.start()
    begun.set()
    try:
        calls[{call!r}](x, index)
    except RuntimeError as error:
        assert "another thread replaced the memory of a tensor" in str(error), error
        raised += 1
        # What was written counts.
        assert x._version > version or not {call!r}.startswith("write")
    except TypeError as error:
        # The storage was made smaller before the call began.
        assert "storage is smaller than its shape" in str(error), error
    thread.join()
print(raised)
"""


LARGER = "{0}.untyped_storage().resize_({0}.untyped_storage().nbytes() * 2)"
SMALLER = "{0}.untyped_storage().resize_(8)"


@pytest.mark.parametrize(
    ("call", "change"),
    [
        ("read", LARGER.format("x")),
        ("read", SMALLER.format("x")),
        ("read", LARGER.format("index")),
        ("read", "x.share_memory_()"),
        # A call that writes into freed memory could end the process.
        ("write", LARGER.format("index")),
        ("write, recorded", LARGER.format("index")),
        ("list", SMALLER.format("index")),
        ("gradient", LARGER.format("index")),
        ("ops", LARGER.format("x")),
        ("own", LARGER.format("index")),
    ],
)
def test_memory_that_is_replaced_during_a_call(call: str, change: str) -> None:
    """The old memory is freed, which a call can't prevent. It says so."""
    code = RESIZED.format(call=call, change=change, index="(torch.arange(8_000_000) % 5000)")
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
