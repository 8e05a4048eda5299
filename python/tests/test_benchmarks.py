"""The benchmark's workloads and references: small, Inlay gives what plain NumPy gives."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import inlay

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import inputs, limit, record, reference, rows, table
from benchmarks.roads import Lines, inlay_, inlay_gpu_, inlay_numpy_, inlay_static_, lap, numpy_

SCALE = 0.002
ROWS = [row.scaled(SCALE) for row in rows.load()]
GPU_ROWS = [row.scaled(SCALE) for row in rows.load("gpu")]
EXPECTED = ("result", "grad_x", "grad_values")

each_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def test_every_operation_mode_and_kind_of_input_is_there() -> None:
    whole = rows.load()
    assert {row.op for row in whole} == {
        *("scatter", "slice_scatter", "select_scatter", "diagonal_scatter", "masked_scatter"),
        *("masked_fill", "put_along_axis", "index_add", "index_fill", "tril_indices"),
        *("triu_indices", "index_select", "take_along_axis", "masked_select"),
        *rows.CHAINS,
    }
    assert {row.mode for row in whole} == {"out of place", "in place", "backward"}
    assert {row.layout for row in whole} == {"contiguous", "strided", "transposed"}
    assert {row.index for row in whole} == {"uniform", "sorted", "zipf", "equal", "permutation"}
    assert {row.dtype for row in whole} >= {"float32", "float16", "bfloat16", "float64", "bool"}
    assert all(row.at_least for row in whole if row.group in ("target", "tiny"))


def test_a_part_is_chosen_by_name_or_group() -> None:
    assert {row.op for row in rows.load("masked_fill")} == {"masked_fill"}
    assert {row.group for row in rows.load("growth")} == {"growth"}
    assert rows.load("no such thing") == []
    assert {row.group for row in rows.load("gpu")} == {"gpu"}
    assert not any(row.group == "gpu" for row in rows.load())


def test_tables_cross_and_lists_go_together() -> None:
    table = {
        "name": "{op} {dtype} {axis}",
        "shape": [2, 2],
        "each": [{"op": ["a", "b"]}, {"dtype": ["int64", "bool"], "axis": [0, 1]}],
    }
    assert [row.name for row in rows.expand(table)] == [
        *("a int64 0", "a bool 1"),
        *("b int64 0", "b bool 1"),
    ]


def test_rows_come_back_from_json() -> None:
    assert [rows.row(row.plain()) for row in ROWS] == ROWS


@each_row
def test_roads_lead_to_the_reference(row: rows.Row, tmp_path: Path) -> None:
    static = row.op in rows.CHAINS
    lead(row, tmp_path, (inlay_, inlay_static_) if static else (inlay_, inlay_numpy_, numpy_))


@pytest.mark.parametrize("row", GPU_ROWS, ids=[row.name for row in GPU_ROWS])
def test_roads_on_the_gpu_lead_to_the_reference(row: rows.Row, tmp_path: Path) -> None:
    try:
        lead(row, tmp_path, (inlay_gpu_,))
    finally:
        inlay.set_device("cpu")


def lead(row: rows.Row, folder: Path, libraries: tuple[ModuleType, ...]) -> None:
    arrays = reference.given(row, inputs.build(row))
    expected = reference.results(row, arrays)
    inputs.save(folder, inputs.laid(arrays, row))
    bases = inputs.load(folder, row)
    for library in libraries:
        names = library.roads(row, library.tensors(bases, row))
        assert names or row.mode == "backward" or row.op == "build_program"
        for name in names:
            tensors = library.tensors(bases, row)
            found = library.roads(row, tensors)[name]()
            found = found if row.mode == "backward" else [found]
            named = dict(zip(EXPECTED, map(library.array, found), strict=False))
            verdict, error = reference.compare(row, named, expected)
            right = ("same",) if library is not numpy_ else ("same", "rounded")
            assert verdict in right, (library.__name__, name, error)
            if row.mode != "in place" and "x" in tensors:
                np.testing.assert_array_equal(library.array(tensors["x"]), arrays["x"])
    moved = limit.moved(row, arrays, expected["result"])
    assert moved is None or moved[1] <= max(expected["result"].nbytes, row.count * 16)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "mul"])
@pytest.mark.parametrize("include_self", [True, False])
def test_the_reference_is_the_plain_loop(reduce: str, include_self: bool) -> None:
    row = rows.Row("loop", "scatter", (5, 3), reduce=reduce, include_self=include_self, entries=9)
    arrays = inputs.build(row)
    x, index, values = (arrays[name].astype(float) for name in ("x", "index", "values"))
    right = x.copy()
    for place in set(index.astype(int)):
        given = [values[n] for n in range(len(index)) if index[n] == place]
        given = [x[place], *given] if include_self else given
        function = {"sum": np.sum, "mean": np.mean, "mul": np.prod, "amax": np.max, "amin": np.min}
        right[place] = function[reduce](given, axis=0)
    np.testing.assert_allclose(reference.forward(row, arrays), right, rtol=1e-6)


def test_the_bytes_of_a_slice_are_counted_once() -> None:
    row = rows.Row("slice", "slice_scatter", (1000, 100), start=250, stop=750)
    arrays = inputs.build(row)
    result = reference.forward(row, arrays)
    assert limit.moved(row, arrays, result) == (400_000, 400_000)
    again = rows.Row("again", "slice_scatter", (1000, 100), start=250, stop=750, mode="in place")
    assert limit.moved(again, arrays, result) == (200_000, 200_000)


def test_a_lap_runs_each_kind_of_road() -> None:
    counted: list[int] = []
    for road in (
        Lines("y = count.append(1)", count=counted),
        lambda: counted.append(1),
        numpy_.partial(counted.append, 1),
    ):
        assert lap(road)(5) > 0
    assert len(counted) == 15


def test_targets_are_judged_against_the_best_peer_that_is_right() -> None:
    class Fake:
        def __init__(self, name: str, seconds: float, verdict: str = "same") -> None:
            self.name, self.laps, self.calls = name, [seconds] * 3, 1
            self.prepared = {"road": "a", "verdict": verdict, "error": 0.0, "tried": {}}

    row = rows.Row("target", "scatter", (2,), group="target", at_least=2)
    field = [
        Fake("inlay", 1.0),
        Fake("torch", 3.0),
        Fake("jax", 0.5, "different"),
        Fake("numpy", 4.0),
        Fake("limit", 0.8),
    ]
    entry = record.entry(row, field, (10, 10), threads=2)
    assert (entry["best"], entry["ratio"], entry["of_limit"]) == ("torch", 3.0, 1.25)
    assert [check["met"] for check in entry["checks"]] == [True]
    hello = {one.name: {"version": "1", "numpy": "2"} for one in field}
    whole = record.make([entry], hello, 2, 7, 60.0)
    assert record.wrong(whole) == []
    assert "targets met: 1 of 1" in table.summary(whole)
    assert "| target | 1.00 s | 3.00 s torch | 3.00 | 2 | 1.25 |" in table.readme(whole)
    assert "jax's result differs" in table.page(whole)
