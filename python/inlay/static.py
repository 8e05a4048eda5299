"""Static graphs: record operations once, plan them, run them many times.

The names are Paddle's: a `Program` holds operations, `data` makes an input, and an `Executor` runs
programs.

>>> import numpy as np
>>> import inlay
>>> from inlay import static
>>> program = static.Program()
>>> with static.program_guard(program):
...     x = static.data("x", [None, 2], "float32")
...     y = inlay.scatter(x, [0], [[7.0, 7.0]], name="first row")
>>> (result,) = static.Executor().run(program, {"x": np.ones((3, 2), "f4")}, [y])
>>> result.tolist()
[[7.0, 7.0], [1.0, 1.0], [1.0, 1.0]]
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any

from inlay._inlay import Plan, Program, Tensor, grad
from inlay.errors import InlayValueError
from inlay.typing import ArrayLike, DTypeLike

__all__ = [
    "Executor",
    "Plan",
    "Program",
    "append_backward",
    "data",
    "default_main_program",
    "gradients",
    "load",
    "program_guard",
    "save",
]


class _Current(threading.local):
    def __init__(self) -> None:
        self.programs: list[Program] = []


_current = _Current()
_default = Program()


def default_main_program() -> Program:
    """The program of this thread's innermost `program_guard`, or else a global program."""
    return _current.programs[-1] if _current.programs else _default


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """A context in which `data` adds to `main_program`. `startup_program` is ignored."""
    _current.programs.append(main_program)
    try:
        yield
    finally:
        _current.programs.pop()


def data(
    name: str,
    shape: Sequence[int | None],
    dtype: DTypeLike | None = None,
) -> Tensor:
    """A symbolic tensor for an input of the current program. Each run gets its value under `name`.

    A size of None or -1 is unknown until a run gives the value. The default dtype is float32.
    """
    return default_main_program().data(name, shape, dtype)


class Executor:
    """Runs programs. It has no mutable state, so threads may share one.

    With a place, ``'cpu'`` or ``'gpu'``, inputs are moved to that device. Without one, a program
    runs on the device of its inputs.
    """

    def __init__(self, place: str | None = None) -> None:
        self.place = place

    def run(
        self,
        program: Program | None = None,
        feed: Mapping[str, ArrayLike] | None = None,
        fetch_list: Sequence[Tensor | str] | None = None,
        return_numpy: bool = True,
        donate: bool = False,
    ) -> list[Any]:
        """Run a program on the values of `feed`. Returns the values of `fetch_list` as a list.

        Args:
            program: the program to run. None stands for the current program.
            feed: the values of the inputs, by name.
            fetch_list: symbolic tensors or names of outputs. None stands for all outputs that
                `Program.set_outputs` has named.
            return_numpy: return NumPy arrays, or tensors if False.
            donate: the run may write into the memory of its inputs.

        A run that fails does not change the program. It does not change the inputs either, unless
        they were donated.

        """
        program = default_main_program() if program is None else program
        return program.run(dict(feed or {}), fetch_list, donate, return_numpy, self.place)


def gradients(
    targets: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    target_gradients: Tensor | Sequence[Tensor | None] | None = None,
) -> list[Tensor | None]:
    """Add operations to the program that compute the gradients of the sum of `targets`.

    Set ``stop_gradient = False`` on the inputs before the targets are computed. `target_gradients`
    are the weights of the targets; the default is 1. The result is None for an input that no target
    depends on.
    """
    targets = [targets] if isinstance(targets, Tensor) else list(targets)
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if target_gradients is None:
        seeds: list[Tensor | None] = [None] * len(targets)
    elif isinstance(target_gradients, Tensor):
        seeds = [target_gradients]
    else:
        seeds = list(target_gradients)
    if len(seeds) != len(targets):
        raise InlayValueError(
            f"gradients: target_gradients has {len(seeds)} entries, expected {len(targets)}"
        )
    total = [
        (target if seed is None else target * seed).sum()
        for target, seed in zip(targets, seeds, strict=True)
    ]
    # `grad` needs weights for all targets or for none. So each target is multiplied by its weight
    # and summed to a scalar, which needs none.
    return grad(total, inputs, retain_graph=True, allow_unused=True)


def append_backward(
    loss: Tensor, parameter_list: Sequence[Tensor]
) -> list[tuple[Tensor, Tensor | None]]:
    """Add operations to the program that compute the gradients of `loss`, which has one element.

    Returns a list of pairs: a parameter and its gradient.
    """
    parameters = list(parameter_list)
    found = grad(loss, parameters, retain_graph=True, allow_unused=True)
    return list(zip(parameters, found, strict=True))


def save(
    program: Program, path: str | PathLike[str], fetch_list: Mapping[str, Tensor] | None = None
) -> None:
    """Write to a file the operations that `fetch_list`, or else the program's outputs, need.

    A path that can't be written raises the `OSError` that `open` would raise.
    """
    if fetch_list is not None:
        program.set_outputs(dict(fetch_list))
    program.save(path)


def load(path: str | PathLike[str]) -> Program:
    """Read a program from a file. A damaged file is an error, and a missing one, as for `open`."""
    return Program.load(path)
