"""Run the benchmark: all libraries side by side, one at a time, round after round.

    python -m benchmarks [--only PART] [--threads N] [--rounds N] [--scale S] [--python FILE]

See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import inputs, limit, plot, record, reference, rows, table
from benchmarks.contender import ROOT, Contender

# The process of each, and the environment that it runs in.
CONTENDERS = {
    "inlay": "inlay",
    "inlay-numpy": "inlay",
    "inlay-static": "inlay",
    "inlay-gpu": "inlay",
    "torch": "torch",
    "paddle": "paddle",
    "jax": "jax",
    "numpy": "numpy",
    "limit": "numpy",
    "gpu-copy": "inlay",
}
# Those that race only where a row names them.
SPECIAL = ("inlay-static", "inlay-gpu", "gpu-copy")
ROOM = 4 * 2**30  # bytes that the largest workload's files fit into
LEAST_ROUNDS = 3
BUDGET = 1.5  # seconds a library and workload; past it there are no more than the least rounds


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", default="", help="workloads whose name contains this, or a group")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--threads", type=int, default=cores, help="for each library")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes; to try roads out")
    parser.add_argument("--python", help="an interpreter that has all libraries, for a trial")
    return parser.parse_args()


def surroundings(threads: int) -> dict[str, str]:
    """The environment variables of the processes: where each library reads its threads."""
    count = str(threads)
    found = {**os.environ, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    for name in ("INLAY_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        found[name] = count
    if threads == 1:
        found["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return found


def confine(threads: int) -> None:
    """Keep the processes on so many cores: some libraries take what they see."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


@contextlib.contextmanager
def contenders(
    chosen: list[rows.Row], options: argparse.Namespace, log: Path
) -> Iterator[list[Contender]]:
    found: list[Contender] = []
    needed = {name for row in chosen for name in CONTENDERS if races(name, row)}
    with log.open("w") as text:
        try:
            for name, environment in CONTENDERS.items():
                if name not in needed:
                    continue
                python = options.python or str(ROOT / f".venv-bench/{environment}/bin/python")
                found.append(Contender(name, python, surroundings(options.threads), text))
            yield found
        finally:
            for one in found:
                one.end()


def races(name: str, row: rows.Row) -> bool:
    return name in row.contenders if row.contenders else name not in SPECIAL


def shared_folder() -> str | None:
    """Memory, not a disk: writing to that would go on while libraries are timed."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > ROOM else None


def run(row: rows.Row, field: list[Contender], options: argparse.Namespace) -> record.Entry:
    """One workload: all find their roads, then take turns."""
    racing = [one for one in field if races(one.name, row)]
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
        for one in racing:
            one.prepare(row, folder)
    # Who comes after whom changes from round to round.
    order = random.Random(row.name)
    for number in range(options.rounds):
        turn = [one for one in racing if one.ready]
        order.shuffle(turn)
        for one in turn:
            ours = one.name.startswith("inlay")
            if ours or number < LEAST_ROUNDS or one.spent < BUDGET:
                one.time()
    entry = record.entry(row, racing, moved, options.threads)
    for one in racing:
        one.release()
    return entry


def main() -> int:
    options = arguments()
    chosen = [row.scaled(options.scale) for row in rows.load(options.only)]
    if not chosen:
        print(f"no workload's name contains {options.only!r}", file=sys.stderr)
        return 2
    confine(options.threads)
    out = ROOT / "out"
    out.mkdir(exist_ok=True)
    began = time.monotonic()
    entries: list[record.Entry] = []
    with contenders(chosen, options, out / "bench.log") as field:
        versions = {one.name: one.hello for one in field}
        print(table.heading(), flush=True)
        for number, row in enumerate(chosen, 1):
            if sys.stderr.isatty():
                print(
                    f"{number} of {len(chosen)}: {row.name}\r", end="", file=sys.stderr, flush=True
                )
            entries.append(run(row, field, options))
            print(table.line(entries[-1], f"{number}/{len(chosen)}"), flush=True)
    whole = record.make(
        entries, versions, options.threads, options.rounds, time.monotonic() - began
    )
    print("\n" + table.summary(whole))
    partly = bool(options.only) or options.scale != 1
    if options.only == "gpu" and options.scale == 1:
        file = record.write(whole, ROOT / "benchmarks/record", f"{whole['date']}-gpu")
    elif partly:
        file = record.write(whole, out, "bench")
    else:
        file = record.write(whole, ROOT / "benchmarks/record", whole["date"])
    print(f"\nwritten: {file.relative_to(ROOT)}, {file.with_suffix('.md').relative_to(ROOT)}")
    if not partly and options.threads > 1:
        plot.draw(whole, ROOT / "docs/bench.png")
        print("drawn: docs/bench.png")
    wrong = record.wrong(whole)
    for name in wrong:
        print(f"Inlay's result is wrong or missing: {name}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
