"""Static graphs: record operations once, plan them, run them many times.

The words are Paddle's: a `Program`, `data` for what is fed, an `Executor` that runs.

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
    """The program of this thread's innermost guard, or else a global one."""
    return _current.programs[-1] if _current.programs else _default


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """While it is open, `data` adds to `main_program`. There is no start-up program to run."""
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
    """A symbolic tensor of the current program, fed under `name` at each run.

    Sizes of None or -1 come with the values. The dtype is float32 if none is given.
    """
    return default_main_program().data(name, shape, dtype)


class Executor:
    """Runs programs. It holds nothing, so that threads may share one.

    With a place, ``'cpu'`` or ``'gpu'``, what is fed is brought there; without one, a program runs
    where the tensors are that it is fed.
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
        """The values of `fetch_list` for those of `feed`, as a list.

        Args:
            program: what to run; None is the current one.
            feed: a value for each name.
            fetch_list: symbolic tensors, or names; None is what `Program.set_outputs` named.
            return_numpy: arrays, or for False tensors.
            donate: the run may write into the memory of what it is fed.

        A run that fails leaves the program as it was, and the feeds too unless they were donated.

        """
        program = default_main_program() if program is None else program
        return program.run(dict(feed or {}), fetch_list, donate, return_numpy, self.place)


def gradients(
    targets: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    target_gradients: Tensor | Sequence[Tensor | None] | None = None,
) -> list[Tensor | None]:
    """Adds to the program what computes the gradients of `targets`, summed, for `inputs`.

    The inputs have ``stop_gradient = False`` before the targets are made. Without
    `target_gradients` the targets count once each. None stands for an input that no target needs.
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
    # As grad_outputs the seeds would have to be there for all or for none.
    return grad(total, inputs, retain_graph=True, allow_unused=True)


def append_backward(
    loss: Tensor, parameter_list: Sequence[Tensor]
) -> list[tuple[Tensor, Tensor | None]]:
    """Adds to the program what computes the gradients of `loss`, of one element.

    Returns a pair of each parameter and its gradient.
    """
    parameters = list(parameter_list)
    found = grad(loss, parameters, retain_graph=True, allow_unused=True)
    return list(zip(parameters, found, strict=True))


def save(program: Program, path: str, fetch_list: Mapping[str, Tensor] | None = None) -> None:
    """Writes a program to a file, with what `fetch_list` needs, or the outputs that it has."""
    if fetch_list is not None:
        program.set_outputs(dict(fetch_list))
    program.save(path)


def load(path: str) -> Program:
    """Reads a program from a file; a damaged one gives an error."""
    return Program.load(path)
