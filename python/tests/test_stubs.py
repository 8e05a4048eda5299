"""The type stubs match the module, and serve users of mypy and pyright in strict mode."""

import re
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

import inlay
from inlay.typing import ReduceOrAssign

TYPICAL = Path(__file__).parent / "typing" / "typical.py"
MYPY = [sys.executable, "-m", "mypy", "--strict", "--no-incremental"]
PYRIGHT = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]


def expect_success(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, result.stdout + result.stderr


def test_stubs_match_the_module():
    root = Path(__file__).resolve().parents[2]
    stubtest = [sys.executable, "-m", "mypy.stubtest", "inlay"]
    options = ["--mypy-config-file", "pyproject.toml", "--allowlist", "tools/stubtest.txt"]
    expect_success([*stubtest, *options], cwd=root)


@pytest.mark.parametrize("checker", [MYPY, PYRIGHT], ids=["mypy", "pyright"])
def test_typical_code_passes_in_strict_mode(checker, tmp_path):
    expect_success([*checker, str(TYPICAL)], cwd=tmp_path)


def test_typical_code_runs():
    expect_success([sys.executable, str(TYPICAL)])


def test_results_are_typed_by_what_comes_in(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from typing import Any, assert_type\n"
        "import numpy as np\n"
        "import numpy.typing as npt\n"
        "import inlay\n"
        "class Foreign:\n"
        "    requires_grad = False\n"
        "    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...\n"
        "f = Foreign()\n"
        "assert_type(inlay.scatter(f, [0], [1.0]), Foreign)\n"
        "assert_type(inlay.scatter_(f, f, f), Foreign)\n"
        "assert_type(inlay.stack([f, f]), Foreign)\n"
        "t = inlay.zeros([3])\n"
        "a = np.zeros(3)\n"
        "assert_type(inlay.scatter(t, [0], [1.0]), inlay.Tensor)\n"
        "assert_type(inlay.scatter(a, [0], [1.0]), npt.NDArray[Any])\n"
        "assert_type(inlay.scatter([0.0], [0], [1.0]), npt.NDArray[Any])\n"
        "assert_type(inlay.masked_fill(a, a > 0, 1), npt.NDArray[Any])\n"
        "assert_type(inlay.scatter_(t, [0], [1.0]), inlay.Tensor)\n"
        "assert_type(inlay.stack([t, t]), inlay.Tensor)\n"
        "assert_type(inlay.stack([a, a]), npt.NDArray[Any])\n"
        "assert_type(t.slice_scatter([1.0], start=2).masked_fill(t > 0, 2), inlay.Tensor)\n"
        "assert_type(t.reshape(3, 1).squeeze(1), inlay.Tensor)\n"
        "assert_type(inlay.reshape(a, 3, 1), npt.NDArray[Any])\n"
        "assert_type(inlay.zeros(2, 2, dtype='int64'), inlay.Tensor)\n"
        "inlay.scatter(t, [0], [1.0], axis='x')  # type: ignore[call-overload]\n"
        "t.scatter([0], [1.0], reduce='median')  # type: ignore[arg-type]\n"
    )
    expect_success([*MYPY, "--python-version", "3.11", str(program)], cwd=tmp_path)


def test_the_types_list_the_names_of_reductions():
    parts = typing.get_args(ReduceOrAssign)
    names = {name for part in parts for name in typing.get_args(part) or (part,)}
    for name in names:
        inlay.put_along_axis(np.zeros(2), [0], [1.0], 0, reduce=name)
    with pytest.raises(ValueError, match="one of") as error:
        inlay.put_along_axis(np.zeros(2), [0], [1.0], 0, reduce="median")
    listed = str(error.value).split("one of ")[1]
    assert set(re.findall(r"\w+", listed)) - {"or"} == names
