"""The cases of `testdata` as functions and their tensors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from cases import OPERATIONS, SYNTAX, Case, all_cases, real_parts

import inlay
from inlay._bridge import bind
from inlay._inlay import Function

CASES = [case for case in all_cases() if case.op not in SYNTAX]
FLOATS = ("bfloat16", "float16", "float32", "float64", "complex64", "complex128")


class Own:
    """Inlay's own tensors as those of a library."""

    name = "inlay"

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, inlay.Tensor)

    def dtype(self, tensor: inlay.Tensor) -> str:
        return str(tensor.dtype)

    def adopt(self, tensor: inlay.Tensor) -> inlay.Tensor:
        return tensor


def for_each(cases: Iterable[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", list(cases), ids=lambda case: case.id)


def of_dtypes(*dtypes: str) -> list[Case]:
    """The cases with a result: those without "T", and one for each of these dtypes."""
    return [case for case in CASES if case.expect is not None and case.dtype in ("", *dtypes)]


def objects_of(case: Case) -> tuple[Any, ...]:
    """The arguments of a case in declared order, None for those that are left out."""
    tensors = {name: inlay.to_tensor(array) for name, array in case.tensors.items()}
    inputs, attrs = case.arguments(tensors)
    given = dict(zip((name.rstrip("*") for name in case.inputs), inputs, strict=True))
    given.update(attrs)
    objects = tuple(given.pop(argument.name, None) for argument in OPERATIONS[case.op].arguments)
    assert not given
    return objects


def bound(case: Case) -> tuple[Function, list[inlay.Tensor]]:
    """The function of a case and its tensors."""
    return bind(case.op, objects_of(case), Own())


def arguments_of(case: Case, tensors: list[inlay.Tensor]) -> list[Any]:
    """The arguments of the operation, with these tensors in their places."""
    rest = iter(tensors)
    arguments = []
    for argument, value in zip(OPERATIONS[case.op].arguments, objects_of(case), strict=True):
        if argument.kind in ("Tensors", "Indices"):
            items = value if isinstance(value, list) else [value]
            arguments.append([next(rest) for _ in items])
        elif argument.kind in ("Tensor", "Like", "Operand", "Index", "Mask"):
            arguments.append(next(rest))
        else:
            arguments.append(value)
    return arguments


def operate(case: Case, tensors: list[inlay.Tensor]) -> inlay.Tensor:
    """The result of the operation for these tensors."""
    declared = OPERATIONS[case.op].arguments
    values = zip(declared, arguments_of(case, tensors), strict=True)
    given = {argument.name: value for argument, value in values if value is not None}
    return getattr(inlay, case.op)(**given)


def derived(function: Function) -> list[Function]:
    """Derivatives and batches of a function, of depth 1 and 2."""
    if function.inputs == 0:
        return []
    batch = [None] * function.inputs
    batch[-1] = 2
    made = [function.vmap([0] * function.inputs), function.vmap(batch)]
    if any(function.differentiable):
        made.append(function.vjp(function.differentiable))
    return [*made, *(one.vmap([1] * one.inputs) for one in made)]


def specs_of(tensors: Iterable[Any]) -> list[tuple[str, list[int | None]]]:
    return [(str(tensor.dtype), list(tensor.shape)) for tensor in tensors]


def arrays_of(tensors: Iterable[Any]) -> list[np.ndarray]:
    return [tensor.numpy() for tensor in tensors]


def outcome(work: Callable[[], Any]) -> Any:
    """What a call returns, or the exception that it raises."""
    try:
        return work()
    except (inlay.InlayError, ValueError, TypeError) as error:
        return error


def random_like(tensor: Any, seed: object) -> inlay.Tensor:
    """Random numbers near 1 with the dtype and the shape of a tensor."""
    rng = np.random.default_rng(zlib.crc32(repr(seed).encode()))
    like = tensor.numpy()
    numbers = rng.uniform(0.5, 2.0, like.shape)
    if like.dtype.kind == "c":
        numbers = numbers + 1j * rng.uniform(0.5, 2.0, like.shape)
    return inlay.to_tensor(np.asarray(numbers).astype(like.dtype))


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    """Asserts equal dtypes and shapes, and numbers that differ by the rounding of a few sums."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    ours, theirs = real_parts(actual), real_parts(expected)
    if actual.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs)
        return
    wide = "float64" if ours.dtype.itemsize == 8 else "float32"
    digits = {8: 1e-12, 4: 1e-5}.get(ours.dtype.itemsize, 3e-2)
    np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=digits, atol=digits)
