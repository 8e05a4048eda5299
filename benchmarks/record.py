"""The record of a run: what was measured, on what, and how it stands beside the targets."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import platform
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import table
from benchmarks.contender import Contender
from benchmarks.rows import Row

Entry = dict[str, Any]
Record = dict[str, Any]

PEERS = ("torch", "paddle", "jax", "numpy")
NEAR = 1.3  # how many times the limit a move may take
PAST_CACHES = 10**7  # elements; from there on a move's time is to grow with its size
STEADY = 1.5  # how much the time per element may change there


def entry(
    row: Row, racing: Iterable[Contender], moved: tuple[int, int] | None, threads: int
) -> Entry:
    """What became of one workload. With one thread the target is the best peer, for every row."""
    if threads == 1:
        least = None if row.contenders else 1
        alone = {"at_least": least, "against": "", "at_most_us": None, "numpy_at_least": None}
        alone["eager_at_least"] = None
        row = dataclasses.replace(row, **alone)
    measured = {one.name: measurement(one) for one in racing}
    found: Entry = {
        "name": row.name,
        "row": row.plain(),
        "moves": row.moves,
        "elements": row.count,
        "moved": moved,
        "measured": measured,
    }
    medians = {name: one["median"] for name, one in measured.items() if "median" in one}
    # A result that is another one is no result: it is in the record, and not in the race.
    fair = {
        name: medians[name]
        for name in PEERS
        if name in medians and measured[name]["verdict"] != "different"
    }
    ours = medians.get(row.ours)
    if fair:
        found["best"] = min(fair, key=lambda name: fair[name])
    if ours and fair:
        found["ratio"] = fair[found["best"]] / ours
    limit = medians.get("limit") or medians.get("gpu-copy")
    if ours and limit:
        found["of_limit"] = ours / limit
    found["checks"] = list(checks(row, medians, fair, found))
    return found


def measurement(one: Contender) -> dict[str, Any]:
    prepared = dict(one.prepared)
    if not one.laps:
        return prepared
    return {
        "median": statistics.median(one.laps),
        "low": min(one.laps),
        "high": max(one.laps),
        "rounds": len(one.laps),
        "calls": one.calls,
        "road": prepared["road"],
        "verdict": prepared["verdict"],
        "error": prepared["error"],
        "tried": prepared["tried"],
    }


def checks(
    row: Row, medians: dict[str, float], fair: dict[str, float], found: Entry
) -> Iterable[dict[str, Any]]:
    """Each target of a row: its name, what it asks for, and what was measured."""

    def at_least(what: str, bound: float, value: float) -> dict[str, Any]:
        return {"what": what, "bound": bound, "value": value, "met": value >= bound}

    ours = medians.get(row.ours)
    if row.eager_at_least and ours and "inlay" in medians:
        yield at_least("faster than eager", row.eager_at_least, medians["inlay"] / ours)
    if row.at_least and ours:
        peer = row.against or found.get("best")
        if peer in fair:
            yield at_least(
                f"faster than {row.against or 'the best peer'}", row.at_least, fair[peer] / ours
            )
    if row.at_most_us and ours:
        micro = ours * 1e6
        met = micro <= row.at_most_us
        yield {"what": "microseconds", "bound": row.at_most_us, "value": micro, "met": met}
    if row.numpy_at_least and {"inlay-numpy", "numpy"} <= set(medians):
        value = medians["numpy"] / medians["inlay-numpy"]
        yield at_least("NumPy in and out, faster than NumPy", row.numpy_at_least, value)


def make(
    entries: list[Entry], hello: dict[str, dict[str, str]], threads: int, rounds: int, took: float
) -> Record:
    numpys = {one["numpy"] for one in hello.values()}
    return {
        "date": datetime.date.today().isoformat(),
        "machine": {
            "cpu": cpu(),
            "cores": os.cpu_count(),
            "memory": memory(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "versions": {name: one["version"] for name, one in hello.items() if "-" not in name},
        "notes": [
            *([f"NumPy is not the same everywhere: {sorted(numpys)}"] if len(numpys) > 1 else []),
            *(one["device"] for one in hello.values() if "device" in one),
        ],
        "threads": threads,
        "rounds": rounds,
        "minutes": round(took / 60, 1),
        "growth": growth(entries),
        "entries": entries,
    }


def growth(entries: list[Entry]) -> dict[str, Any]:
    """The nanoseconds an element takes, by operation and number of elements."""
    found: dict[str, Any] = {}
    for one in entries:
        if one["row"].get("group") == "growth" and "median" in one["measured"]["inlay"]:
            per = one["measured"]["inlay"]["median"] / one["elements"] * 1e9
            steps = found.setdefault(one["row"]["op"], {"elements": [], "nanoseconds": []})
            steps["elements"].append(one["elements"])
            steps["nanoseconds"].append(per)
    for steps in found.values():
        pairs = zip(steps["elements"], steps["nanoseconds"], strict=True)
        large = [per for count, per in pairs if count >= PAST_CACHES * 0.99]
        if len(large) > 1:
            steps["past_caches"] = max(large) / min(large)
    return found


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
        return "unknown"


def wrong(whole: Record) -> list[str]:
    """Workloads that Inlay did not do, or did wrong."""
    found = []
    for one in whole["entries"]:
        for name in {"inlay", "inlay-numpy", one["row"].get("ours", "inlay")}:
            measured = one["measured"].get(name)
            if measured is None or (name == "inlay-numpy" and backward(one)):
                continue
            if "median" not in measured or measured["verdict"] != "same":
                found.append(f"{one['name']}: {name}: {measured.get('tried')}")
    return found


def backward(one: Entry) -> bool:
    return one["row"].get("mode") == "backward"


def write(whole: Record, folder: Path, name: str) -> Path:
    """The record as JSON and, beside it, as a page."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{table.threads(whole).replace(' ', '-')}.json"
    file.write_text(json.dumps(shortened(whole), indent=1) + "\n", encoding="utf-8")
    file.with_suffix(".md").write_text(table.page(whole), encoding="utf-8")
    return file


def shortened(value: Any) -> Any:
    """Four digits are more than a measurement has."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: shortened(one) for key, one in value.items()}
    return [shortened(one) for one in value] if isinstance(value, list | tuple) else value
