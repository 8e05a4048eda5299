"""Static graphs of Paddle: programs with known and unknown sizes, gradients, and `to_static`."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from .static_runs import problems
from .static_worker import data_cases, gradient_cases

DATA = [case.id for case in data_cases()]
GRADIENTS = [f"{name}-{dtype}" for name, dtype in gradient_cases()]
OPEN_GRADIENTS = [f"{name}-{dtype}" for name, dtype in gradient_cases(is_open=True)]


def check(mode: str, case: str) -> None:
    problem = problems(mode)[case]
    assert problem is None, problem


@pytest.mark.parametrize("case", DATA)
def test_results_of_programs(case: str) -> None:
    check("data-known", case)


@pytest.mark.parametrize("case", DATA)
def test_results_of_programs_with_unknown_sizes(case: str) -> None:
    check("data-open", case)


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_of_programs(case: str) -> None:
    check("gradients-known", case)


@pytest.mark.parametrize("case", OPEN_GRADIENTS)
def test_gradients_of_programs_with_unknown_sizes(case: str) -> None:
    check("gradients-open", case)


@pytest.mark.parametrize("case", GRADIENTS)
def test_to_static(case: str) -> None:
    check("traced", case)


def run(code: str) -> str:
    """The output of a script, which begins with what all of them need."""
    head = """
        import warnings; warnings.simplefilter("ignore")
        import numpy as np, paddle, inlay
    """
    script = textwrap.dedent(head) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_program_trains() -> None:
    code = """
        paddle.enable_static()
        main, start = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, start):
            x = paddle.static.data("x", [-1, 3], "float32")
            index = paddle.static.data("index", [-1], "int64")
            h = paddle.static.nn.fc(x, 4)
            h = inlay.scatter(h, index, h * 2, overwrite=False, include_self=True)
            loss = (h * h).mean()
            paddle.optimizer.SGD(0.1).minimize(loss)
        executor = paddle.static.Executor()
        executor.run(start)
        for rows in (2, 5, 3, 5, 4):
            feed = {"x": np.ones((rows, 3), "float32"), "index": np.arange(rows)[::-1].copy()}
            print(float(executor.run(main, feed=feed, fetch_list=[loss])[0]))
    """
    losses = [float(line) for line in run(code).split()]
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)


# `to_static` needs the source of a function, which a script from the command line lacks.
TRAINED = """
import sys, warnings; warnings.simplefilter("ignore")
import paddle, inlay

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.layer = paddle.nn.Linear(3, 4)
        self.register_buffer("index", paddle.to_tensor([0, 0, 1]))

    def forward(self, x):
        h = self.layer(x)
        h = inlay.scatter(h, self.index, h, overwrite=False, reduce="mean", include_self=True)
        return inlay.tril(h) + inlay.where(h > 0, h, 0.5)

def train(net):
    paddle.seed(7)
    for parameter in net.parameters():
        parameter.set_value(paddle.rand(parameter.shape))
    optimizer = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    for step in range(4):
        loss = (net(paddle.rand([3, 3])) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        print(f"{float(loss):.6f}")

mode = sys.argv[1]
train(Net() if mode == "eager" else paddle.jit.to_static(Net(), full_graph=mode == "full"))
"""


@pytest.mark.parametrize("mode", ["full", "partial"])
def test_a_layer_trains_under_to_static_as_it_does_eagerly(tmp_path, mode: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINED)
    printed = []
    for one in ("eager", mode):
        command = [sys.executable, str(script), one]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        printed.append(done.stdout.split())
    assert len(printed[0]) == 4
    assert printed[0] == printed[1]


def test_arguments_that_do_not_fit_are_errors_when_the_program_is_built() -> None:
    code = """
        paddle.enable_static()
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [4, 3], "float32")
            u = paddle.static.data("u", [2, 5], "float32")
            for call in (
                lambda: inlay.scatter(x, [0, 1], u),
                lambda: inlay.scatter_(x, [0, 1], x[:2]),
                lambda: inlay.add(x, paddle.static.data("y", [3], "int64")),
            ):
                try:
                    call()
                except Exception as error:
                    print(type(error).__name__, error)
    """
    lines = run(code).splitlines()
    assert lines[0].startswith("InlayValueError scatter: updates has shape [2, 5]")
    assert lines[1] == (
        "InlayTypeError scatter: the values of a static graph can't be written; call "
        "inlay.scatter, and use its result"
    )
    assert lines[2].startswith("InlayTypeError add: ")


def test_eager_tensors_do_not_belong_to_a_program() -> None:
    code = """
        eager = paddle.ones([3])
        paddle.enable_static()
        with paddle.static.program_guard(paddle.static.Program()):
            try:
                inlay.add(paddle.static.data("x", [3], "float32"), eager)
            except TypeError as error:
                print(error)
    """
    assert run(code).strip() == (
        "add: y is an eager tensor in a static graph; pass a NumPy array, or call "
        "paddle.disable_static() first"
    )


def test_programs_without_gradient_record_none() -> None:
    code = """
        paddle.enable_static()
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [4, 3], "float32")
            x.stop_gradient = False
            with paddle.no_grad():
                print(inlay.tril(x).stop_gradient)
            print(inlay.greater_than(x, 1).stop_gradient, inlay.cast(x, "int32").stop_gradient)
            print(inlay.tril(x).stop_gradient)
    """
    assert run(code).split() == ["True", "True", "True", "False"]
