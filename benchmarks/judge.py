"""The entries of a record, from measurements: medians, the peer to compare with, and targets."""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import table
from benchmarks.contender import Contender
from benchmarks.record import PEERS, Entry, Record
from benchmarks.rows import Row


def entry(
    row: Row, contenders: Sequence[Contender], moved: tuple[int, int] | None, threads: int
) -> Entry:
    """The entry of one workload. With one thread, every target is the best peer's time."""
    if threads == 1:
        least = None if row.contenders else 1
        alone = {"at_least": least, "against": "", "at_most_us": None, "numpy_at_least": None}
        row = dataclasses.replace(row, **alone, eager_at_least=None)
    measured = {one.name: one for one in contenders if one.samples}
    peers = [name for name in PEERS if name in measured]
    seconds = {name: statistics.median(one.samples) for name, one in measured.items()}
    if {"matmul", "inlay-bridge"} <= set(seconds):
        seconds["alone"] = seconds["matmul"] + seconds["inlay-bridge"]
    found = Entry(
        workload=row.name,
        group=row.group,
        op=row.op,
        mode=row.mode,
        move=row.moves,
        elements=row.count,
        moved=sum(moved or ()),
        ours=row.ours,
        seconds=seconds,
        variants={name: measured[name].prepared["variant"] for name in peers},
        # A peer with a wrong result is recorded but not compared.
        different=tuple(n for n in peers if measured[n].prepared["verdict"] == "different"),
        peer="",
        at_least=row.at_least,
        targets=0,
        missed="",
    )
    found = dataclasses.replace(found, peer=row.against or found.best)
    judged = list(targets(row, found))
    missed = [f"{what} {table.times(value)}" for what, value, met in judged if not met]
    return dataclasses.replace(found, targets=len(judged), missed="; ".join(missed))


def targets(row: Row, found: Entry) -> Iterator[tuple[str, float, bool]]:
    """The targets of a row: the name, the measured value, and whether the target is met."""
    eager, faster = found.over("inlay"), found.over(found.peer)
    if row.eager_at_least and eager:
        yield "faster than eager", eager, eager >= row.eager_at_least
    if row.at_least and faster and found.peer not in found.different:
        what = f"faster than {row.against or 'the best peer'}"
        yield what, faster, faster >= row.at_least
    if row.at_most_us and found.time:
        micro = found.time * 1e6
        yield "microseconds", micro, micro <= row.at_most_us
    if row.numpy_at_least and {"inlay-numpy", "numpy"} <= set(found.seconds):
        value = found.seconds["numpy"] / found.seconds["inlay-numpy"]
        yield "NumPy in and out, faster than NumPy", value, value >= row.numpy_at_least


def differences(row: Row, contenders: Sequence[Contender]) -> Iterator[str]:
    """The peers with another result, and the peers that can't compute the workload."""
    for one in contenders:
        if one.name not in PEERS or not one.prepared:
            continue
        prepared: dict[str, Any] = one.prepared
        failed = {
            name: tried["error"]
            for name, tried in prepared["tried"].items()
            if isinstance(tried["error"], str)
        }
        if prepared.get("verdict") == "different":
            yield f"{row.name}: \\* {one.name}'s result differs ({prepared['error']:.1e})"
        elif prepared.get("verdict") == "rounded":
            yield f"{row.name}: {one.name} rounds at every step ({prepared['error']:.1e})"
        if failed and not prepared.get("variant"):
            name, error = next(iter(failed.items()))
            yield f"{row.name}: {one.name} can't: {name}: {error[:80]}"
        for name, error in failed.items():
            if prepared.get("variant") and error.startswith(("crashed", "timed", "died")):
                yield f"{row.name}: {one.name}, {name}: {error}"


def wrong(row: Row, contenders: Sequence[Contender]) -> Iterator[str]:
    """Inlay's contenders without a result, or with a wrong one."""
    for one in contenders:
        if not one.name.startswith("inlay"):
            continue
        if one.name == "inlay-numpy" and row.mode == "backward":  # arrays have no gradients
            continue
        if not one.samples or one.prepared["verdict"] != "same":
            yield f"{row.name}: {one.name}: {one.prepared['tried']}"


def make(
    entries: Sequence[Entry],
    notes: Sequence[str],
    hello: dict[str, dict[str, str]],
    threads: int,
    rounds: int,
    took: float,
) -> Record:
    numpys = {one["numpy"] for one in hello.values()}
    mixed = [f"NumPy is not the same everywhere: {sorted(numpys)}"] if len(numpys) > 1 else []
    devices = [one["device"] for one in hello.values() if "device" in one]
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    named = [name for name in hello if name in ("inlay", *PEERS)]
    return Record(
        datetime.date.today().isoformat(),
        threads,
        rounds,
        round(took / 60, 1),
        f"{cpu()}, {os.cpu_count()} cores, {memory()}, {system}",
        ", ".join(f"{name} {hello[name]['version']}" for name in named),
        (*mixed, *devices, *notes),
        tuple(entries),
    )


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (AttributeError, ValueError, OSError):
        return "unknown memory"
