"""The text of a record: lines for the terminal, and the page next to the CSV file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.record import CONTENDERS, PEERS, Entry, Record, from_csv, read, to_csv

COLUMNS = (
    ("workload", 64),
    ("inlay", 9),
    ("numpy i/o", 9),
    ("peer", 20),
    ("ratio", 6),
    ("at least", 8),
    ("x limit", 7),
    ("", 0),
)
# Of the workloads on a framework's tensors, two other figures are shown in these places.
BRIDGE_COLUMNS = {"numpy i/o": "own", "x limit": "faster"}
GROUPS = {
    "target": "Targets",
    "tiny": "Tiny calls",
    "static": "Static graphs",
    "coverage": "Coverage",
    "gpu": "On the GPU",
    "bridges-large": "On a framework's tensors: large calls",
    "bridges-tiny": "On a framework's tensors: tiny calls",
    "bridges-gradients": "On a framework's tensors: tiny calls with gradients",
    "bridges-chains": "Chains that a framework compiles",
    "bridges-threads": "In turn with a framework's matrix product",
}
TITLES = {
    "inlay": "Inlay",
    "inlay-numpy": "NumPy in, out",
    "inlay-static": "static",
    "inlay-gpu": "GPU",
    "gpu-copy": "copy on the GPU",
    "inlay-bridge": "on its tensors",
    "inlay-compiled": "compiled",
    "inlay-alternating": "in turn",
    "matmul": "matrix product",
    "alone": "sum of both alone",
}
NEAR = 1.3  # times the limit; a move that is not slower counts as near the limit
LARGE = 1 << 24  # bytes; larger than the caches
PAST_CACHES = 10**7  # elements; for larger tensors the time per element should be constant


def threads(whole: Record) -> str:
    return f"{whole.threads} thread{'s' if whole.threads > 1 else ''}"


def span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    unit, size = next(
        ((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if seconds >= size), ("us", 1e-6)
    )
    count = seconds / size
    return f"{count:.{2 if count < 10 else 1 if count < 100 else 0}f} {unit}"


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"


def bound(one: Entry) -> str:
    return "" if one.at_least is None else f"{one.at_least:g}"


def met(one: Entry) -> str:
    if one.missed:
        return f"short: {one.missed}"
    return "ok" if one.targets else ""


def aligned(cells: Sequence[str]) -> str:
    parts = []
    for (_, width), cell in zip(COLUMNS, cells, strict=True):
        parts.append(cell.ljust(width) if not parts else cell.rjust(width))
    return "  ".join(parts[:-1]) + f"  {cells[-1]}"


def heading(bridges: bool = False) -> str:
    renamed = BRIDGE_COLUMNS if bridges else {}
    return aligned([renamed.get(name, name) for name, _ in COLUMNS]).rstrip()


def line(one: Entry, progress: str) -> str:
    peer = f"{one.peer} {span(one.seconds.get(one.peer))}" if one.peer else "-"
    if one.group == "growth" and one.time:
        peer = f"{one.time / one.elements * 1e9:.3f} ns/element"
    if one.group == "gpu":
        peer = f"cpu {span(one.seconds.get('inlay'))}"
    return aligned(
        [
            f"{progress} {one.workload}"[: COLUMNS[0][1]],
            span(one.time),
            span(one.seconds.get("inlay" if one.host else "inlay-numpy")),
            peer,
            times(one.over(one.peer)),
            bound(one),
            times(one.over(one.host) if one.host else one.of_limit),
            met(one),
        ]
    ).rstrip()


def summary(whole: Record) -> str:
    """The targets that are met, the moves far from the limit, and the rows that a peer wins."""
    found = []
    targets = sum(one.targets for one in whole.entries)
    if targets:
        missed = sum(len(one.missed.split("; ")) for one in whole.entries if one.missed)
        found.append(f"targets met: {targets - missed} of {targets}")
    large = [
        (one.of_limit, one.workload)
        for one in whole.entries
        if one.move and one.moved >= LARGE and one.of_limit
    ]
    far = [pair for pair in large if pair[0] > NEAR]
    if large:
        near = len(large) - len(far)
        found.append(f"moves within {NEAR} times the limit: {near} of {len(large)}")
    found += [f"    {times(ratio):>5}  {name}" for ratio, name in far]
    ratios = [(one.over(one.best) or 1, f"{one.workload} ({one.best})") for one in whole.entries]
    slow = [pair for pair in ratios if pair[0] < 1]
    if slow:
        found.append(f"slower than the best peer: {len(slow)}")
        found += [f"    {times(ratio):>5}  {name}" for ratio, name in slow]
    return "\n".join([*found, *growth(whole.entries)])


def growth(entries: Iterable[Entry]) -> list[str]:
    """The nanoseconds per element, by operation and number of elements."""
    steps: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for one in entries:
        if one.group == "growth" and one.time:
            steps[one.op].append((one.elements, one.time / one.elements * 1e9))
    found = []
    for op, pairs in steps.items():
        each = ", ".join(f"{count:.0e}: {per:.3f}" for count, per in pairs)
        large = [per for count, per in pairs if count >= PAST_CACHES * 0.99]
        ratio = f"; past the caches within {max(large) / min(large):.2f}" if len(large) > 1 else ""
        found.append(f"growth of {op}, ns per element: {each}{ratio}")
    return found


def cells(parts: Sequence[str]) -> str:
    return "| " + " | ".join(parts) + " |"


def rule(count: int) -> str:
    return "|---|" + "---:|" * (count - 1)


def page(whole: Record) -> str:
    """The whole record in Markdown."""
    lines = [
        f"# {whole.date}, {threads(whole)}",
        "",
        f"{whole.machine}. {whole.versions}. Medians of up to {whole.rounds} rounds; "
        f"the run took {whole.minutes:g} minutes.",
        "",
        "```",
        summary(whole),
        "```",
    ]
    for group, title in GROUPS.items():
        some = [one for one in whole.entries if one.group == group]
        if some:
            lines += ["", f"## {title}", "", *(bridge_grid if some[0].host else grid)(some)]
    if whole.notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in whole.notes)]
    return "\n".join(lines) + "\n"


def grid(entries: Sequence[Entry]) -> list[str]:
    """A table with a column for each contender that was timed on one of the workloads."""
    names = [name for name in CONTENDERS if any(name in one.seconds for one in entries)]
    tail = ["ratio", "at least"] if set(names) & set(PEERS) else []
    head = ["workload", *(TITLES.get(name, name) for name in names), *tail, "x limit", ""]
    lines = [cells(head), rule(len(head))]
    for one in entries:
        figures = [times(one.over(one.peer)), bound(one)] if tail else []
        spans = [marked(one, name) for name in names]
        lines.append(cells([one.workload, *spans, *figures, times(one.of_limit), met(one)]))
    return lines


def bridge_grid(entries: Sequence[Entry]) -> list[str]:
    """A table with one column for the framework of each workload.

    It also has how many times faster than the framework Inlay is, on its own tensors and on those
    of the framework.
    """
    timed = {name for one in entries for name in one.seconds}
    names = [name for name in CONTENDERS if name in timed and name not in PEERS]
    framed = bool(timed & set(PEERS))
    framework = ["framework", "own faster", "faster"] if framed else []
    titles = [TITLES.get(name, name) for name in names]
    head = ["workload", *titles, *framework, "ratio", "at least", ""]
    lines = [cells(head), rule(len(head))]
    for one in entries:
        spans = [span(one.seconds.get(name)) for name in names]
        if framed:
            own, theirs = one.seconds.get("inlay"), one.seconds.get(one.host)
            spans += [
                starred(one, one.host),
                times(theirs / own if own and theirs else None),
                times(one.over(one.host)),
            ]
        figures = [times(one.over(one.peer)), bound(one)]
        lines.append(cells([one.workload, *spans, *figures, met(one)]))
    return lines


def marked(one: Entry, name: str) -> str:
    """A contender's time: bold for the best peer, with an asterisk if the result differs."""
    text = starred(one, name)
    return f"**{text}**" if name == one.best else text


def starred(one: Entry, name: str) -> str:
    """A contender's time, with an asterisk if the result differs."""
    text = span(one.seconds.get(name))
    return f"{text} \\*" if name in one.different else text


def write(whole: Record, folder: Path, name: str) -> Path:
    """Write the CSV file, and generate the page next to it from its contents."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{threads(whole).replace(' ', '-')}.csv"
    # Ratios are those of the times in the file, which are rounded.
    file.write_text(to_csv(from_csv(to_csv(whole))), encoding="utf-8")
    file.with_suffix(".md").write_text(page(read(file)), encoding="utf-8")
    return file
