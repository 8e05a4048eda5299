"""Draws a traced scene in the terminal."""

from __future__ import annotations

from itertools import groupby

from _scene import SELF, Cell, Grid

# 256-colour numbers; the picture has the same hues.
COLOURS = (111, 215, 114, 211, 141, 80, 221, 209, 180)
OLD = 252
STYLES = {
    "kept": "0",
    "constant": "1;48;5;240;38;5;231",
    "unused": "2",
    "where": "36",
    "yes": "1;36",
    "no": "2",
}
MARKS = {"written": "[]", "constant": "**"}


def styled(text: str, style: str, colour: bool) -> str:
    return f"\033[{style}m{text}\033[0m" if colour else text


def paint(cell: Cell, width: int, colour: bool) -> str:
    """The cell, two characters wider than its value may be."""
    if not colour:
        left, right = MARKS.get(cell.kind, "  ")
        return f"{left}{cell.text}{right}".rjust(width + 2)
    padded = f" {cell.text:>{width}} "
    if cell.kind != "written":
        return styled(padded, STYLES[cell.kind], colour)
    # One stripe for each element that it came from.
    hues = [cell.colours[i * len(cell.colours) // len(padded)] for i in range(len(padded))]
    stripes = groupby(zip(hues, padded, strict=True), key=lambda pair: pair[0])
    return "".join(
        styled("".join(char for _, char in run), f"48;5;{background(hue)};38;5;16", colour)
        for hue, run in stripes
    )


def background(hue: int) -> int:
    return OLD if hue == SELF else COLOURS[hue % len(COLOURS)]


def block(grids: list[Grid], colour: bool) -> tuple[list[str], int]:
    """Stacked grids as lines, and how wide they are to the eye."""
    width = max(len(cell.text) for grid in grids for row in grid.rows for cell in row)
    total = max([len(g.name) for g in grids] + [len(g.rows[0]) * (width + 3) - 1 for g in grids])
    lines = []
    for grid in grids:
        lines.append(styled(f"{grid.name:<{total}}", "2", colour))
        for row in grid.rows:
            pad = " " * (total - len(row) * (width + 3) + 1)
            lines.append(" ".join(paint(cell, width, colour) for cell in row) + pad)
    return lines, total


def side_by_side(columns: list[list[Grid]], colour: bool) -> list[str]:
    """The columns beside each other, an arrow before the last."""
    blocks = [block(column, colour) for column in columns]
    middle = (len(blocks[-1][0]) + 1) // 2
    blocks.insert(-1, (["->" if i == middle else "  " for i in range(middle + 1)], 2))
    height = max(len(lines) for lines, _ in blocks)
    full = [lines + [" " * width] * (height - len(lines)) for lines, width in blocks]
    return ["   ".join(parts).rstrip() for parts in zip(*full, strict=True)]
