"""Draws the traced scenes as one picture."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

import matplotlib
from _scene import SELF, Cell, Grid, Scene
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle
from PIL import Image

matplotlib.rcParams["svg.hashsalt"] = "inlay"  # the same scenes give the same file

# The terminal has the same hues.
COLOURS = (
    "#8fb4fa",
    "#fabc70",
    "#8fd694",
    "#f99bb9",
    "#b9a0f5",
    "#70d2d2",
    "#f6dc6a",
    "#f7916f",
    "#d3b08a",
)
INK, SOFT, FAINT, LINE = "#1d2433", "#667085", "#a5adba", "#e3e7ee"
OLD = "#d3d9e3"  # the stripe of a place's own old value
FILLS = {"kept": "#f2f4f7", "constant": "#4b5568", "yes": "#c9d1dc"}  # others are white
TEXTS = {"kept": SOFT, "constant": "white", "unused": FAINT, "where": SOFT, "no": FAINT}
SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"

# All lengths are pixels of a picture 1000 wide.
WIDTH, MARGIN, GAP, PANELS, PAD = 1000, 14, 14, 3, 12
CELL, LABEL, CODE, BODY, ARROW = 20, 15, 14, 14, 28
PANEL = (WIDTH - 2 * MARGIN - (PANELS - 1) * GAP) / PANELS
Traced = tuple[Scene, list[list[Grid]]]


def draw(path: Path, sections: dict[str, list[Traced]]) -> None:
    """Write the picture. The suffix of the path selects the format."""
    rows: list[tuple[str, list[Traced]]] = []
    for heading, scenes in sections.items():
        for i in range(0, len(scenes), PANELS):
            rows.append(("" if i else heading, scenes[i : i + PANELS]))
    heights = [row_height(scenes) for _, scenes in rows]
    height = 74 + sum(heights) + GAP * len(rows) + 36 * len(sections) + MARGIN - GAP

    figure = Figure(figsize=(WIDTH / 100, height / 100), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    legend(axes)
    y = 74.0
    for (heading, scenes), tall in zip(rows, heights, strict=True):
        if heading:
            write(axes, MARGIN, y + 22, heading, 15, weight="bold")
            y += 36
        for i, (scene, columns) in enumerate(scenes):
            panel(axes, MARGIN + i * (PANEL + GAP), y, tall, scene, columns, code_lines(scenes))
        y += tall + GAP
    if path.suffix == ".svg":
        figure.savefig(path, metadata={"Date": None})
        return
    pixels = io.BytesIO()
    figure.savefig(pixels, dpi=150)  # 1.5 times as large, for high-resolution screens
    flat = Image.open(pixels).convert("RGB")  # a palette makes the file much smaller
    flat.quantize(256).save(path, optimize=True)


def panel(
    axes: Axes,
    x: float,
    y: float,
    height: float,
    scene: Scene,
    columns: list[list[Grid]],
    code_room: int,
) -> None:
    """One scene in a frame: title, call, grids, use."""
    frame = FancyBboxPatch(
        (x, y), PANEL, height, "round,pad=0,rounding_size=8", fc="white", ec=LINE
    )
    axes.add_patch(frame)
    write(axes, x + PAD, y + 24, scene.title, 13, weight="bold")
    for i, line in enumerate(code(scene)):
        write(axes, x + PAD, y + 42 + i * CODE, line, 9.3, SOFT, font=MONO)
    top = y + 48 + code_room * CODE
    widths = [max(grid_width(grid) for grid in column) for column in columns]
    gaps = len(columns) - 2
    space = min(18, (PANEL - 2 * PAD - sum(widths) - ARROW) / gaps) if gaps else 0
    at = x + PAD
    for i, (column, width) in enumerate(zip(columns, widths, strict=True)):
        if i == len(columns) - 1:
            middle = top + (sum(grid_height(grid) for grid in column) + LABEL - 4) / 2
            at += ARROW - space
            tip = {"arrowstyle": "-|>", "color": SOFT, "lw": 1.2, "mutation_scale": 9}
            axes.annotate("", (at - 6, middle), (at - ARROW + 6, middle), arrowprops=tip)
        under = top
        for grid in column:
            write(axes, at, under + 10, grid.name, 9, SOFT)
            for r, row in enumerate(grid.rows):
                for c, cell in enumerate(row):
                    draw_cell(axes, at + c * CELL, under + LABEL + r * CELL, cell)
            under += grid_height(grid)
        at += width + space
    use = wrap_use(scene)
    for i, line in enumerate(use):
        write(axes, x + PAD, y + height - 12 - (len(use) - 1 - i) * BODY, line, 9.5, INK)


def draw_cell(axes: Axes, x: float, y: float, cell: Cell) -> None:
    """A rounded square, striped in the colours of the elements that it came from."""
    side = CELL - 2
    shape = {"boxstyle": "round,pad=0,rounding_size=3", "lw": 0.7}
    fill = FILLS.get(cell.kind, "white")
    edge = {"where": FAINT, "no": LINE, "unused": FAINT, "yes": FAINT}.get(cell.kind, "none")
    dashes = "dotted" if cell.kind == "unused" else "solid"
    box = FancyBboxPatch((x, y), side, side, fc=fill, ec=edge, ls=dashes, **shape)
    axes.add_patch(box)
    for i, colour in enumerate(cell.colours):
        stripe = side / len(cell.colours)
        fill = OLD if colour == SELF else COLOURS[colour % len(COLOURS)]
        part = Rectangle((x + i * stripe, y), stripe, side, fc=fill, ec="none")
        axes.add_patch(part)
        part.set_clip_path(box)
    size = 9.5 if len(cell.text) < 3 else 7.5
    ink = TEXTS.get(cell.kind, INK)
    middle = y + side / 2 + size * 0.36
    write(axes, x + side / 2, middle, cell.text, size, ink, ha="center")


def legend(axes: Axes) -> None:
    """The picture's name, and what its signs mean."""
    write(axes, MARGIN, 38, "Inlay", 22, weight="bold")
    write(axes, MARGIN, 60, "what is written where", 11, SOFT)
    signs = [
        (Cell("7", "written", (0,)), "went here"),
        (Cell("9", "written", (1, 2)), "combined"),
        (Cell("0", "constant"), "constant"),
        (Cell("5"), "as it was"),
        (Cell("3", "unused"), "not used"),
        (Cell("2", "where"), "index"),
        (Cell("T", "yes"), "mask"),
    ]
    widths = [42 + 5.9 * len(meaning) for _, meaning in signs]
    x = WIDTH - MARGIN - sum(widths) + 14
    for (cell, meaning), width in zip(signs, widths, strict=True):
        draw_cell(axes, x, 36, cell)
        write(axes, x + 24, 48.5, meaning, 10, SOFT)
        x += width


def write(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    size: float,
    colour: str = INK,
    font: str = SANS,
    weight: str = "normal",
    ha: str = "left",
) -> None:
    """Text with its baseline at y; the size is in pixels too."""
    points = size * 0.72
    axes.text(x, y, text, size=points, color=colour, family=font, weight=weight, ha=ha)


def code(scene: Scene) -> list[str]:
    """The call, broken to fit a panel."""
    return [part for line in scene.call.splitlines() for part in broken(line)]


def broken(line: str) -> list[str]:
    """As few lines as possible, of similar lengths, broken after commas."""
    glued = re.sub("(?<!,) ", "\xa0", line)
    fewest = textwrap.wrap(glued, 51, subsequent_indent="  ")
    tries = (textwrap.wrap(glued, width, subsequent_indent="  ") for width in range(20, 52))
    even = next(parts for parts in tries if len(parts) == len(fewest))
    return [part.replace("\xa0", " ") for part in even]


def wrap_use(scene: Scene) -> list[str]:
    return textwrap.wrap(scene.use, 56)


def code_lines(scenes: Iterable[Traced]) -> int:
    return max(len(code(scene)) for scene, _ in scenes)


def grid_height(grid: Grid) -> float:
    return LABEL + len(grid.rows) * CELL + 2


def grid_width(grid: Grid) -> float:
    return max(len(grid.rows[0]) * CELL, 5.3 * len(grid.name))


def row_height(scenes: list[Traced]) -> float:
    """The height that the tallest panel of a row needs."""
    grids = max(sum(grid_height(g) for g in c) for _, columns in scenes for c in columns)
    uses = max(len(wrap_use(scene)) for scene, _ in scenes)
    return 48 + code_lines(scenes) * CODE + grids + 10 + uses * BODY + 4
