"""Every operation on small tensors: in the terminal, and as a picture.

    python examples/tour.py [--color auto|always|never] [--picture FILE.png|FILE.svg|none]

Every value comes from running Inlay. A written place has the colour of the element that it came
from. To find that element, the tour changes each element slightly and runs the call again.
"""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import numpy as np
from _command import parser, save
from _grid import side_by_side, styled
from _scene import Scene, trace

import inlay


def floats(*values: object) -> np.ndarray:
    return np.array(values, np.float32)


def numbered(*shape: int, start: int = 1) -> np.ndarray:
    return np.arange(start, start + np.prod(shape), dtype=np.float32).reshape(shape)


FIVE = [
    Scene(
        "scatter",
        "inlay.scatter(memory, slots, entries)",
        "Refresh rows of a memory. Of duplicates the last wins.",
        {
            "memory": np.zeros((4, 3), np.float32),
            "slots": np.array([2, 0, 2]),
            "entries": numbered(3, 3),
        },
        ("memory", "slots", "entries", "after"),
        paint="entries",
        by=0,
    ),
    Scene(
        "slice_scatter",
        "inlay.slice_scatter(cache, token, axis=1, start=2, stop=3)",
        "Append this step's keys to a key/value cache.",
        {"cache": floats([5, 3, 0, 0], [6, 1, 0, 0], [4, 2, 0, 0]), "token": floats([7], [8], [9])},
        ("cache", "token", "after"),
        paint="token",
    ),
    Scene(
        "diagonal_scatter",
        "inlay.diagonal_scatter(kernel, raised)",
        "Regularise a kernel matrix before inverting it.",
        {
            "kernel": floats([4, 1, 2, 0], [1, 5, 1, 3], [2, 1, 6, 1], [0, 3, 1, 7]),
            "raised": floats(14, 15, 16, 17),
        },
        ("kernel", "raised", "after"),
        paint="raised",
    ),
    Scene(
        "masked_scatter",
        "inlay.masked_scatter(text, is_image, image)",
        "Put image features into a prompt's text embeddings.",
        {
            "text": numbered(5, 3, start=10),
            "is_image": np.array([[False], [True], [True], [False], [False]]),
            "image": numbered(2, 3),
        },
        ("text", "is_image", "image", "after"),
        paint="image",
    ),
    Scene(
        "tril_indices",
        "row, col = inlay.tril_indices(3)\nmatrix.reshape([-1])[row * 3 + col]",
        "Pack a symmetric matrix into half the memory.",
        {"matrix": floats([4, 1, 2], [1, 5, 3], [2, 3, 6])},
        ("matrix", "row col after"),
        paint="matrix",
        after="packed",
    ),
    Scene(
        "triu_indices",
        "row, col = inlay.triu_indices(3)\n"
        "inlay.scatter(x.reshape([-1]), row * 3 + col, packed).reshape([3, 3])",
        "Unpack parameters into a triangular factor.",
        {"x": np.zeros((3, 3), np.float32), "packed": numbered(6)},
        ("x", "row col packed", "after"),
        paint="packed",
    ),
]


def reducing(title: str, arguments: str, use: str) -> Scene:
    return Scene(
        f"scatter, {title}",
        f"inlay.scatter(nodes, target, messages, overwrite=False, {arguments})",
        use,
        {
            "nodes": floats(50, 60, 70, 80),
            "target": np.array([0, 2, 2, 3, 2]),
            "messages": floats(1, 2, 3, 4, 7),
        },
        ("target messages", "nodes after"),
        paint="messages",
    )


REDUCTIONS = [
    reducing("sum", 'reduce="sum"', "Add up the messages that reach each node of a graph."),
    reducing("mean", 'reduce="mean"', "Average them: pooling by segment, cluster or word."),
    reducing("mul", 'reduce="mul"', "Multiply the likelihoods of each hypothesis."),
    reducing("amax", 'reduce="amax"', "Keep the largest: max pooling of points in voxels."),
    reducing("amin", 'reduce="amin"', "Keep the smallest: nearest point, first arrival."),
    reducing(
        "include_self",
        'reduce="sum", include_self=True',
        "Add to what is there: histograms, embedding gradients.",
    ),
]

FAMILY = [
    Scene(
        "put_along_axis",
        "inlay.put_along_axis(logits, top, scores, axis=1)",
        "Put each row's best scores back into its vocabulary.",
        {
            "logits": np.zeros((3, 4), np.float32),
            "top": np.array([[3, 1], [0, 2], [1, 0]]),
            "scores": numbered(3, 2),
        },
        ("logits", "top", "scores", "after"),
        paint="scores",
    ),
    Scene(
        "select_scatter",
        "inlay.select_scatter(video, frame, axis=0, index=1)",
        "Replace one frame, one channel or one time step.",
        {"video": np.zeros((3, 4), np.float32), "frame": numbered(4)},
        ("video", "frame", "after"),
        paint="frame",
    ),
    Scene(
        "x[...] = v",
        "x[1:, ::2] = v",
        "Write by slice, in place.",
        {"x": np.zeros((3, 4), np.float32), "v": numbered(2, 2)},
        ("x", "v", "after"),
        paint="v",
    ),
    Scene(
        "masked_fill",
        'inlay.masked_fill(scores, future, float("-inf"))',
        "Hide the future from causal attention.",
        {"scores": numbered(3, 3), "future": np.triu(np.ones((3, 3), bool), 1)},
        ("scores", "future", "after"),
    ),
    Scene(
        "index_fill",
        "inlay.index_fill(batch, drop, axis=1, value=0)",
        "Drop whole channels or features.",
        {"batch": numbered(3, 4), "drop": np.array([1, 3])},
        ("batch", "drop", "after"),
    ),
    Scene(
        "tril",
        "inlay.tril(x)",
        "Keep a lower factor, as after Cholesky.",
        {"x": numbered(3, 3)},
        ("x", "after"),
    ),
    Scene(
        "triu",
        "inlay.triu(x, diagonal=1)",
        "Keep what is above the diagonal.",
        {"x": numbered(3, 3)},
        ("x", "after"),
    ),
    Scene(
        "index_select",
        "inlay.index_select(table, words)",
        "Look up embeddings.",
        {"table": numbered(4, 2), "words": np.array([3, 0, 3])},
        ("table", "words", "after"),
        paint="table",
        by=0,
        after="result",
    ),
    Scene(
        "take_along_axis",
        "inlay.take_along_axis(x, order, axis=1)",
        "Sort each row in an order of its own.",
        {
            "x": floats([3, 1, 2], [7, 9, 8], [4, 6, 5]),
            "order": np.array([[1, 2, 0], [0, 2, 1], [0, 2, 1]]),
        },
        ("x", "order", "after"),
        paint="x",
        by=1,
        after="result",
    ),
    Scene(
        "masked_select",
        "inlay.masked_select(tokens, valid)",
        "Leave out the padding of a batch.",
        {
            "tokens": floats([1, 2, 0], [3, 0, 0], [4, 5, 6]),
            "valid": np.array([[True, True, False], [True, False, False], [True, True, True]]),
        },
        ("tokens", "valid", "after"),
        paint="tokens",
        after="result",
    ),
    Scene(
        "diagonal",
        "inlay.diagonal(x, offset=1)",
        "Read a band of a matrix.",
        {"x": numbered(4, 4)},
        ("x", "after"),
        paint="x",
        after="result",
    ),
    Scene(
        "x[...]",
        "x[::-1, 1::2]",
        "Read by slice: any step, either way.",
        {"x": numbered(3, 4)},
        ("x", "after"),
        paint="x",
        after="result",
    ),
]

SECTIONS = {
    "The five": FIVE,
    "scatter with a reduction": REDUCTIONS,
    "The rest of the family": FAMILY,
}


def show(colour: bool) -> None:
    """Print every scene."""
    written, constant = ("Coloured", "Dark") if colour else ("In [brackets]", "In *asterisks*")
    print(f"{written}: what was written, and where it came from. {constant}: a constant.")
    for heading, scenes in SECTIONS.items():
        print(f"\n\n{styled(heading.upper(), '1', colour)}")
        for scene in scenes:
            print(f"\n{styled(scene.title, '1', colour)}  {styled(scene.use, '2', colour)}")
            for line in scene.call.splitlines():
                print(f"  >>> {line}")
            for line in side_by_side(trace(scene), colour):
                print(f"    {line}".rstrip())
    twins = [name for name in inlay.__all__ if name.endswith("_") and name[:-1] in inlay.__all__]
    print(f"\n\n{styled('IN PLACE', '1', colour)}\n")
    print("With a trailing underscore, into the first argument itself, tensor or NumPy array:")
    print(textwrap.fill("  ".join(twins), 76, initial_indent="  ", subsequent_indent="  "))


def main() -> None:
    options_of = parser("Shows every operation of Inlay on small tensors.", "out/tour.png")
    options_of.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    options = options_of.parse_args()
    terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    auto = terminal and not os.environ.get("NO_COLOR")
    show(options.color == "always" or (options.color == "auto" and auto))

    def draw(path: Path) -> None:
        from _picture import draw

        draw(path, {name: [(s, trace(s)) for s in scenes] for name, scenes in SECTIONS.items()})

    save(options.picture, draw, "\nThe same as a picture")


if __name__ == "__main__":
    main()
