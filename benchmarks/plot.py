"""The picture of a record: how many times faster than the best peer each workload is."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks import table
from benchmarks.record import Entry, Record

COLOURS = {"torch": "#e4572e", "paddle": "#3d4db7", "jax": "#17a398", "numpy": "#e0a100"}
TITLES = {"torch": "PyTorch", "paddle": "Paddle", "jax": "JAX", "numpy": "NumPy"}
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
LAST = ("writes in place", "with gradients", "tiny calls (8 x 8)", "static graphs")
INK, SOFT, LINE = "#1d2433", "#667085", "#e3e7ee"


def family(one: Entry) -> str:
    """The line of the picture that a workload belongs to."""
    for kind, title in zip(("in place", "backward", "tiny", "static"), LAST, strict=True):
        if kind in (one.mode, one.group):
            return title
    if one.op in ("scatter", "index_add"):
        return "scatter, overwriting" if one.move else "scatter, reducing"
    return "tril_indices, triu_indices" if one.op.startswith("tri") else one.op


def draw(whole: Record, name: str, file: Path) -> None:
    """Draw one dot per workload, by family, coloured by the best peer."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    families: dict[str, list[tuple[float, str]]] = {}
    for one in whole.entries:
        ratio = one.over(one.best)
        if ratio:
            families.setdefault(family(one), []).append((ratio, one.best))
    families.update({title: families.pop(title) for title in LAST if title in families})
    every = [ratio for pairs in families.values() for ratio, _ in pairs]
    high = max(every) * 1.25
    figure, axes = plt.subplots(figsize=(9, 0.3 * len(families) + 1.5), layout="constrained")
    for place, pairs in enumerate(families.values()):
        for number, (ratio, peer) in enumerate(sorted(pairs)):
            # Dots with nearly the same ratio are moved vertically, so that they don't overlap.
            shift = (-0.2, 0.0, 0.2)[number % 3] if len(pairs) > 3 else 0.0
            axes.plot(ratio, place + shift, "o", color=COLOURS[peer], ms=5.5, mec="white", mew=0.6)
        middle = statistics.median(ratio for ratio, _ in pairs)
        axes.plot([middle] * 2, [place - 0.4, place + 0.4], color=INK, lw=1.6, zorder=3)
        count = f"{len(pairs)} workload{'s' if len(pairs) > 1 else ''}"
        label = f"{table.times(middle)} x, {count}"
        axes.text(high * 1.05, place, label, va="center", fontsize=8, color=SOFT)
    axes.set_yticks(range(len(families)), list(families), fontsize=8.5, color=INK)
    axes.set_ylim(len(families) - 0.4, -0.6)
    axes.set_xscale("log")
    low = min([0.5, *every]) * 0.85
    axes.set_xlim(low, high)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g} x" for tick in ticks], fontsize=8, color=SOFT)
    axes.minorticks_off()
    axes.axvspan(low, 1, color="#fbe9e7", zorder=0)
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.grid(axis="x", color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    faster = sum(ratio >= 1 for ratio in every)
    title = f"Inlay against the best peer: faster on {faster} of {len(every)} workloads"
    axes.set_title(title, fontsize=10.5, loc="left", color=INK, weight="bold", pad=21)
    under = f"{table.threads(whole)}, {whole.date}; right of 1 x Inlay is faster; bar: median"
    axes.text(0, 1.012, under, transform=axes.transAxes, fontsize=8, color=SOFT)
    dot = {"marker": "o", "ls": "", "ms": 5.5}
    best = [peer for peer in COLOURS if any(p == peer for f in families.values() for _, p in f)]
    handles = [Line2D([], [], color=COLOURS[peer], label=TITLES[peer], **dot) for peer in best]
    axes.legend(
        handles=handles,
        title="the best peer is",
        title_fontsize=8,
        fontsize=8,
        labelcolor=INK,
        loc="lower right",
        facecolor="white",
        edgecolor=LINE,
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    # The name of the record is stored in the file, so that a test can compare it with the README's.
    figure.savefig(file, dpi=120, facecolor="white", metadata={"Source": name})
    plt.close(figure)
