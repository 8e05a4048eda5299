"""How the work of a call grows with the number of threads, and what that means on more cores.

    python -m benchmarks --only cores

Few machines have 64 cores, but any machine can run 64 threads. The clock on the wall says nothing
then. The processor time does: that of all threads together, and that of each part into which a call
is split. See benchmarks/README.md.
"""

from __future__ import annotations

import csv
import heapq
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks import record
from benchmarks.contender import ROOT

THREADS = (1, 2, 4, 16, 64)
MANY = (16, 64)  # the numbers of threads that have targets
CORES = (8, 32, 128)
ROUNDS = 5
BANDWIDTH = 300e9  # bytes per second that the modelled machine moves at most
PICTURE = ROOT / "docs/cores.png"
HEADING = ("workload", *(f"ms, {n}" for n in THREADS), "64 / 1", "longest, 16", "longest, 64")
HEADING += ("in turn: 16 / 1", "64 / 1", "longest, 16", "longest, 64", "bytes / entry")
HEADING += tuple(f"x, {n} cores" for n in CORES)


@dataclass
class Case:
    """A call, the bytes that it must move, and its number of index entries, if it has an index."""

    name: str
    call: Callable[[], object]
    moved: int
    entries: int = 0


@dataclass
class Measured:
    """The processor time of a call by the number of threads, and its longest thread."""

    name: str
    total: dict[int, float]  # seconds
    longest: dict[int, float]  # seconds
    in_turn: dict[int, float]  # seconds, of the caller and of all parts by one helper
    in_turn_longest: dict[int, float]  # seconds
    memory: float  # bytes beside the result and the index, per index entry
    speedup: dict[int, float]  # by the number of cores of the modelled machine

    def cells(self) -> list[str]:
        """The cells of a table."""
        balance = [self.longest[n] * n / self.total[n] for n in MANY]
        even = [self.in_turn_longest[n] * n / self.in_turn[n] for n in MANY]
        return [
            self.name,
            *(f"{self.total[n] * 1e3:.1f}" for n in THREADS),
            f"{self.total[64] / self.total[1]:.2f}",
            *(f"{one:.2f}" for one in balance),
            *(f"{self.in_turn[n] / self.in_turn[1]:.2f}" for n in MANY),
            *(f"{one:.2f}" for one in even),
            f"{self.memory:.1f}" if self.memory >= 0 else "-",
            *(f"{self.speedup[n]:.1f}" for n in CORES),
        ]


def indices(
    rng: np.random.Generator, entries: int, places: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Indices whose entries are distributed in several ways."""
    uniform = rng.integers(0, places, entries)
    yield "uniform", uniform
    yield "sorted", np.sort(uniform)
    # Zipf's law with the exponent 1: the density of a place is the inverse of its number.
    places_of = np.minimum((places ** rng.random(entries) - 1).astype(np.int64), places - 1)
    yield "Zipf", places_of
    yield "one place", np.zeros(entries, np.int64)


def cases(scale: float) -> Iterator[Case]:
    """The calls that are measured."""
    import inlay

    rng = np.random.default_rng(0)
    tensor = inlay.to_tensor

    def floats(*shape: int) -> inlay.Tensor:
        return tensor(rng.standard_normal(shape, np.float32))

    def rows(count: int, row: int) -> inlay.Tensor:
        return floats(count, row) if row > 1 else floats(count)

    sizes = {1: 10_000_000, 8: 2_000_000, 64: 1_000_000, 512: 100_000}
    for row, entries in ((row, int(count * scale)) for row, count in sizes.items()):
        updates = rows(entries, row)
        for places in (100, 10_000, 1_000_000, 30_000_000):
            places = max(int(places * scale), 10) if places > 100 else places
            if places * row > 130_000_000:
                continue
            x = rows(places, row)
            for kind, values in indices(rng, entries, places):
                if places > 1_000_000 and kind not in ("uniform", "sorted"):
                    continue
                index = tensor(values)
                moved = 4 * row * (entries + 2 * places) + 8 * entries
                what = f"{entries / 1e6:g}M rows of {row} into {places:,}, {kind}"
                for name, how in (("sum", {"reduce": "sum"}), ("assign", {})):

                    def call(x=x, index=index, updates=updates, how=how) -> object:
                        return inlay.scatter(x, index, updates, overwrite=not how, **how)

                    yield Case(f"scatter {name}, {what}", call, moved, entries)
                if places in (10_000, 1_000_000) and kind == "uniform":
                    yield Case(
                        f"index_select, {what}",
                        lambda x=x, index=index: inlay.index_select(x, index),
                        4 * 2 * row * entries + 8 * entries,
                        entries,
                    )
                    x.stop_gradient = False

                    def grad(x=x, index=index) -> object:
                        x.clear_grad()
                        inlay.index_select(x, index).sum().backward()
                        return x.grad

                    yield Case(f"gradient of index_select, {what}", grad, 2 * moved)
                    x.stop_gradient = True
    yield from exact(rng, scale)
    side = max(int(4000 * scale**0.5), 8)
    x, y = floats(side, side), floats(side, side)
    along = tensor(rng.integers(0, side, (side, side)))
    mask = tensor(rng.random((side, side)) < 0.5)
    source = floats(side * side)
    whole, what = 4 * side * side, f"{side} x {side}"
    for axis in (0, 1):
        yield Case(
            f"put_along_axis sum, {what}, axis {axis}",
            lambda axis=axis: inlay.put_along_axis(x, along, y, axis, "add", broadcast=False),
            5 * whole,
            side * side,
        )
        yield Case(
            f"take_along_axis, {what}, axis {axis}",
            lambda axis=axis: inlay.take_along_axis(x, along, axis, False),
            4 * whole,
            side * side,
        )
        yield Case(f"sum, {what}, axis {axis}", lambda axis=axis: x.sum(axis), whole)
    yield Case(f"sum, {what}", lambda: x.sum(), whole)
    yield Case(f"masked_scatter, {what}", lambda: inlay.masked_scatter(x, mask, source), 3 * whole)
    yield Case(f"masked_select, {what}", lambda: inlay.masked_select(x, mask), 2 * whole)
    yield Case(f"masked_fill, {what}", lambda: inlay.masked_fill(x, mask, 0.0), 2 * whole)
    yield Case(f"x + y, {what}", lambda: x + y, 3 * whole)


def exact(rng: np.random.Generator, scale: float) -> Iterator[Case]:
    """Reductions whose partial results can be merged without a change of the bits."""
    import inlay

    tensor = inlay.to_tensor
    for row, entries in ((1, int(10_000_000 * scale)), (64, int(1_000_000 * scale))):
        shape = (entries, row) if row > 1 else (entries,)
        integers = tensor(rng.integers(-1000, 1000, shape, np.int32))
        floats = tensor(rng.standard_normal(shape, np.float32))
        for places in (100, max(int(10_000 * scale), 10)):
            for kind, values in indices(rng, entries, places):
                if kind == "sorted":
                    continue
                index = tensor(values)
                moved = 4 * row * (entries + 2 * places) + 8 * entries
                what = f"{entries / 1e6:g}M rows of {row} into {places:,}, {kind}"
                for name, updates in (("sum", integers), ("amax", floats)):
                    x = updates[:places]

                    def call(x=x, index=index, updates=updates, reduce=name) -> object:
                        return inlay.scatter(x, index, updates, overwrite=False, reduce=reduce)

                    dtype = "int32" if name == "sum" else "float32"
                    yield Case(f"scatter {name} of {dtype}, {what}", call, moved, entries)


def longest(phases: list[list[int]], alone: float, threads: int) -> float:
    """The time until the last thread is done, in seconds.

    In each phase, a thread takes the next part when it is free. Between phases one thread works.
    """
    took = alone
    for parts in phases:
        free = [0] * threads
        for part in parts:
            heapq.heapreplace(free, free[0] + part)
        took += max(free) / 1e9
    return took


def measure(case: Case, bandwidth: float) -> Measured:
    """Measure a call with each number of threads."""
    import inlay
    from inlay._inlay import _recorded

    total: dict[int, float] = {}
    ends: dict[int, float] = {}
    memory = -1.0

    def recorded(in_turn: bool) -> tuple[float, float, list[list[int]]]:
        """The seconds of the process, those of the caller alone, and the parts of each phase."""
        began = time.process_time_ns()
        alone, phases = _recorded(case.call, in_turn)
        return (time.process_time_ns() - began) / 1e9, alone / 1e9, phases

    def by_threads(threads: int) -> tuple[float, float]:
        """The processor time of all threads, and the time until the last of them is done."""
        inlay.set_num_threads(threads)
        case.call()
        rounds = [recorded(in_turn=False) for _ in range(ROUNDS)]
        ends = [longest(phases, alone, threads) for _, alone, phases in rounds]
        return statistics.median(total for total, *_ in rounds), statistics.median(ends)

    def in_turn(threads: int) -> tuple[float, float]:
        """The same of the parts that are run in turn: of each part, the median time."""
        inlay.set_num_threads(threads)
        case.call()
        rounds = [recorded(in_turn=True) for _ in range(ROUNDS)]
        alone = statistics.median(alone for _, alone, _ in rounds)
        # Calls are split into the same parts, so the parts of a phase can be compared.
        every = zip(*(phases for *_, phases in rounds), strict=True)
        phases = [list(map(statistics.median, zip(*same, strict=True))) for same in every]
        return alone + sum(map(sum, phases)) / 1e9, longest(phases, alone, threads)

    for threads in THREADS:
        total[threads], ends[threads] = by_threads(threads)
    turns = {threads: in_turn(threads) for threads in (1, *MANY)}
    if case.entries:
        # What the call has used beside its result is kept for the next call.
        inlay.set_num_threads(64)
        inlay.set_cache_limit(1 << 40)
        inlay.empty_cache()
        result = case.call()
        memory = inlay.memory_stats()["cached"] / case.entries
        del result
    speedup = {}
    for cores in CORES:
        _, last = in_turn(cores)
        slowest = max(last, case.moved / min(cores * bandwidth, BANDWIDTH))
        speedup[cores] = turns[1][1] / slowest
    inlay.set_num_threads(1)
    sums, lasts = ({n: pair[k] for n, pair in turns.items()} for k in (0, 1))
    return Measured(case.name, total, ends, sums, lasts, memory, speedup)


def bandwidth_of_a_core() -> float:
    """The bytes per second that a copy on one core reads and writes."""
    a, b = np.zeros(1 << 24), np.ones(1 << 24)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        np.copyto(a, b)
        times.append(time.perf_counter() - began)
    return 2 * a.nbytes / min(times)


def page(found: list[Measured], bandwidth: float) -> str:
    """The page of a record."""
    lines = [
        "# Work and balance on many threads",
        "",
        f"Measured on {date.today()} by `make bench ONLY=cores`. Times are processor times of all",
        "threads together, in ms, by the number of threads. *longest* is the time of the longest",
        "thread, divided by an equal share of the work. *In turn*, one helper runs all parts, so",
        "that they neither interrupt each other nor share the memory bandwidth. The last columns",
        f"are modelled speed-ups over one thread, with {bandwidth / 1e9:.0f} GB/s for each core",
        f"and at most {BANDWIDTH / 1e9:.0f} GB/s. See [benchmarks/README.md](../../README.md).",
        "",
        "| " + " | ".join(HEADING) + " |",
        "|---|" + "---:|" * (len(HEADING) - 1),
    ]
    lines += ["| " + " | ".join(one.cells()) + " |" for one in found]
    lines += [
        "",
        "Workloads that take at most 1.3 times the processor time of one thread, and workloads",
        f"whose longest thread takes at most 1.5 times its share, of {len(found)}:",
        "",
        "| threads | work | longest | work, in turn | longest, in turn |",
        "|---:|---:|---:|---:|---:|",
    ]
    for n in MANY:
        met = (
            sum(one.total[n] <= 1.3 * one.total[1] for one in found),
            sum(one.longest[n] * n <= 1.5 * one.total[n] for one in found),
            sum(one.in_turn[n] <= 1.3 * one.in_turn[1] for one in found),
            sum(one.in_turn_longest[n] * n <= 1.5 * one.in_turn[n] for one in found),
        )
        lines.append(f"| {n} | " + " | ".join(map(str, met)) + " |")
    return "\n".join([*lines, ""])


def draw(found: list[Measured], file: Path) -> None:
    """Draw the work and the modelled speed-up of each workload."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for one in found:
        work = [one.total[n] / one.total[1] for n in THREADS]
        left.plot(THREADS, work, color="#3d4db7", alpha=0.35, lw=1)
        right.plot((1, *CORES), (1, *one.speedup.values()), color="#17a398", alpha=0.35, lw=1)
    left.axhline(1.3, color="#e4572e", lw=1, ls="--")
    right.plot((1, 128), (1, 128), color="#667085", lw=1, ls="--")
    left.set_title("Processor time of all threads, relative to one", fontsize=9, loc="left")
    right.set_title("Modelled speed-up over one core", fontsize=9, loc="left")
    for axes, label in ((left, "threads"), (right, "cores")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel(label, fontsize=8)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.tick_params(labelsize=8)
        axes.grid(color="#e3e7ee", lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150, facecolor="white")


def main(scale: float) -> int:
    """Measure all cases, print the table, and write the record."""
    bandwidth = bandwidth_of_a_core()
    widths = [62] + [max(len(cell), 7) for cell in HEADING[1:]]
    print("  ".join(cell.ljust(width) for cell, width in zip(HEADING, widths, strict=True)))
    found = []
    for case in cases(scale):
        found.append(measure(case, bandwidth))
        cells = zip(found[-1].cells(), widths, strict=True)
        name, *numbers = (cell.rjust(width) for cell, width in cells)
        print("  ".join((name.strip().ljust(widths[0]), *numbers)), flush=True)
    folder = record.FOLDER / "cores" if scale == 1 else ROOT / "out"
    folder.mkdir(exist_ok=True)
    file = folder / (f"{date.today()}.csv" if scale == 1 else "cores.csv")
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(HEADING)
        writer.writerows(one.cells() for one in found)
    file.with_suffix(".md").write_text(page(found, bandwidth))
    if scale == 1:
        draw(found, PICTURE)
    print("\n" + "\n".join(page(found, bandwidth).strip().splitlines()[-7:]))
    print(f"\nwritten: {file.relative_to(ROOT)}, {file.with_suffix('.md').relative_to(ROOT)}")
    return 0
