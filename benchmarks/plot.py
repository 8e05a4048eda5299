"""The targets of a record as a picture: how many times faster than the best peer.

python -m benchmarks.plot RECORD.json [PICTURE.png]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import table

COLOURS = {"torch": "#e4572e", "paddle": "#3d4db7", "jax": "#17a398", "numpy": "#e0a100"}
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def draw(whole: dict[str, Any], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    groups = ("target", "tiny")
    some = [one for one in whole["entries"] if one["row"].get("group") in groups]
    some = [one for one in some if table.faster(one) is not None]
    some.reverse()  # the first on top
    ratios = [table.faster(one) for one in some]
    figure, axes = plt.subplots(figsize=(9, 0.225 * len(some) + 1.4), layout="constrained")
    for place, (one, ratio) in enumerate(zip(some, ratios, strict=True)):
        axes.barh(place, ratio - 1, left=1, height=0.66, color=COLOURS[table.rival(one)])
        least = one["row"]["at_least"]
        end = max(ratio, 1)
        if end * 0.95 < least < end * 1.4:  # the mark would cross the number
            end = least
        axes.text(end * 1.05, place, table.times(ratio), va="center", fontsize=7.5)
        axes.plot([least, least], [place - 0.42, place + 0.42], color="black", linewidth=1.6)
    names = [one["name"].replace("/", ":  ", 1) for one in some]
    axes.set_yticks(range(len(some)), names, fontsize=7.5)
    axes.set_ylim(-0.7, len(some) - 0.3)
    axes.set_xscale("log")
    low = min([0.9, *(ratio * 0.9 for ratio in ratios)])
    high = max(
        [2.0, *(ratio * 1.4 for ratio in ratios), *(1.2 * one["row"]["at_least"] for one in some)]
    )
    axes.set_xlim(low, high)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("how many times faster Inlay is, own tensors, out of place", fontsize=8)
    title = f"{whole['machine']['cpu']}, {table.threads(whole)}, {whole['date']}"
    axes.set_title(title, fontsize=8, loc="right")
    handles: list[Any] = [
        Patch(color=colour, label=f"than {name}")
        for name, colour in COLOURS.items()
        if any(table.rival(one) == name for one in some)
    ]
    handles.append(Line2D([], [], color="black", linewidth=1.6, label="the target"))
    figure.legend(
        handles=handles, fontsize=8, frameon=False, loc="outside upper left", ncols=len(handles)
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150, facecolor="white")
    plt.close(figure)


if __name__ == "__main__":
    target = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/bench.png")
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), target)
