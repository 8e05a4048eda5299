"""Runs cases in static graphs, in a process of its own, and prints one JSON line for each.

    python static_worker.py <mode> <number of the first case>

Paddle aborts the process for some faults in a static graph. `static_runs.py` reads the lines, and
goes on with the next case in another process if this one dies.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

# A test module of pytest has these in its path.
sys.path[:0] = [str(Path(__file__).parents[2])]

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import paddle

# ruff: noqa: E402
from cases import Case, all_cases, assert_same
from gradcheck import Draw, random_like, value_of
from gradient_cases import CASES, REAL_ONLY
from naive import DTYPES

import inlay

UNSIGNED = ("uint16", "uint32", "uint64")
# Cases that use the syntax of Inlay's own tensors, or much of what Paddle itself does. Paddle
# crashes if a value of a program is multiplied by a NumPy array of complex numbers.
SYNTAX = (
    "getitem",
    "setitem",
    "operators",
    "copy",
    "T",
    "+=",
    "-=",
    "*=",
    "/=",
    "a chain",
    "cast to complex",
)
Function = Callable[..., Any]


def has_dtypes(case: Case) -> bool:
    arrays = [*case.tensors.values(), *([] if case.expect is None else [case.expect])]
    return all(array.dtype.name not in UNSIGNED for array in arrays)


def data_cases() -> list[Case]:
    """The cases of `testdata` for static graphs."""
    return [
        case
        for case in all_cases()
        if case.tensors and case.op not in ("getitem", "setitem") and has_dtypes(case)
    ]


def gradient_cases(is_open: bool = False) -> list[tuple[str, str]]:
    """The cases of gradients. With unknown sizes, none may have an input without elements."""
    without = (*SYNTAX, "concat") if is_open else SYNTAX
    return [
        (name, dtype)
        for name in CASES
        if not name.startswith(without)
        for dtype in ("float64", "complex128")
        if not (dtype == "complex128" and name in REAL_ONLY)
    ]


# Feeds and fetches, in which bfloat16 is uint16.


def fed(array: np.ndarray) -> np.ndarray:
    array = np.array(array, order="C")
    return array.view(np.uint16) if array.dtype == DTYPES["bfloat16"] else array


def fetched(array: np.ndarray, dtype: Any) -> np.ndarray:
    bits = dtype == paddle.bfloat16 and array.dtype == np.uint16
    return array.view(DTYPES["bfloat16"]) if bits else array


def run_program(
    build: Function,
    arrays: dict[str, np.ndarray],
    is_open: Callable[[str], bool],
    more: dict[str, np.ndarray] | None = None,
) -> list[np.ndarray | None]:
    """Builds a program of inputs with known or unknown sizes, and runs it."""
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup):
        inputs = {
            name: paddle.static.data(
                name, [-1] * array.ndim if is_open(name) else array.shape, array.dtype.name
            )
            for name, array in arrays.items()
        }
        results = build(inputs)
    executor = paddle.static.Executor(paddle.CPUPlace())
    wanted = [result for result in results if result is not None]
    feed = {name: fed(array) for name, array in {**arrays, **(more or {})}.items()}
    found = iter(executor.run(program, feed=feed, fetch_list=wanted))
    return [None if r is None else fetched(next(found), r.dtype) for r in results]


def check_data(case: Case, is_open: bool) -> None:
    def build(inputs: dict[str, Any]) -> list[Any]:
        tensors, attrs = case.arguments(inputs)
        return [getattr(inlay, case.op)(*tensors, **attrs)]

    def opens(name: str) -> bool:
        return is_open and not case.needs_sizes(name)

    if case.expect is not None:
        assert_same(run_program(build, case.tensors, opens)[0], case.expect)
        return
    assert case.error is not None
    try:
        run_program(build, case.tensors, opens)
    except inlay.InlayError as error:
        # It was found when the program was built.
        raised: Exception = error
    except (SystemError, ValueError) as error:
        # It was found in a run. Paddle prints the message, but does not pass it on.
        raised = error
    else:
        raise AssertionError("no error")
    text = str(raised)
    if not isinstance(raised, inlay.InlayError):
        assert "inlay_" in text, text
        return
    assert isinstance(raised, case.error), text
    for word in case.words:
        told = "?" not in text or not any(letter.isdigit() for letter in word)
        assert not told or word in text, text


def drawn(name: str, dtype: str, is_open: bool) -> tuple[Function, list[np.ndarray]]:
    """A function, and its inputs and the gradient of its result.

    Paddle forgets the shape of a tensor without elements that leaves a block of a program. Inlay
    knows where it needs no gradient if sizes are known.
    """
    for attempt in range(int(is_open), 100, 2):
        draw = Draw((name, dtype, attempt), dtype)
        case = CASES[name](draw)
        (y,) = value_of(case.function, case.inputs)
        if y.size and (not is_open or all(array.size for array in case.inputs)):
            return case.function, [*case.inputs, random_like(y, draw.rng)]
    raise AssertionError("no case has elements")


def expected_gradients(function: Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The value and the gradients, with Inlay's own tensors."""
    *inputs, seed = [inlay.to_tensor(array, stop_gradient=False) for array in arrays]
    y = function(*inputs)
    return [y.numpy(), *(g.numpy() for g in inlay.grad(y, inputs, grad_outputs=[seed]))]


def assert_close(got: list[Any], expected: list[np.ndarray]) -> None:
    for a, b in zip(got, expected, strict=True):
        a = np.zeros_like(b) if a is None else a
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def check_gradients(name: str, dtype: str, is_open: bool) -> None:
    function, arrays = drawn(name, dtype, is_open)

    def build(inputs: dict[str, Any]) -> list[Any]:
        tensors = list(inputs.values())
        for tensor in tensors:
            tensor.stop_gradient = False
        y = function(*tensors)
        # Paddle asserts that the gradient of a value has its shape, unknown sizes included.
        seed = paddle.static.data("seed", y.shape, arrays[-1].dtype.name)
        return [y, *paddle.static.gradients([y], tensors, target_gradients=[seed])]

    *inputs, seed = arrays
    named = {f"x{k}": array for k, array in enumerate(inputs)}
    got = run_program(build, named, lambda name: is_open, {"seed": seed})
    assert_close(got, expected_gradients(function, arrays))


#: Traced functions. They are not freed, because Paddle keeps pointers into their programs: in a
#: process that traces and frees many functions with a layer, one in 500 traces reads freed memory.
#: A plain `PyLayer` without Inlay shows the same.
KEPT: list[Function] = []


def check_traced(name: str, dtype: str) -> None:
    function, arrays = drawn(name, dtype, False)
    call = paddle.jit.not_to_static(lambda *tensors: function(*tensors))

    @paddle.jit.to_static(full_graph=True)
    def step(tensors: Any) -> Any:
        return call(*tensors)

    KEPT.append(step)
    for _ in range(2):  # traced, and run again
        *inputs, seed = map(paddle.to_tensor, arrays)
        for tensor in inputs:
            tensor.stop_gradient = False
        y = step(inputs)
        y.backward(seed)
        got = [y.numpy(), *(None if t.grad is None else t.grad.numpy() for t in inputs)]
        assert_close(got, expected_gradients(function, arrays))


def checks(mode: str) -> Iterator[tuple[str, Function]]:
    """The name of each case of a mode, and what checks it."""
    if mode in ("data-known", "data-open"):
        for case in data_cases():
            yield case.id, lambda case=case: check_data(case, mode == "data-open")
    elif mode in ("gradients-known", "gradients-open"):
        for name, dtype in gradient_cases(mode == "gradients-open"):
            yield (
                f"{name}-{dtype}",
                lambda n=name, d=dtype: check_gradients(n, d, mode == "gradients-open"),
            )
    elif mode == "traced":
        for name, dtype in gradient_cases():
            yield f"{name}-{dtype}", lambda n=name, d=dtype: check_traced(n, d)
    else:
        raise ValueError(mode)


def main(mode: str, first: int) -> None:
    # Python's own handler tells in which function the process died.
    paddle.disable_signal_handler()
    faulthandler.enable()
    if mode != "traced":
        paddle.enable_static()
    for number, (name, check) in enumerate(checks(mode)):
        if number < first:
            continue
        print(json.dumps({"case": name, "number": number}), flush=True)
        try:
            check()
            problem = None
        except Exception:
            problem = traceback.format_exc()
        print(json.dumps({"case": name, "problem": problem}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
