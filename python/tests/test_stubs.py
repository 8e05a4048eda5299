"""The type stubs match the module: names, arguments, defaults."""

import subprocess
import sys


def test_stubs_match_the_module():
    command = [sys.executable, "-m", "mypy.stubtest", "inlay"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_stubs_are_what_a_type_checker_needs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\n"
        "import inlay\n"
        "t: inlay.Tensor = inlay.scatter(inlay.zeros([3]), [0], [1.0])\n"
        "u: inlay.Tensor = t.slice_scatter([1.0], start=2).masked_fill(t > 0, 2)\n"
        "a = inlay.scatter_(np.zeros(3), [0], [1.0])\n"
        "b: np.ndarray = a\n"
        "inlay.scatter(t, [0], [1.0], axis='x')  # type: ignore[call-overload]\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(program)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
