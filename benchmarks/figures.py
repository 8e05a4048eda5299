"""Write the figures in README.md and docs/ from one record: tables and the picture.

    python -m benchmarks.figures [RECORD.csv]

The default is the newest record of a full run with several threads.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from benchmarks import plot, record, table
from benchmarks.contender import ROOT
from benchmarks.record import PEERS, Record

PICTURE = ROOT / "docs/bench.png"
TITLES = {"torch": "PyTorch", "paddle": "Paddle", "jax": "JAX", "numpy": "NumPy"}
# The README's rows: large ones of each operation, a read, gradients, programs, and tiny calls.
README = {
    "tril_indices/4096 x 4096, offset 0": "`tril_indices`, 4096 x 4096",
    "diagonal_scatter/4096 x 4096": "`diagonal_scatter`, 4096 x 4096",
    "slice_scatter/32 x 2048 x 128, middle half": "`slice_scatter`, half of 32 x 2048 x 128",
    "slice_scatter/32 x 2048 x 128, step 2": "`slice_scatter`, step 2",
    "masked_scatter/2048 x 4096, 50 %": "`masked_scatter`, 50 % of 2048 x 4096",
    "scatter/1M rows of 64 into 100k, assign": "`scatter`, 1M rows of 64 into 100k",
    "scatter/1M rows of 64 into 100k, sum": "`scatter` sum, the same",
    "scatter/1M rows of 64 into 100k, Zipf, mean": "`scatter` mean, skewed index",
    "scatter/10M values into 1M, sum": "`scatter` sum, 10M values into 1M",
    "large/index_select": "`index_select`, 100k rows of 64",
    "backward/scatter, sum": "`scatter` sum with gradients, 100k rows",
    "static/training step, scatter mean of 200k messages of 64": "training step, `jit`",
    "tiny/scatter, sum": "`scatter` sum, 8 x 8",
    "tiny/slice_scatter": "`slice_scatter`, 8 x 8",
}
STATIC = {
    "static/chain of 8 slices on 32 MiB": "8 `slice_scatter`s in a chain on 32 MiB",
    "static/chain of all five on 32 MiB": "all five operations on 32 MiB",
    "static/training step, scatter mean of 200k messages of 64": (
        "a training step with a `scatter` mean of 200,000 messages"
    ),
    "static/tiny program of 10 nodes": "10 tiny writes",
}


def readme(whole: Record) -> str:
    """The README's table: Inlay and each peer."""
    entries = {one.workload: one for one in whole.entries}
    head = ["", "Inlay", *TITLES.values(), "faster than the best"]
    lines = [table.cells(head), table.rule(len(head))]
    for name, label in README.items():
        one = entries[name]
        spans = [table.marked(one, peer) for peer in PEERS]
        lines.append(table.cells([label, table.span(one.time), *spans, times(one)]))
    return "\n".join(lines)


def static(whole: Record) -> str:
    """The table of docs/static.md: Inlay, eager and static, and the compiled peers."""
    entries = {one.workload: one for one in whole.entries}
    head = ["", "eager", "static", "`torch.compile`", "`jax.jit`"]
    lines = [table.cells(head), table.rule(len(head))]
    for name, label in STATIC.items():
        seconds = entries[name].seconds
        names = ("inlay", "inlay-static", "torch", "jax")
        lines.append(table.cells([label, *(table.span(seconds.get(one)) for one in names)]))
    return "\n".join(lines)


def times(one: record.Entry) -> str:
    return f"{table.times(one.over(one.best))} x"


BLOCKS = {"README.md": readme, "docs/static.md": static}
MARKERS = re.compile(r"(?<=<!-- figures -->\n)(.*?)(?=\n<!-- end of figures -->)", re.DOTALL)


def block(text: str) -> str:
    """The text between the markers of a page."""
    (found,) = MARKERS.findall(text)
    return found


def source(whole: Record, page: str, file: Path) -> str:
    """A table with a line that names its record."""
    up = "../" * page.count("/")
    link = f"[{file.stem}]({up}benchmarks/record/{file.stem}.md)"
    return f"{BLOCKS[page](whole)}\n\nRecord: {link}, {whole.machine}; {whole.versions}."


def make(file: Path) -> None:
    """Write the tables and draw the picture."""
    whole = record.read(file)
    for page in BLOCKS:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        made = source(whole, page, file)
        path.write_text(MARKERS.sub(lambda _, made=made: made, text), encoding="utf-8")
        print(f"written: {page}")
    plot.draw(whole, file.stem, PICTURE)
    print(f"drawn: {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else record.newest())
