"""A record as text: lines for the terminal, a page, and the README's table.

    python -m benchmarks.table RECORD.json

prints the README's table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Entry = dict[str, Any]

COLUMNS = (
    ("workload", 50),
    ("inlay", 9),
    ("numpy i/o", 9),
    ("peer", 17),
    ("ratio", 6),
    ("at least", 8),
    ("x limit", 7),
    ("", 0),
)
PEERS = ("torch", "paddle", "jax", "numpy")
LIBRARIES = ("inlay", "inlay-numpy", "inlay-static", *PEERS, "limit")
GROUPS = {
    "target": "Targets",
    "tiny": "Tiny calls",
    "static": "Static graphs",
    "coverage": "Coverage",
    "growth": "Growth",
    "gpu": "On the GPU",
}


def threads(whole: dict[str, Any]) -> str:
    return f"{whole['threads']} thread{'s' if whole['threads'] > 1 else ''}"


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


def median(one: Entry, name: str) -> float | None:
    return one["measured"].get(name, {}).get("median")


def met(one: Entry) -> str:
    if not one["checks"]:
        return ""
    short = [check for check in one["checks"] if not check["met"]]
    if not short:
        return "ok"
    return "short: " + ", ".join(f"{c['what']} {times(c['value'])}" for c in short)


def rival(one: Entry) -> str | None:
    """The peer that the row's target is about."""
    return one["row"].get("against") or one.get("best")


def faster(one: Entry) -> float | None:
    """How many times faster than that peer."""
    peer = rival(one)
    theirs = median(one, peer) if peer else None
    ours = median(one, one["row"].get("ours", "inlay"))
    return theirs / ours if ours and theirs else None


def asked(one: Entry) -> float | None:
    return one["row"].get("at_least")


def aligned(cells: list[str]) -> str:
    parts = []
    for (_, width), cell in zip(COLUMNS, cells, strict=True):
        parts.append(cell.ljust(width) if not parts else cell.rjust(width))
    return "  ".join(parts[:-1]) + f"  {cells[-1]}"


def heading() -> str:
    return aligned([name for name, _ in COLUMNS]).rstrip()


def line(one: Entry, progress: str) -> str:
    name = rival(one)
    peer = f"{name} {span(median(one, name))}" if name else "-"
    least = asked(one)
    if one["row"].get("group") == "growth":
        ours = median(one, "inlay")
        peer = f"{ours / one['elements'] * 1e9:.3f} ns/element" if ours else "-"
    if one["row"].get("group") == "gpu":
        peer = f"cpu {span(median(one, 'inlay'))}"
    return aligned(
        [
            f"{progress} {one['name']}"[: COLUMNS[0][1]],
            span(median(one, one["row"].get("ours", "inlay"))),
            span(median(one, "inlay-numpy")),
            peer,
            times(faster(one)),
            "" if least is None else f"{least:g}",
            times(one.get("of_limit")),
            met(one),
        ]
    ).rstrip()


def summary(whole: dict[str, Any]) -> str:
    """The targets that are met, the moves near the limit, and the peers that gave other results."""
    entries = whole["entries"]
    found = []
    judged = [check for one in entries for check in one["checks"]]
    if judged:
        found.append(f"targets met: {sum(check['met'] for check in judged)} of {len(judged)}")
    far = [one for one in large_moves(entries) if one["of_limit"] > 1.3]
    if large_moves(entries):
        near = len(large_moves(entries)) - len(far)
        found.append(f"moves within 1.3 times the limit: {near} of {len(large_moves(entries))}")
    found += [f"    {times(one['of_limit']):>5}  {one['name']}" for one in far]
    slow = [one for one in entries if one.get("ratio", 1) < 1]
    if slow:
        found.append(f"slower than the best peer: {len(slow)}")
        found += [f"    {times(one['ratio']):>5}  {one['name']} ({one['best']})" for one in slow]
    for name, steps in whole["growth"].items():
        each = ", ".join(
            f"{count:.0e}: {per:.3f}"
            for count, per in zip(steps["elements"], steps["nanoseconds"], strict=True)
        )
        past = (
            f"; past the caches within {steps['past_caches']:.2f}" if "past_caches" in steps else ""
        )
        found.append(f"growth of {name}, ns per element: {each}{past}")
    return "\n".join(found)


def large_moves(entries: list[Entry]) -> list[Entry]:
    """Moves of more than the caches hold."""
    return [
        one
        for one in entries
        if one["moves"] and "of_limit" in one and one["moved"] and sum(one["moved"]) >= 1 << 24
    ]


def cells(parts: list[str]) -> str:
    return "| " + " | ".join(parts) + " |"


def rule(count: int) -> str:
    return "|---|" + "---:|" * (count - 1)


def page(whole: dict[str, Any]) -> str:
    """The whole record in Markdown."""
    machine, versions = whole["machine"], whole["versions"]
    named = ", ".join(f"{name} {v}" for name, v in versions.items() if name != "limit")
    lines = [
        f"# {whole['date']}, {threads(whole)}",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}, "
        f"Python {machine['python']}. {named}. Medians of up to {whole['rounds']} rounds.",
        "",
        "```",
        summary(whole),
        "```",
    ]
    for group, title in GROUPS.items():
        some = [one for one in whole["entries"] if one["row"].get("group", "coverage") == group]
        if some:
            made = gpu_grid(some) if group == "gpu" else grid(some)
            lines += ["", f"## {title}", "", *made]
    if any(one["row"].get("group") != "gpu" for one in whole["entries"]):
        lines += ["", "## Roads", "", *roads(whole["entries"])]
    notes = [*whole["notes"], *differences(whole["entries"])]
    if notes:
        lines += ["", "## Notes", "", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"


def grid(entries: list[Entry]) -> list[str]:
    head = [
        "workload",
        "Inlay",
        "NumPy in, out",
        "static",
        *LIBRARIES[3:],
        "ratio",
        "at least",
        "x limit",
        "",
    ]
    lines = [cells(head), rule(len(head))]
    for one in entries:
        least = asked(one)
        spans = [
            f"**{span(median(one, name))}**" if name == one.get("best") else span(median(one, name))
            for name in LIBRARIES
        ]
        spans = [
            f"{text} \\*" if one["measured"].get(name, {}).get("verdict") == "different" else text
            for name, text in zip(LIBRARIES, spans, strict=True)
        ]
        tail = [times(faster(one)), f"{least:g}" if least else "", times(one.get("of_limit"))]
        lines.append(cells([one["name"], *spans, *tail, met(one)]))
    return lines


def gpu_grid(entries: list[Entry]) -> list[str]:
    """The GPU beside the CPU and a plain copy, on the GPU, of the bytes that must be moved."""
    head = ["workload", "GPU", "CPU", "copy on the GPU", "times the copy", ""]
    lines = [cells(head), rule(len(head))]
    for one in entries:
        spans = [span(median(one, name)) for name in ("inlay-gpu", "inlay", "gpu-copy")]
        lines.append(cells([one["name"], *spans, times(one.get("of_limit")), met(one)]))
    return lines


def roads(entries: list[Entry]) -> list[str]:
    """The road that each peer took."""
    lines = [cells(["workload", *PEERS]), rule(len(PEERS) + 1)]
    for one in entries:
        taken = [one["measured"].get(name, {}).get("road") or "-" for name in PEERS]
        if any(road != "-" for road in taken):
            lines.append(cells([one["name"], *taken]))
    return lines


def differences(entries: list[Entry]) -> list[str]:
    """Peers whose result is another one, and those that can't."""
    found = []
    for one in entries:
        for name in PEERS:
            measured = one["measured"].get(name)
            if not measured:
                continue
            failed = {
                road: tried["error"]
                for road, tried in measured["tried"].items()
                if isinstance(tried["error"], str)
            }
            if measured.get("verdict") == "different":
                found.append(
                    f"{one['name']}: \\* {name}'s result differs ({measured['error']:.1e})"
                )
            elif measured.get("verdict") == "rounded":
                found.append(
                    f"{one['name']}: {name} rounds at every step ({measured['error']:.1e})"
                )
            elif not measured.get("road"):
                why = "; ".join(f"{road}: {error}" for road, error in failed.items())
                found += [f"{one['name']}: {name}: {why}"] if why else []
            for road, error in failed.items():
                if measured.get("road") and error.startswith(("crashed", "timed", "died")):
                    found.append(f"{one['name']}: {name}: {road} {error}")
    return found


def readme(whole: dict[str, Any]) -> str:
    """The targets alone."""
    head = ["", "Inlay", "peer", "times faster", "at least", "times the limit"]
    lines = [cells(head), rule(len(head))]
    for one in whole["entries"]:
        if one["row"].get("group") not in ("target", "tiny", "static"):
            continue
        peer, least = rival(one), asked(one)
        named = f"{span(median(one, peer))} {peer}" if peer else "-"
        tail = [times(faster(one)), f"{least:g}" if least else "", times(one.get("of_limit"))]
        ours = span(median(one, one["row"].get("ours", "inlay")))
        lines.append(cells([one["name"], ours, named, *tail]))
    return "\n".join(lines)


if __name__ == "__main__":
    print(readme(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
