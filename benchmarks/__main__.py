"""Run the benchmark: time all libraries on each workload, in alternation, for several rounds.

    python -m benchmarks [--only PART] [--threads N] [--rounds N] [--scale S] [--python FILE]

See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from benchmarks import cores, figures, judge, processes, record, rows, strides, table
from benchmarks.contender import ROOT, Contender

# Each contender with its environment and its module in libraries/.
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
# The contenders that share the process of a framework. The framework is prepared first: if it
# crashes, the process is started again, and contenders that were prepared before are lost.
SHARING = ("inlay", "inlay-bridge", "inlay-compiled", "inlay-alternating", "matmul")
LEAST_ROUNDS = 3
BUDGET = 1.5  # seconds per library and workload; a slower library gets fewer rounds


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", default="", help="workloads whose name contains this, or a group")
    parser.add_argument("--threads", type=int, default=processes.cores(), help="for each library")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes, for a trial")
    parser.add_argument("--python", help="an interpreter that has all libraries, for a trial")
    return parser.parse_args()


def available() -> list[tuple[str, str, str]]:
    """Each contender with its environment and the host of its process, if it shares one."""
    own = [(name, environment, "") for name, environment in CONTENDERS.items()]
    shared = [(name, host, host) for host in rows.HOSTS for name in (host, *SHARING)]
    return own + shared


def measure(row: rows.Row, contenders: list[Contender], rounds: int) -> tuple[int, int] | None:
    """Prepare one workload, and time the contenders in alternation."""
    moved = processes.prepare(row, contenders)
    # The order changes each round, so that no contender always runs after the same other one.
    order = random.Random(row.name)
    for number in range(rounds):
        turn = [one for one in contenders if one.ready]
        order.shuffle(turn)
        for one in turn:
            ours = one.name.startswith("inlay")
            if ours or number < LEAST_ROUNDS or one.spent < BUDGET:
                one.time()
    return moved


def main() -> int:
    options = arguments()
    if options.only == "cores":
        return cores.main(options.scale)
    if options.only.startswith("strides"):
        return strides.main(options.scale, options.only.removeprefix("strides").strip("/"))
    chosen = [row.scaled(options.scale) for row in rows.load(options.only)]
    if not chosen:
        print(f"no workload's name contains {options.only!r}", file=sys.stderr)
        return 2
    processes.confine(options.threads)
    commands = [
        processes.Command(name, name, options.python or processes.python_of(environment), host)
        for name, environment, host in available()
        if any(processes.takes_part(name, row, host) for row in chosen)
    ]
    began = time.monotonic()
    entries: list[record.Entry] = []
    notes: list[str] = []
    wrong: list[str] = []
    log = ROOT / "out/bench.log"
    log.unlink(missing_ok=True)
    with processes.started(commands, options.threads, log) as started:
        hello = {one.name: one.hello for one in started}
        print(table.heading(bridges=bool(chosen[0].host)), flush=True)
        for number, row in enumerate(chosen, 1):
            contenders = [one for one in started if processes.takes_part(one.name, row, one.host)]
            moved = measure(row, contenders, options.rounds)
            entries.append(judge.entry(row, contenders, moved, options.threads))
            notes += judge.differences(row, contenders)
            wrong += judge.wrong(row, contenders)
            print(table.line(entries[-1], f"{number}/{len(chosen)}"), flush=True)
            for one in contenders:
                one.release()
    took = time.monotonic() - began
    whole = judge.make(entries, notes, hello, options.threads, options.rounds, took)
    print("\n" + table.summary(whole))
    if options.scale == 1 and options.only in ("", "gpu", "bridges"):
        name = "-".join(filter(None, (whole.date, options.only)))
        file = table.write(whole, record.FOLDER, name)
    else:
        file = table.write(whole, ROOT / "out", "bench")
    print(f"\nwritten: {file.relative_to(ROOT)}, {file.with_suffix('.md').relative_to(ROOT)}")
    if file == record.newest():
        figures.make(file)
    for text in wrong:
        print(f"Inlay's result is wrong or missing: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
