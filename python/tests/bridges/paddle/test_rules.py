"""Which arguments the operations take beside Paddle tensors, and errors for those they don't."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import paddle
import pytest
from cases import OPERATIONS

import inlay

from .support import to_paddle


def test_numbers_lists_and_arrays_stand_beside_tensors() -> None:
    x = paddle.zeros([3], dtype="float32")
    for value in (1, 1.0, np.float32(1), [1.0], np.array([1.0], np.float32)):
        result = inlay.add(x, value)
        assert type(result) is paddle.Tensor
        assert result.dtype == paddle.float32
        assert result.tolist() == [1, 1, 1]
    assert inlay.add(2, x).dtype == paddle.float32
    assert inlay.where([True, False, True], x, 1).tolist() == [0, 1, 0]
    assert inlay.concat([x, np.ones(2, np.float32)]).tolist() == [0, 0, 0, 1, 1]
    assert inlay.index_put(x, ([0, 2],), 5).tolist() == [5, 0, 5]


def test_tensors_of_inlay_stand_beside_tensors_of_paddle() -> None:
    x = paddle.zeros([3])
    assert type(inlay.add(x, inlay.ones([3]))) is paddle.Tensor
    assert type(inlay.add(inlay.ones([3]), x)) is paddle.Tensor
    leaf = inlay.to_tensor([1.0, 2.0, 3.0], dtype="float32", stop_gradient=False)
    with pytest.raises(TypeError, match="y is a Tensor of Inlay that requires a gradient"):
        inlay.add(x, leaf)


def test_a_number_gets_no_gradient() -> None:
    x = to_paddle(np.ones(3), True)
    inlay.multiply(x, 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_results_of_calls_without_gradient_require_none() -> None:
    x = to_paddle(np.ones(3), True)
    with paddle.no_grad():
        assert inlay.add(x, 1).stop_gradient
    assert inlay.add(x.detach(), 1).stop_gradient
    assert not inlay.add(x, 1).stop_gradient


@pytest.mark.parametrize(
    "call",
    [
        lambda x: inlay.greater_than(x, 0),
        lambda x: inlay.cast(x, "int64"),
        lambda x: inlay.zeros_like(x),
        lambda x: inlay.ones_like(x),
        lambda x: inlay.full_like(x, 2),
    ],
)
def test_results_that_have_no_gradient_require_none(call: Any) -> None:
    assert call(to_paddle(np.ones(3), True)).stop_gradient


def test_parameters_are_tensors() -> None:
    layer = paddle.nn.Linear(2, 2)
    inlay.tril(layer.weight).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 0], [1, 1]]


def test_the_gradient_of_one_of_two_inputs() -> None:
    x, u = to_paddle(np.ones((3, 2)), True), to_paddle(np.ones((2, 2)), True)
    for wanted in ([x], [u], [x, u]):
        y = inlay.scatter(x * 1, [0, 2], u * 1, overwrite=False)
        found = paddle.grad([y.sum()], wanted)
        assert [g.shape for g in found] == [t.shape for t in wanted]
        assert x.grad is None
        assert u.grad is None


def test_one_tensor_twice() -> None:
    x = to_paddle(np.array([2.0, 3.0]), True)
    inlay.multiply(x, x).sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_hooks_of_paddle_see_the_gradients() -> None:
    x, seen = to_paddle(np.ones(2), True), []
    y = inlay.multiply(x, 3)
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * y).sum().backward()
    assert seen == [[6, 6]]


def test_a_graph_that_is_kept() -> None:
    """`paddle.grad` runs a graph any number of times.

    A second `backward` of the same graph crashes Paddle 3.3.1 at any `PyLayer`, with
    `retain_graph=True`, too.
    """
    x = to_paddle(np.ones(2), True)
    y = inlay.multiply(x, x).sum()
    for _ in range(3):
        assert paddle.grad([y], [x], retain_graph=True)[0].tolist() == [2, 2]
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_recorded_calls_are_freed() -> None:
    """A result that the gradient needs does not keep the call alive."""
    x = to_paddle(np.ones((500, 1000)), True)
    for _ in range(3):
        inlay.amax(x, 0)
    before = resident()
    for _ in range(30):
        inlay.prod(x)
        inlay.scatter(x, [1, 1], x[:2], overwrite=False, reduce="amax", include_self=True)
    assert resident() - before < 40  # MB; each call returns 4


def resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


# Tensors that can't be read.


def sparse() -> paddle.Tensor:
    return paddle.sparse.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])


def compressed() -> paddle.Tensor:
    return paddle.sparse.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], [2, 2])


def cleared() -> paddle.Tensor:
    x = paddle.ones([2, 2])
    x._clear()
    return x


def without_data() -> paddle.Tensor:
    x = paddle.ones([2, 2])
    x._clear_data()
    return x


BAD = {
    "a sparse tensor": (sparse, TypeError, "is a SparseCooTensor, expected a dense tensor"),
    "a compressed tensor": (compressed, TypeError, "is a SparseCsrTensor, expected a dense tensor"),
    "a cleared tensor": (cleared, ValueError, "has no memory: it was cleared"),
    "a tensor without data": (without_data, ValueError, "has no memory: it was cleared"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", [name for name, op in OPERATIONS.items() if op.is_method])
def test_tensors_that_cannot_be_read(name: str, kind: str) -> None:
    make, error, words = BAD[kind]
    first = OPERATIONS[name].arguments[0].name
    required = [a for a in OPERATIONS[name].arguments if a.required][1:]
    with pytest.raises(error, match=f"^{name}: {first} {words}; pass "):
        getattr(inlay, name)(make(), *("int8" if a.kind == "DType" else 1 for a in required))


def test_bad_tensors_in_lists_and_later_places() -> None:
    x = paddle.ones([2, 2])
    with pytest.raises(TypeError, match="concat: x is a SparseCooTensor"):
        inlay.concat([x, sparse()])
    with pytest.raises(ValueError, match="add: y has no memory"):
        inlay.add(x, cleared())
    with pytest.raises(TypeError, match="scatter: updates is a SparseCooTensor"):
        inlay.scatter_(x, [0, 1], sparse())
    assert x.tolist() == [[1, 1], [1, 1]]


def test_distributed_tensors() -> None:
    # A process group must not be left behind in this process.
    code = """
import warnings; warnings.simplefilter("ignore")
import inlay, paddle, paddle.distributed as dist
mesh = dist.ProcessMesh([0], dim_names=["x"])
x = dist.shard_tensor(paddle.ones([2, 3]), mesh, [dist.Replicate()])
try:
    inlay.tril(x)
except TypeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tril: x is a DistTensor; pass the local part, x._local_value()" in done.stdout


def test_the_first_tensor_of_a_process_is_freed() -> None:
    code = """
import gc, weakref
import paddle, inlay
x = paddle.ones([3])
inlay.add(x, 1.0)
seen = weakref.ref(x)
del x
gc.collect()
print(seen() is None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_an_uninitialized_tensor_is_an_empty_one() -> None:
    """Paddle shows it so."""
    assert paddle.Tensor().shape == [0]
    assert inlay.add(paddle.Tensor(), 1).shape == [0]


def test_other_devices_are_named() -> None:
    """No other device is here, so a stand-in for its tensors is shown to the check."""
    from inlay.paddle import tensors

    class Place:
        def is_cpu_place(self) -> bool:
            return False

        def __str__(self) -> str:
            return "Place(gpu:0)"

    class Elsewhere:
        place = Place()

        def is_dense(self) -> bool:
            return True

        _is_dense_tensor_hold_allocation = is_dense

    with pytest.raises(TypeError) as raised:
        tensors._check("scatter", 2, Elsewhere())
    assert str(raised.value) == (
        "scatter: updates is on Place(gpu:0), but Inlay computes on the CPU; pass updates.cpu()"
    )


def test_dtypes_that_inlay_lacks() -> None:
    x = paddle.ones([2]).astype("float8_e4m3fn")
    with pytest.raises(TypeError, match="dtype"):
        inlay.add(x, x)


def test_dtypes_that_differ() -> None:
    with pytest.raises(TypeError, match="scatter: updates has dtype float64, x has dtype float32"):
        inlay.scatter(paddle.ones([2]), [0], paddle.ones([1], dtype="float64"))


def test_dtypes_of_paddle_are_arguments() -> None:
    x = paddle.ones([2])
    assert inlay.cast(x, paddle.float64).dtype == paddle.float64
    assert inlay.astype(x, dtype=paddle.bfloat16).dtype == paddle.bfloat16
    assert inlay.zeros_like(x, paddle.int8).dtype == paddle.int8
    assert inlay.zeros([2], paddle.int64).dtype == inlay.int64


def test_a_subclass_is_a_tensor() -> None:
    class Own(paddle.Tensor):
        pass

    x = Own(paddle.ones([2]))
    assert inlay.add(x, 1).tolist() == [2, 2]


def test_no_library_is_imported_before_its_tensors() -> None:
    code = "import inlay, sys; inlay.add([1.0], 2.0); print('paddle' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
