"""Tests of the benchmark: small workloads agree with NumPy, and figures agree with records."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import inlay
from inlay._inlay import _recorded

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import (
    compare,
    cores,
    figures,
    inputs,
    judge,
    limit,
    processes,
    record,
    reference,
    rows,
    strides,
    table,
)
from benchmarks.libraries import (
    Lines,
    inlay_,
    inlay_gpu_,
    inlay_numpy_,
    inlay_static_,
    numpy_,
    timed_loop,
)

SCALE = 0.002
ROWS = [row.scaled(SCALE) for row in rows.load()]
BRIDGE_ROWS = [row.scaled(SCALE) for row in rows.load("bridges")]
GPU_ROWS = [row.scaled(SCALE) for row in rows.load("gpu")]
EXPECTED = ("result", "grad_x", "grad_values")

each_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def test_every_operation_mode_and_kind_of_input_is_there() -> None:
    whole = rows.load() + rows.load("bridges")
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
    assert {row.host for row in rows.load("bridges/torch")} == {"torch"}
    assert not any(row.group == "gpu" or row.host for row in rows.load())


def test_each_framework_has_the_rows_of_all_bridges() -> None:
    whole = rows.load("bridges")
    counts = {host: sum(row.host == host for row in whole) for host in rows.HOSTS}
    chains = len(rows.load("bridges/torch/chain"))
    # Paddle compiles no chain, and JAX has no gradient of a result of unknown size.
    assert counts["paddle"] + chains == counts["jax"] + 1 == counts["torch"]
    assert {row.group for row in whole} == set(rows.BRIDGES) <= set(table.GROUPS)
    tables = rows.tomllib.loads(rows.FILE.read_text(encoding="utf-8"))
    large = [row.name for row in whole if row.group == "bridges-large" and row.host == "torch"]
    assert sorted(large) == sorted(f"bridges/torch/{name}" for name in tables["bridges"])


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
    some = ROWS + BRIDGE_ROWS
    assert [rows.row(row.plain()) for row in some] == some


@each_row
def test_variants_give_the_expected_result(row: rows.Row, tmp_path: Path) -> None:
    static = row.op in rows.CHAINS
    check(row, tmp_path, (inlay_, inlay_static_) if static else (inlay_, inlay_numpy_, numpy_))


@pytest.mark.parametrize(
    "row", [row for row in BRIDGE_ROWS if row.host == "torch"], ids=lambda row: row.name
)
def test_rows_of_the_bridges_have_the_result_of_inlay(row: rows.Row, tmp_path: Path) -> None:
    check(row, tmp_path, (inlay_,))


@pytest.mark.parametrize("row", GPU_ROWS, ids=[row.name for row in GPU_ROWS])
def test_variants_on_the_gpu_give_the_expected_result(row: rows.Row, tmp_path: Path) -> None:
    try:
        check(row, tmp_path, (inlay_gpu_,))
    finally:
        inlay.set_device("cpu")


def check(row: rows.Row, folder: Path, libraries: tuple[ModuleType, ...]) -> None:
    arrays = reference.given(row, inputs.build(row))
    expected = reference.results(row, arrays)
    inputs.save(folder, inputs.laid(arrays, row))
    bases = inputs.load(folder, row)
    for library in libraries:
        names = library.variants(row, library.tensors(bases, row))
        assert names or row.mode == "backward" or row.op == "build_program"
        for name in names:
            tensors = library.tensors(bases, row)
            found = library.variants(row, tensors)[name]()
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


def test_a_timed_loop_runs_each_kind_of_variant() -> None:
    counted: list[int] = []
    for variant in (
        Lines("y = count.append(1)", count=counted),
        lambda: counted.append(1),
        numpy_.partial(counted.append, 1),
    ):
        assert timed_loop(variant)(5) > 0
    assert len(counted) == 15


class Fake:
    """A contender that has already been timed."""

    def __init__(self, name: str, seconds: float, verdict: str = "same") -> None:
        self.name, self.samples = name, [seconds] * 3
        self.prepared = {"variant": "a", "verdict": verdict, "error": 0.0, "tried": {}}


def whole() -> record.Record:
    row = rows.Row("target", "scatter", (2,), group="target", at_least=2, numpy_at_least=1)
    contenders = [
        *(Fake("inlay", 1.0), Fake("inlay-numpy", 5.0), Fake("torch", 3.0)),
        *(Fake("jax", 0.5, "different"), Fake("numpy", 4.0), Fake("limit", 0.8)),
    ]
    entry = judge.entry(row, contenders, (10, 10), threads=2)
    hello = {one.name: {"version": "1", "numpy": "2"} for one in contenders}
    assert list(judge.wrong(row, contenders)) == []
    return judge.make([entry], list(judge.differences(row, contenders)), hello, 2, 7, 60.0)


def test_targets_are_judged_against_the_best_peer_that_is_right() -> None:
    (entry,) = whole().entries
    assert (entry.best, entry.over(entry.peer), entry.of_limit) == ("torch", 3.0, 1.25)
    assert (entry.targets, entry.missed) == (2, "NumPy in and out, faster than NumPy 0.80")
    assert "targets met: 1 of 2" in table.summary(whole())
    assert "jax's result differs" in table.page(whole())


def test_a_result_of_inlay_that_is_wrong_or_missing_is_named() -> None:
    row = rows.Row("row", "scatter", (2,))
    missing = Fake("inlay-numpy", 1.0)
    missing.samples = []
    found = list(judge.wrong(row, [Fake("inlay", 1.0, "different"), missing, Fake("jax", 1.0)]))
    assert [text.split(": ")[1] for text in found] == ["inlay", "inlay-numpy"]


def bridges() -> record.Record:
    """One row of each kind on PyTorch's tensors."""
    names = ("torch", "matmul", "inlay", "inlay-bridge", "inlay-compiled", "inlay-alternating")
    seconds = dict(zip(names, (6.0, 6.0, 2.0, 4.0, 3.0, 12.5), strict=True))
    named = {row.group: row for row in rows.load("bridges/torch")}
    entries = []
    for row in named.values():
        contenders = [Fake(name, seconds[name]) for name in row.contenders]
        entries.append(judge.entry(row, contenders, None, threads=2))
    hello = {name: {"version": "1", "numpy": "2"} for name in seconds}
    return judge.make(entries, [], hello, 2, 7, 60.0)


def test_calls_on_tensors_of_frameworks_have_their_own_targets() -> None:
    entries = {one.group: one for one in bridges().entries}
    found = {group: (one.peer, one.over(one.peer), one.missed) for group, one in entries.items()}
    assert found == {
        "bridges-large": ("inlay", 0.5, "faster than inlay 0.50"),
        "bridges-tiny": ("torch", 1.5, ""),
        "bridges-gradients": ("torch", 1.5, ""),
        "bridges-chains": ("inlay-bridge", 4 / 3, ""),
        "bridges-threads": ("alone", 0.8, "faster than alone 0.80"),
    }
    assert all(one.targets == 1 for one in entries.values())
    spans = "2.00 s | 4.00 s | 6.00 s | 3.00 | 1.50 | 0.50 | 0.9 | short: faster than inlay 0.50"
    assert f"| {entries['bridges-large'].workload} | {spans} |" in table.page(bridges())
    assert record.from_csv(record.to_csv(bridges())) == bridges()


def test_contenders_of_one_host_share_a_process(tmp_path: Path) -> None:
    (row,) = rows.load("tiny/index_add, sum")
    commands = [
        *(processes.Command(name, name, sys.executable, "host") for name in ("numpy", "inlay")),
        processes.Command("other", "numpy", sys.executable),
    ]
    with processes.started(commands, 1, tmp_path / "log") as started:
        first, second, other = started
        assert first.process is second.process is not other.process
        processes.prepare(row, started)
        for one in (first, second, other, second, first):
            one.time()
        assert [len(one.samples) for one in started] == [2, 2, 1]
        assert [one.prepared["verdict"] for one in started] == ["same"] * 3
        first.process.end()  # as in a crash
        first.process.start()
        assert [one.ready for one in started] == [False, False, True]


def test_a_record_comes_back_from_csv() -> None:
    assert record.from_csv(record.to_csv(whole())) == whole()


@pytest.mark.parametrize("file", sorted(record.FOLDER.glob("*.csv")), ids=lambda file: file.stem)
def test_the_page_of_a_record_is_made_from_its_csv(file: Path) -> None:
    assert file.with_suffix(".md").read_text(encoding="utf-8") == table.page(record.read(file))
    assert record.to_csv(record.read(file)) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", figures.BLOCKS)
def test_figures_on_pages_are_those_of_the_newest_record(page: str) -> None:
    newest = record.newest()
    text = (figures.ROOT / page).read_text(encoding="utf-8")
    assert figures.block(text) == figures.source(record.read(newest), page, newest), (
        "run `make figures`"
    )


def test_the_picture_is_of_the_newest_record() -> None:
    assert f"Source\0{record.newest().stem}".encode() in figures.PICTURE.read_bytes(), (
        "run `make figures`"
    )


def pair(*passes: list[float]) -> compare.Pair:
    """A comparison with the given ratios in each pass."""
    made = compare.Pair(ROWS[0], "inlay")
    made.passes = [[(1.0, ratio) for ratio in one] for one in passes]
    return made


@pytest.mark.parametrize(
    ("passes", "verdict"),
    [
        ([[1.1] * 9], "same"),  # not confirmed by new processes
        ([[1.1] * 9, [1.1] * 18, [1.1] * 18, [1.1] * 18], "slower"),
        ([[0.9] * 9, [0.9] * 18, [0.9] * 18, [0.9] * 18], "faster"),
        ([[1.1] * 9, [1.02] * 18, [1.02] * 18, [1.02] * 18], "same"),  # pass 1 does not count
        ([[1.1] * 9, [1.1] * 18, [1.0] * 18, [1.1] * 18], "unclear"),  # processes differ
        ([[1.1] * 9, *[[0.8, 0.9, 1.08, 1.1, 1.3, 1.4] * 3] * 3], "unclear"),  # rounds differ
        ([[1.1] * 9, *[[*[1.1] * 16, 9.0, 0.1]] * 3], "slower"),  # two outliers don't hide it
    ],
)
def test_a_build_is_slower_only_beyond_noise(passes: list[list[float]], verdict: str) -> None:
    assert pair(*passes).verdict == verdict


def test_two_builds_are_timed_in_alternation() -> None:
    (row,) = rows.load("tiny/index_add, sum")
    pairs = [compare.Pair(row, kind) for kind in ("inlay", "inlay-numpy")]
    options = argparse.Namespace(new=sys.executable, base=sys.executable, threads=1)
    assert compare.run(pairs, options, 2) == []
    assert [len(one.passes[0]) for one in pairs] == [2, 2]
    assert all(0.1 < one.ratio < 10 for one in pairs)


def test_the_longest_thread_takes_the_next_part_when_it_is_free() -> None:
    # Two threads: 5 and 3, then 2 after the 3; between the phases one thread works for 1 s.
    phases = [[5_000_000_000, 3_000_000_000, 2_000_000_000], [1_000_000_000]]
    assert cores.longest(phases, 1.0, 2) == 1 + 5 + 1
    assert cores.longest(phases, 1.0, 1) == 1 + 10 + 1
    assert cores.longest([], 0.5, 64) == 0.5


def test_parts_of_a_call_are_measured() -> None:
    x = inlay.ones([4000, 1000])
    before = inlay.get_num_threads()
    try:
        inlay.set_num_threads(3)
        case = cores.Case("x + x", lambda: x + x, 3 * 4 * 4_000_000)
        found = cores.measure(case, 1e10)
    finally:
        inlay.set_num_threads(before)
    assert len(found.cells()) == len(cores.HEADING)
    assert all(0 < found.longest[n] <= 2 * found.total[n] for n in cores.THREADS)
    assert all(0 < found.in_turn_longest[n] <= 2 * found.in_turn[n] for n in (1, *cores.MANY))
    # The parts are the same, whoever runs them.
    inlay.set_num_threads(3)
    try:
        by_threads, in_turn = (_recorded(lambda: x + x, how) for how in (False, True))
    finally:
        inlay.set_num_threads(before)
    assert [len(parts) for parts in by_threads[1]] == [len(parts) for parts in in_turn[1]] == [12]
    assert 0 < in_turn[0] < sum(in_turn[1][0])


def test_strided_inputs_have_the_values_of_contiguous_ones() -> None:
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    for name, arrange in strides.LAYOUTS.items():
        arranged = arrange(x)
        assert arranged.shape == x.shape
        assert (arranged == (x[:1] if name == "broadcast" else x)).all()
        assert not (arranged.flags.c_contiguous and arranged.flags.aligned)


def test_every_operation_on_strided_inputs_agrees_with_numpy() -> None:
    # `measure` compares each result with NumPy's.
    found = list(strides.measure(40, tuple(strides.LAYOUTS)))
    assert {one.layout for one in found} == set(strides.LAYOUTS)
    assert {one.operation for one in found} == {one.name for one in strides.operations()}
    assert all(len(one.cells()) == len(strides.HEADING) for one in found)
