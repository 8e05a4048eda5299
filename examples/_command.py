"""The command line that the examples share: the number of steps, and where to draw a picture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def parser(description: str, picture: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--picture",
        default=picture,
        metavar="FILE",
        help="a .png or .svg to draw, or none (default: %(default)s)",
    )
    return made


def training(description: str, picture: str, steps: int) -> argparse.Namespace:
    """The options of an example that trains."""
    made = parser(description, picture)
    made.add_argument(
        "--steps", type=int, default=steps, metavar="N", help="(default: %(default)s)"
    )
    options = made.parse_args()
    if options.steps < 0:
        made.error("--steps must be 0 or more")
    return options


def save(picture: str, draw: Callable[[Path], None], said: str = "As a picture") -> None:
    """Draw the picture, unless it is none; without matplotlib, end with a message."""
    if picture == "none":
        return
    path = Path(picture)
    try:
        import matplotlib  # noqa: F401  # before the folder is made
    except ModuleNotFoundError as error:
        sys.exit(f"\nNo picture: {error}. Install matplotlib, or pass --picture none.")
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(path)
    print(f"{said}: {path}")
