"""How much longer calls take on strided inputs, beside NumPy and beside contiguous inputs.

    python -m benchmarks --only strides

Each operation gets inputs of the same values in several layouts: transposed, every other column,
reversed, broadcast, and not aligned to their elements. See benchmarks/README.md.
"""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

import numpy as np

from benchmarks import record
from benchmarks.contender import ROOT

ROUNDS = 7
BUDGET = 1.0  # seconds per case; slow cases get fewer rounds, but at least three
NUMPY, CONTIGUOUS = 1.5, 2.0  # the targets: at most so many times as long
HEADING = ("operation", "layout", "side", "interface", "ms", "contiguous, ms", "NumPy, ms")
HEADING += ("x contiguous", "x NumPy")

Arrays = dict[str, np.ndarray]


def transposed(x: np.ndarray) -> np.ndarray:
    """The same values, with the last axis first in memory."""
    return np.ascontiguousarray(x.T).T


def every_other(x: np.ndarray) -> np.ndarray:
    """The same values, in every other column of a wider array."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return wide[..., ::2]


def reversed_(x: np.ndarray) -> np.ndarray:
    """The same values, from the end to the beginning of the memory, along all axes."""
    flip = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[flip])[flip]


def broadcast(x: np.ndarray) -> np.ndarray:
    """The first row, repeated."""
    return np.broadcast_to(x[:1].copy(), x.shape)


def misaligned(x: np.ndarray) -> np.ndarray:
    """The same values, one byte after an aligned address."""
    raw = np.empty(x.nbytes + 1, np.uint8)[1:]
    raw[:] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
    return raw.view(x.dtype).reshape(x.shape)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": transposed,
    "every other column": every_other,
    "reversed": reversed_,
    "broadcast": broadcast,
    "misaligned": misaligned,
}
# The sides of the matrices, and their layouts. The largest ones have 10^8 elements.
SIDES = {1000: tuple(LAYOUTS), 4000: tuple(LAYOUTS), 10_000: ("transposed",)}


@dataclass
class Operation:
    """An operation, and the NumPy expression that makes the same row-major result."""

    name: str
    inlay: Callable[[object, dict], object]  # gets the module and the arguments
    numpy: Callable[[Arrays], object]
    strided: tuple[str, ...]  # the arguments that get the layout


def copied(x: np.ndarray) -> np.ndarray:
    """A row-major copy."""
    return np.array(x, order="C")


def written(x: np.ndarray, write: Callable[[np.ndarray], object]) -> np.ndarray:
    """A row-major copy, after a write to it."""
    out = copied(x)
    write(out)
    return out


def operations() -> Iterator[Operation]:
    """The operations that are measured. Together they use every kernel."""
    xy, only = ("x", "y"), ("x",)
    empty = np.empty_like

    def op(name: str, strided: tuple[str, ...], inlay: Callable, numpy: Callable) -> Operation:
        return Operation(name, inlay, numpy, strided)

    yield op("copy", only, lambda i, a: i.to_tensor(a["x"]) + 0.0, lambda a: copied(a["x"]))
    yield op(
        "add",
        xy,
        lambda i, a: i.add(a["x"], a["y"]),
        lambda a: np.add(a["x"], a["y"], out=empty(a["x"], order="C")),
    )
    yield op(
        "less_than",
        xy,
        lambda i, a: i.less_than(a["x"], a["y"]),
        lambda a: np.less(a["x"], a["y"], out=empty(a["x"], bool, order="C")),
    )
    yield op(
        "where",
        (*xy, "mask"),
        lambda i, a: i.where(a["mask"], a["x"], a["y"]),
        lambda a: np.where(a["mask"], a["x"], a["y"]),
    )
    yield op(
        "cast",
        only,
        lambda i, a: i.cast(a["x"], "float64"),
        lambda a: a["x"].astype(np.float64, order="C"),
    )
    yield op(
        "masked_fill",
        ("x", "mask"),
        lambda i, a: i.masked_fill(a["x"], a["mask"], 0.0),
        lambda a: written(a["x"], lambda out: np.putmask(out, a["mask"], 0.0)),
    )
    yield op(
        "masked_select",
        ("x", "mask"),
        lambda i, a: i.masked_select(a["x"], a["mask"]),
        lambda a: a["x"][a["mask"]],
    )
    yield op(
        "masked_scatter",
        ("x", "mask", "y"),
        lambda i, a: i.masked_scatter(a["x"], a["mask"], a["y"]),
        lambda a: written(a["x"], lambda out: np.place(out, a["mask"], a["y"])),
    )
    for axis in (0, 1):
        key = (slice(None),) * axis

        def at(a: Arrays, key: tuple = key) -> tuple:
            return (*key, a["index"])

        yield op(
            f"index_select, axis {axis}",
            only,
            lambda i, a, axis=axis: i.index_select(a["x"], a["index"], axis),
            lambda a, axis=axis: np.take(a["x"], a["index"], axis),
        )
        yield op(
            f"take_along_axis, axis {axis}",
            ("x", "along"),
            lambda i, a, axis=axis: i.take_along_axis(a["x"], a["along"], axis, False),
            lambda a, axis=axis: np.take_along_axis(a["x"], a["along"], axis),
        )
        yield op(
            f"scatter, axis {axis}",
            xy,
            lambda i, a, axis=axis: i.scatter(a["x"], a["index"], a["y"], axis=axis),
            lambda a, at=at: written(a["x"], lambda out: out.__setitem__(at(a), a["y"])),
        )
        yield op(
            f"scatter sum, axis {axis}",
            xy,
            lambda i, a, axis=axis: i.scatter(
                a["x"], a["index"], a["y"], False, axis, "sum", include_self=True
            ),
            lambda a, at=at: written(a["x"], lambda out: np.add.at(out, at(a), a["y"])),
        )
        yield op(
            f"put_along_axis, axis {axis}",
            ("x", "along", "y"),
            lambda i, a, axis=axis: i.put_along_axis(a["x"], a["along"], a["y"], axis),
            lambda a, axis=axis: written(
                a["x"], lambda out: np.put_along_axis(out, a["along"], a["y"], axis)
            ),
        )
        yield op(
            f"sum, axis {axis}",
            only,
            lambda i, a, axis=axis: i.sum(a["x"], axis),
            lambda a, axis=axis: np.sum(a["x"], axis),
        )
        yield op(
            f"amax, axis {axis}",
            only,
            lambda i, a, axis=axis: i.amax(a["x"], axis),
            lambda a, axis=axis: np.max(a["x"], axis),
        )
        yield op(
            f"slice_scatter, axis {axis}",
            ("x", "half"),
            lambda i, a, axis=axis: i.slice_scatter(
                a["x"], a["half"] if axis == 0 else a["half"].T, axis, 0, a["half"].shape[0]
            ),
            lambda a, key=key, axis=axis: written(
                a["x"],
                lambda out: out.__setitem__(
                    (*key, slice(0, len(a["half"]))), a["half"] if axis == 0 else a["half"].T
                ),
            ),
        )
        yield op(
            f"concat, axis {axis}",
            xy,
            lambda i, a, axis=axis: i.concat([a["x"], a["y"]], axis),
            lambda a, axis=axis: np.concatenate([a["x"], a["y"]], axis),
        )
    yield op("sum", only, lambda i, a: i.sum(a["x"]), lambda a: np.sum(a["x"]))
    yield op("tril", only, lambda i, a: i.tril(a["x"]), lambda a: np.tril(a["x"]))
    yield op(
        "diagonal_scatter",
        only,
        lambda i, a: i.diagonal_scatter(a["x"], a["line"]),
        lambda a: written(a["x"], lambda out: np.fill_diagonal(out, a["line"])),
    )
    yield op(
        "index_put",
        xy,
        lambda i, a: i.index_put(a["x"], (a["index"],), a["y"]),
        lambda a: written(a["x"], lambda out: out.__setitem__((a["index"],), a["y"])),
    )


def inputs(side: int) -> Arrays:
    """The arguments, contiguous."""
    rng = np.random.default_rng(0)
    return {
        "x": rng.standard_normal((side, side), np.float32),
        "y": rng.standard_normal((side, side), np.float32),
        "mask": rng.random((side, side), np.float32) < 0.5,
        "index": rng.permutation(side),
        "along": rng.integers(0, side, (side, side)),
        "half": rng.standard_normal((side // 2, side), np.float32),
        "line": rng.standard_normal(side, np.float32),
    }


@dataclass
class Measured:
    """The times of one operation on one layout, in seconds."""

    operation: str
    layout: str
    side: int
    interface: str
    strided: float
    contiguous: float
    numpy: float

    def cells(self) -> list[str]:
        """The cells of a table."""
        times = (self.strided, self.contiguous, self.numpy)
        return [
            self.operation,
            self.layout,
            str(self.side),
            self.interface,
            *(f"{seconds * 1e3:.3g}" for seconds in times),
            f"{self.strided / self.contiguous:.2f}",
            f"{self.strided / self.numpy:.2f}",
        ]


def alternate(calls: list[Callable[[], object]]) -> list[float]:
    """The median time of each call, timed in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for one in calls:
        one()
    spent = 0.0
    for number in range(ROUNDS):
        if number >= 3 and spent > BUDGET:
            break
        for one, took in zip(calls, times, strict=True):
            began = time.perf_counter()
            one()
            took.append(time.perf_counter() - began)
            spent += took[-1]
    return [statistics.median(took) for took in times]


def compared(one: Operation, own: dict, own_plain: dict, mixed: Arrays, plain: Arrays) -> list:
    """The times of an operation, after its result was compared with NumPy's.

    They are those on Inlay's tensors, strided and contiguous, on arrays, likewise, and NumPy's.
    """
    import inlay

    result, expected = np.asarray(one.inlay(inlay, own)), one.numpy(mixed)
    close = {"rtol": 1e-3, "atol": 1e-2} if "sum" in one.name else {"rtol": 0, "atol": 0}
    if "put_along" not in one.name:  # NumPy does not promise which of equal entries wins
        np.testing.assert_allclose(result, expected, **close)
    inputs = (own, own_plain, mixed, plain)
    calls = [lambda given=given: one.inlay(inlay, given) for given in inputs]
    return alternate([*calls, lambda: one.numpy(mixed)])


def measure(side: int, layouts: tuple[str, ...], only: str = "") -> Iterator[Measured]:
    """Measure all operations on some layouts of one size."""
    import inlay

    plain = inputs(side)
    own_plain = {name: inlay.to_tensor(x) for name, x in plain.items()}
    for layout in layouts:
        arrange = LAYOUTS[layout]
        arranged = {name: arrange(x) if x.ndim > 1 else x for name, x in plain.items()}
        # The memory of a tensor is aligned, so a misaligned array is copied.
        view = inlay.to_tensor if layout == "misaligned" else inlay.from_dlpack
        for one in operations():
            if only not in one.name:
                continue
            mixed = {name: (arranged if name in one.strided else plain)[name] for name in plain}
            own = own_plain | {name: view(arranged[name]) for name in one.strided}
            times = compared(one, own, own_plain, mixed, plain)
            strided, contiguous, arrays, flat, numpy = times
            if layout != "misaligned":
                yield Measured(one.name, layout, side, "own", strided, contiguous, numpy)
            yield Measured(one.name, layout, side, "NumPy", arrays, flat, numpy)


def page(found: list[Measured]) -> str:
    """The page of a record."""
    lines = [
        "# Strided inputs",
        "",
        f"Measured on {date.today()} by `make bench ONLY=strides`. *x contiguous* is Inlay's time",
        "on strided inputs divided by that on contiguous ones, *x NumPy* the same divided by the",
        "time of NumPy on the same inputs. [benchmarks/README.md](../../README.md) says how.",
        "",
        "| " + " | ".join(HEADING) + " |",
        "|---|---|---:|---|" + "---:|" * (len(HEADING) - 4),
    ]
    lines += ["| " + " | ".join(one.cells()) + " |" for one in found]
    beside = sum(one.strided <= NUMPY * one.numpy for one in found)
    itself = sum(one.strided <= CONTIGUOUS * one.contiguous for one in found)
    lines += [
        "",
        f"{beside} of {len(found)} take at most {NUMPY} times NumPy's time,",
        f"and {itself} at most {CONTIGUOUS:g} times that on contiguous inputs.",
        "",
    ]
    return "\n".join(lines)


def main(scale: float, only: str = "") -> int:
    """Measure all sizes, print the table, and write the record."""
    widths = [24, 20, 6, 9] + [max(len(cell), 8) for cell in HEADING[4:]]
    print("  ".join(cell.ljust(width) for cell, width in zip(HEADING, widths, strict=True)))
    found = []
    for side, layouts in SIDES.items():
        for one in measure(max(int(side * scale**0.5), 8), layouts, only):
            found.append(one)
            cells = list(zip(one.cells(), widths, strict=True))
            texts = [cell.ljust(width) for cell, width in cells[:4]]
            print("  ".join(texts + [cell.rjust(w) for cell, w in cells[4:]]), flush=True)
    whole = scale == 1 and not only
    folder = record.FOLDER / "strides" if whole else ROOT / "out"
    folder.mkdir(exist_ok=True)
    file = folder / (f"{date.today()}.csv" if whole else "strides.csv")
    with file.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(HEADING)
        writer.writerows(one.cells() for one in found)
    file.with_suffix(".md").write_text(page(found))
    print("\n" + "\n".join(page(found).strip().splitlines()[-2:]))
    print(f"\nwritten: {file.relative_to(ROOT)}, {file.with_suffix('.md').relative_to(ROOT)}")
    return 0
