"""Large calls run on the OpenMP threads of torch, and a forked child does without them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import torch

import inlay
from inlay import _bridge


def large() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    x = torch.rand(20_000, 32, generator=generator)
    index = torch.randint(0, 20_000, (60_000,), generator=generator)
    return x, index, torch.rand(60_000, 32, generator=generator)


def expected(x: torch.Tensor, index: torch.Tensor, updates: torch.Tensor) -> np.ndarray:
    """The result on NumPy arrays with one thread."""
    before = inlay.get_num_threads()
    inlay.set_num_threads(1)
    try:
        arrays = [tensor.numpy() for tensor in (x, index, updates)]
        return inlay.scatter(*arrays, overwrite=False)
    finally:
        inlay.set_num_threads(before)


def test_the_runtime_of_torch_is_found():
    assert _bridge.share_threads("torch")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_do_not_depend_on_the_threads_of_torch(threads):
    tensors = large()
    want = expected(*tensors)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        got = inlay.scatter(*tensors, overwrite=False)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(got.numpy(), want)


def test_calls_of_several_python_threads_and_operations_of_torch_take_turns():
    tensors = large()
    want = expected(*tensors)
    wrong = []

    def work() -> None:
        for _ in range(5):
            torch.rand(500, 500) @ torch.rand(500, 500)
            if not np.array_equal(inlay.scatter(*tensors, overwrite=False).numpy(), want):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_an_error_in_a_large_call_leaves_the_threads_usable():
    x, index, updates = large()
    bad = index.clone()
    bad[-1] = 20_000
    with pytest.raises(IndexError, match=r"index\[59999\] is 20000"):
        inlay.scatter(x, bad, updates)
    np.testing.assert_array_equal(
        inlay.scatter(x, index, updates, overwrite=False).numpy(), expected(x, index, updates)
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_computes_on_its_own_threads():
    # The threads of OpenMP don't exist in the child, and torch itself would wait for them forever.
    code = """
        import os, warnings, torch, inlay
        warnings.simplefilter("ignore")
        x, index = torch.zeros(20_000, 32), torch.randint(0, 20_000, (60_000,))
        updates = torch.rand(60_000, 32)
        want = inlay.scatter(x, index, updates, overwrite=False)
        pid = os.fork()
        if pid == 0:
            got = inlay.scatter(x, index, updates, overwrite=False)
            os._exit(0 if (got.numpy() == want.numpy()).all() else 1)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=120, check=False)
    assert done.returncode == 0


ALONE = """
import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

import inlay

INDEX = torch.arange(2_000_000) % 1000


def count():
    inlay.scatter(torch.zeros(1000), INDEX, torch.ones(len(INDEX)), overwrite=False)
    names = [file.read_text() for file in Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("inlay-") for name in names)


class Counts(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, at):
        return count()


inlay.index_select(torch.ones(3), torch.tensor([1]))
how = sys.argv[1]
if how == "workers":
    print(sum(DataLoader(Counts(), num_workers=2)).item())
else:
    torch.set_num_threads(1)
    if how == "chosen":
        inlay.set_num_threads(2)
    print(count())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.parametrize(("how", "own"), [("workers", 0), ("alone", 0), ("chosen", 1)])
def test_a_process_in_which_torch_has_one_thread_uses_one(how: str, own: int, tmp_path):
    file = tmp_path / "alone.py"
    file.write_text(ALONE)
    result = subprocess.run([sys.executable, str(file), how], capture_output=True, text=True)
    assert (result.stdout.strip(), result.returncode) == (str(own), 0), result.stderr
