"""The processes of a run: the contenders, their environments and their inputs."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import inputs, limit, reference
from benchmarks.contender import ROOT, Contender, Process
from benchmarks.rows import Row

# Contenders that are timed only on rows that name them.
SPECIAL = ("inlay-static", "inlay-gpu", "gpu-copy")
ROOM = 4 * 2**30  # bytes; enough for the files of the largest workload


def takes_part(name: str, row: Row, host: str = "") -> bool:
    """Whether a contender, in the process of a host, is timed on a workload."""
    if host != row.host:
        return False
    return name in row.contenders if row.contenders else name not in SPECIAL


def cores() -> int:
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return found or 1


def confine(threads: int) -> None:
    """Restrict this process and its children to `threads` cores: some libraries use all cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def variables(threads: int) -> dict[str, str]:
    """The environment variables that set the libraries' number of threads."""
    found = {**os.environ, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    for name in ("INLAY_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        found[name] = str(threads)
    if threads == 1:
        found["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return found


def python_of(environment: str) -> str:
    return str(ROOT / f".venv-bench/{environment}/bin/python")


@dataclass(frozen=True)
class Command:
    """A contender to start. Contenders with the same host share one process."""

    name: str
    library: str
    python: str
    host: str = ""


@contextlib.contextmanager
def started(commands: Sequence[Command], threads: int, log: Path) -> Iterator[list[Contender]]:
    """Start the processes of some contenders, and end them."""
    groups: dict[tuple[str, str], list[Command]] = {}
    for one in commands:
        groups.setdefault((one.host, "" if one.host else one.name), []).append(one)
    found: list[Contender] = []
    log.parent.mkdir(exist_ok=True)
    with log.open("a") as text:
        try:
            for group in groups.values():
                libraries = [one.library for one in group]
                process = Process(libraries, group[0].python, variables(threads), text)
                found += [Contender(one.name, one.library, process, one.host) for one in group]
            yield found
        finally:
            for contender in found:
                contender.process.end()


def shared_folder() -> str | None:
    """A directory in memory. Writes to a disk would continue during the timings."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > ROOM else None


def prepare(row: Row, contenders: Iterable[Contender]) -> tuple[int, int] | None:
    """Pass the inputs and expected results of a workload to the contenders.

    Returns the bytes that the workload must read and write, if it has a limit.
    """
    with tempfile.TemporaryDirectory(prefix="bench-", dir=shared_folder()) as name:
        folder = Path(name)
        arrays = reference.given(row, inputs.build(row))
        expected = reference.results(row, arrays)
        moved = limit.moved(row, arrays, expected["result"])
        inputs.save(folder, inputs.laid(arrays, row))
        inputs.save(folder, expected)
        if moved:
            np.save(folder / "moved", np.array(moved))
        del arrays, expected
        for one in contenders:
            one.prepare(row, folder)
    return moved
