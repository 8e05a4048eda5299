"""`torch.library.opcheck` for every operation in `torch.ops.inlay`, on cases of `testdata`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from cases import OPERATIONS, Case
from torch.library import opcheck
from torch_support import CASES, ops_arguments, tensors_of, wants_gradient

import inlay
import inlay.torch
from inlay._inlay import Function

# opcheck reads `.grad` of tensors that are not leaves.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
EACH = 3  # cases of each operation


def chosen(op: str) -> list[Case]:
    """Some cases with a result. Those in which tensors have several elements come first."""
    good = [
        case
        for case in CASES
        if case.op == op
        and case.error is None
        and case.dtype in ("", "float32", "complex64")
        and not np.isnan(np.asarray(case.expect, np.complex128)).any()  # opcheck compares by ==
    ]
    good.sort(
        key=lambda case: -min([array.size for array in case.tensors.values()], default=0) > -2
    )
    return good[:EACH]


SAMPLES = [pytest.param(case, id=f"{op}-{case.id}") for op in OPERATIONS for case in chosen(op)]
IN_PLACE = [sample for sample in SAMPLES if sample.values[0].inplace]


def prepared(case: Case, with_gradient: bool) -> tuple[list[Any], dict[str, Any]]:
    tensors = tensors_of(case)
    for tensor in tensors.values():
        tensor.requires_grad_(with_gradient and wants_gradient(tensor))
    return ops_arguments(case, tensors)


def test_every_operation_has_a_sample() -> None:
    sampled = {sample.values[0].op for sample in SAMPLES}
    assert sampled == set(OPERATIONS)
    for op in OPERATIONS.values():
        assert hasattr(torch.ops.inlay, op.name)
        assert op.twin is None or hasattr(torch.ops.inlay, op.twin)


@pytest.mark.parametrize("case", SAMPLES)
def test_opcheck(case: Case) -> None:
    args, keywords = prepared(case, with_gradient=True)
    opcheck(getattr(torch.ops.inlay, case.op).default, tuple(args), keywords)


@pytest.mark.parametrize("case", IN_PLACE)
def test_opcheck_in_place(case: Case) -> None:
    twin = getattr(torch.ops.inlay, OPERATIONS[case.op].twin).default
    args, keywords = prepared(case, with_gradient=False)
    opcheck(twin, tuple(args), keywords)


@pytest.mark.parametrize("case", IN_PLACE)
def test_opcheck_in_place_with_gradient(case: Case) -> None:
    twin = getattr(torch.ops.inlay, OPERATIONS[case.op].twin).default
    (target, *rest), keywords = prepared(case, with_gradient=True)
    opcheck(twin, (target.detach(), *rest), keywords)


def test_opcheck_of_derivatives_and_batches() -> None:
    x, index, updates = torch.rand(4, 3), torch.tensor([1, 3, 1]), torch.rand(3, 3)
    function = Function("scatter", (None, None, None, False, None, "mul", None, True))
    assert function.text == "scatter(@, @, @, overwrite=False, reduce='mul', include_self=True)"
    vjp = function.vjp((True, False, True))
    out = inlay.scatter(x, index, updates, overwrite=False, reduce="mul", include_self=True)
    given = [x, index, updates, out, torch.rand(4, 3)]
    for tensor in (x, updates, given[-1]):
        tensor.requires_grad_()
    opcheck(torch.ops.inlay.function.default, (vjp.text, given))
    batched = [tensor.detach().expand(2, *tensor.shape).clone() for tensor in given]
    text = vjp.vmap((0,) * 5).text
    opcheck(torch.ops.inlay.function.default, (text, batched))
