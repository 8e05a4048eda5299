"""The workloads: rows made from the tables of ``workloads.toml``."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("workloads.toml")
TRIANGLES = ("tril_indices", "triu_indices")
CHAINS = (
    *("slice_chain", "four_chain", "mixed_chain"),
    *("train_step", "tiny_program", "build_program"),
)
HOSTS = ("torch", "paddle", "jax")
READS = ("index_select", "take_along_axis", "masked_select")

# The groups of workloads on the tensors of a framework, their host: the contenders, the one that
# must meet the target, the target, and what it is compared with. That is Inlay on its own tensors,
# the host, the same chain run eagerly, or the sum of a matrix product's time and a call's time.
ON_HOST = ("{host}", "inlay", "inlay-bridge")
CHAINED = ("inlay", "inlay-bridge", "inlay-compiled")
IN_TURN = ("matmul", "inlay-bridge", "inlay-alternating")
BRIDGES: dict[str, tuple[tuple[str, ...], str, float, str]] = {
    "bridges-large": (ON_HOST, "inlay-bridge", 0.9, "inlay"),
    "bridges-tiny": (ON_HOST, "inlay-bridge", 1, "{host}"),
    "bridges-gradients": (ON_HOST, "inlay-bridge", 0.5, "{host}"),
    "bridges-chains": (CHAINED, "inlay-compiled", 1, "inlay-bridge"),
    "bridges-threads": (IN_TURN, "inlay-alternating", 0.87, "alone"),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One workload. An operation ignores the fields that it does not use."""

    name: str
    op: str
    shape: tuple[int, ...]  # the shape of x, or of the matrix for triangles
    group: str = "coverage"  # target, tiny, static, coverage, growth, gpu or one of BRIDGES
    dtype: str = "float32"
    layout: str = "contiguous"  # of x, values and mask; or strided, transposed
    mode: str = "out of place"  # or in place, backward
    axis: int = 0
    reduce: str = "assign"
    include_self: bool = True
    entries: int = 0  # the entries of the index along the axis
    index: str = "uniform"  # or sorted, zipf, equal, permutation
    mask: float = 0.5  # the fraction that is true
    mask_rows: bool = False  # one bool per row, broadcast
    start: int | None = None
    stop: int | None = None
    step: int = 1
    at: int = 0  # the place that select_scatter writes
    offset: int = 0
    axis1: int = 0
    axis2: int = 1
    at_least: float | None = None  # the target: how many times faster than the best peer
    against: str = ""  # the target refers to this peer instead of the best one
    at_most_us: float | None = None  # the target in microseconds
    numpy_at_least: float | None = None  # the target with NumPy arrays, against NumPy
    ours: str = "inlay"  # the contender that must meet the targets
    eager_at_least: float | None = None  # the target: how many times faster than eager
    contenders: tuple[str, ...] = ()  # only these; all by default
    host: str = ""  # the framework on whose tensors and in whose process the contenders run
    matmul: int = 0  # the size of the matrix product that alternates with the operation
    what: str = ""  # a part of `name`

    @property
    def moves(self) -> bool:
        """Whether values are only moved."""
        sums = ("index_add", "four_chain", "mixed_chain", "train_step", "build_program")
        plain = self.op not in sums
        return plain and self.reduce == "assign" and self.mode != "backward"

    @property
    def count(self) -> int:
        """The number of elements of x."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def selection(self) -> tuple[slice, ...]:
        """The places that slice_scatter writes, as a key for ``x[...]``."""
        key = [slice(None)] * len(self.shape)
        key[self.axis] = slice(self.start, self.stop, self.step)
        return tuple(key)

    def scaled(self, scale: float) -> Row:
        """The same workload, with sizes above 16 scaled down."""

        def size(old: int) -> int:
            return old if old <= 16 else max(16, round(old * scale))

        def place(old: int | None, axis: int) -> int | None:
            if old is None:
                return None
            whole = self.shape[axis]
            return old * size(whole) // whole

        return dataclasses.replace(
            self,
            shape=tuple(map(size, self.shape)),
            # The number of nodes of a small program is not scaled.
            entries=self.entries if self.op == "tiny_program" else size(self.entries),
            start=place(self.start, self.axis),
            stop=place(self.stop, self.axis),
            at=place(self.at, self.axis),
            offset=place(self.offset, 0),
            matmul=size(self.matmul),
        )

    def plain(self) -> dict[str, Any]:
        """The fields that differ from their defaults, for JSON."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }


def row(fields: dict[str, Any]) -> Row:
    """Make a row from the fields of TOML or JSON."""
    fields = dict(fields)
    for name in ("shape", "contenders"):
        if name in fields:
            fields[name] = tuple(fields[name])
    fields["name"] = fields["name"].format(**fields)
    return Row(**fields)


def expand(table: dict[str, Any]) -> list[Row]:
    """The rows of a table: the Cartesian product of the tables under ``each``.

    The lists within one of these tables are zipped.
    """
    fixed = {key: value for key, value in table.items() if key != "each"}
    picks = []
    for each in table.get("each", []):
        values = zip(*each.values(), strict=True)
        picks.append([dict(zip(each, pick, strict=True)) for pick in values])
    rows = []
    for pick in itertools.product(*picks):
        fields = dict(fixed)
        for part in pick:
            fields.update(part)
        rows.append(row(fields))
    return rows


# Derived rows have targets of their own.
TARGETS = ("at_least", "against", "at_most_us", "numpy_at_least", "eager_at_least")
NO_TARGETS = {
    field.name: field.default for field in dataclasses.fields(Row) if field.name in TARGETS
}


def on_gpu(row: Row) -> Row:
    """The same workload on the GPU, compared with the CPU and with a plain copy on the GPU.

    The target of a small call, including reading back its result, is 0.5 ms.
    """
    targets = {**NO_TARGETS, "at_most_us": 500.0 if row.group == "tiny" else None}
    return dataclasses.replace(
        row,
        name=f"gpu/{row.name}",
        group="gpu",
        contenders=("inlay", "inlay-gpu", "gpu-copy"),
        ours="inlay-gpu",
        **targets,
    )


def bridge(row: Row, large: list[str]) -> str:
    """The group that a workload has on the tensors of a framework, if any."""
    if row.group == "tiny" and row.op not in TRIANGLES:
        return "bridges-tiny"
    if row.name in large:
        return "bridges-large"
    return row.group if row.group in BRIDGES else ""


def on_host(row: Row, group: str, host: str) -> Row:
    """The same workload on the tensors of a framework, and in its process."""
    contenders, ours, at_least, against = BRIDGES[group]
    return dataclasses.replace(
        row,
        name=f"bridges/{host}/{row.name}",
        group=group,
        host=host,
        contenders=tuple(name.format(host=host) for name in contenders),
        ours=ours,
        **{**NO_TARGETS, "at_least": at_least, "against": against.format(host=host)},
    )


def on_hosts(rows: list[Row], large: list[str]) -> list[Row]:
    """The workloads on the tensors of each framework that can do them."""
    found = []
    for host, group in itertools.product(HOSTS, BRIDGES):
        if group == "bridges-chains" and host == "paddle":  # only PyTorch and JAX compile
            continue
        for row in rows:
            # JAX has no gradient of a result whose size depends on values.
            unknown = row.op == "masked_select" and row.mode == "backward" and host == "jax"
            if bridge(row, large) == group and not unknown:
                found.append(on_host(row, group, host))
    return found


def load(only: str = "") -> list[Row]:
    """The rows whose name or group contains `only`.

    Rows on the GPU and on the tensors of frameworks only if `only` begins with gpu or bridges.
    """
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    rows = [row for table in tables["workload"] for row in expand(table)]
    names = [row.name for row in rows]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"workloads.toml: more than one row is named {sorted(twice)}")
    if only.startswith("gpu"):
        chosen = [row for row in rows if row.group in ("target", "tiny", "static")]
        rows = [on_gpu(row) for row in chosen if row.op != "build_program"]
    elif only.startswith("bridges"):
        rows = on_hosts(rows, tables["bridges"])
    else:
        rows = [row for row in rows if row.group not in BRIDGES]
    return [row for row in rows if only in row.name or only == row.group]
