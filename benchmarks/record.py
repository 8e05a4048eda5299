"""The record of a run: a CSV file with one line per workload.

Comment lines at the top of the file give the date, the machine and the versions of the run.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("record")
PEERS = ("torch", "paddle", "jax", "numpy")
CONTENDERS = (
    *("inlay", "inlay-numpy", "inlay-static", "inlay-gpu"),
    *("inlay-bridge", "inlay-compiled", "inlay-alternating"),
    *PEERS,
    *("limit", "gpu-copy", "matmul", "alone"),
)


@dataclass(frozen=True)
class Entry:
    """The measurements of one workload."""

    workload: str
    group: str
    op: str
    mode: str
    move: bool  # values are only moved, not computed
    elements: int
    moved: int  # bytes that must be read and written; 0 without a limit
    ours: str  # the contender that must meet the targets
    seconds: dict[str, float]  # the median time of each contender
    variants: dict[str, str]  # the variant that each peer used
    different: tuple[str, ...]  # the peers whose result is not the expected one
    peer: str  # the peer that the target refers to
    at_least: float | None  # the target: how many times faster than that peer Inlay must be
    targets: int  # the number of targets of the workload
    missed: str  # the targets that were missed

    @property
    def time(self) -> float | None:
        return self.seconds.get(self.ours)

    @property
    def best(self) -> str:
        """The fastest peer with the expected result, or an empty string if there is none."""
        fair = [name for name in PEERS if name in self.seconds and name not in self.different]
        return min(fair, key=lambda name: self.seconds[name], default="")

    def over(self, name: str) -> float | None:
        """The time of another contender divided by Inlay's."""
        return self.seconds[name] / self.time if self.time and name in self.seconds else None

    @property
    def host(self) -> str:
        """The framework on whose tensors and in whose process the workload ran, if any."""
        return self.workload.split("/")[1] if self.group.startswith("bridges") else ""

    @property
    def of_limit(self) -> float | None:
        """Inlay's time divided by that of a copy of the bytes."""
        limit = self.seconds.get("limit") or self.seconds.get("gpu-copy")
        return self.time / limit if self.time and limit else None


@dataclass(frozen=True)
class Record:
    """A run: its date, machine and versions, and its entries."""

    date: str
    threads: int
    rounds: int
    minutes: float
    machine: str
    versions: str
    notes: tuple[str, ...]
    entries: tuple[Entry, ...]


def digits(value: float | None) -> str:
    """A number with four significant digits, which is more than the accuracy of a measurement."""
    return "" if value is None else f"{value:.4g}"


def to_csv(whole: Record) -> str:
    names = [name for name in CONTENDERS if any(name in one.seconds for one in whole.entries)]
    peers = [name for name in PEERS if name in names]
    text = io.StringIO()
    for key in ("date", "threads", "rounds", "minutes", "machine", "versions"):
        text.write(f"# {key}: {getattr(whole, key)}\n")
    for note in whole.notes:
        text.write(f"# note: {note}\n")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(
        [
            *("workload", "group", "op", "mode", "move", "elements", "moved", "ours", *names),
            *("different", "peer", "ratio", "at least", "times the limit", "targets", "missed"),
            *(f"{name} variant" for name in peers),
        ]
    )
    for one in whole.entries:
        lines.writerow(
            [
                *(one.workload, one.group, one.op, one.mode, int(one.move), one.elements),
                *(one.moved or "", one.ours, *(digits(one.seconds.get(name)) for name in names)),
                *(" ".join(one.different), one.peer, digits(one.over(one.peer))),
                *(digits(one.at_least), digits(one.of_limit), one.targets, one.missed),
                *(one.variants.get(name, "") for name in peers),
            ]
        )
    return text.getvalue()


def from_csv(text: str) -> Record:
    head: dict[str, str] = {}
    notes: list[str] = []
    lines = text.splitlines()
    while lines[0].startswith("# "):
        key, value = lines.pop(0)[2:].split(": ", 1)
        if key == "note":
            notes.append(value)
        else:
            head[key] = value
    entries = tuple(map(entry, csv.DictReader(lines)))
    return Record(
        head["date"],
        int(head["threads"]),
        int(head["rounds"]),
        float(head["minutes"]),
        head["machine"],
        head["versions"],
        tuple(notes),
        entries,
    )


def entry(line: dict[str, str]) -> Entry:
    return Entry(
        line["workload"],
        line["group"],
        line["op"],
        line["mode"],
        line["move"] == "1",
        int(line["elements"]),
        int(line["moved"] or 0),
        line["ours"],
        {name: float(line[name]) for name in CONTENDERS if line.get(name)},
        {name: line[f"{name} variant"] for name in PEERS if line.get(f"{name} variant")},
        tuple(line["different"].split()),
        line["peer"],
        float(line["at least"]) if line["at least"] else None,
        int(line["targets"]),
        line["missed"],
    )


def read(file: Path) -> Record:
    return from_csv(file.read_text(encoding="utf-8"))


def newest() -> Path:
    """The newest record of a full run with several threads."""
    whole = re.compile(r"\d{4}-\d\d-\d\d-\d+-threads\.csv")
    return max(file for file in FOLDER.glob("*.csv") if whole.fullmatch(file.name))
