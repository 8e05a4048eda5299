"""In-place operations on arrays and tensors: what they write, and what they do not change."""

import threading

import numpy as np
import pytest

import inlay

# Each writes a source of the target's shape into a square matrix.
WRITES = {
    "scatter_": lambda x, y: inlay.scatter_(x, np.arange(len(x))[::-1], y),
    "scatter_ sum": lambda x, y: inlay.scatter_(
        x, np.zeros(len(x), int), y, overwrite=False, include_self=True
    ),
    "slice_scatter_": lambda x, y: inlay.slice_scatter_(x, y, step=-1),
    "diagonal_scatter_": lambda x, y: inlay.diagonal_scatter_(x, inlay.diagonal(y)),
    "masked_scatter_": lambda x, y: inlay.masked_scatter_(x, np.ones(x.shape, bool), y),
    "put_along_axis_": lambda x, y: inlay.put_along_axis_(
        x, np.zeros(x.shape, int), y, 1, reduce="add"
    ),
    "select_scatter_": lambda x, y: inlay.select_scatter_(x, y[0], 0, -1),
    "masked_fill_": lambda x, y: inlay.masked_fill_(x, np.ones(x.shape, bool), y[0, 0]),
    "index_fill_": lambda x, y: inlay.index_fill_(x, [0, -1], 0, y[0, 0]),
}
writes = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())

PAIRS = {
    "down": (np.s_[1:, :-1], np.s_[:-1, :-1]),
    "up": (np.s_[:-1, 1:], np.s_[1:, 1:]),
    "backwards": (np.s_[:, :], np.s_[::-1, :]),
    "interleaved": (np.s_[::2, ::2], np.s_[1::2, 1::2]),
    "itself": (np.s_[:, :], np.s_[:, :]),
}


@writes
@pytest.mark.parametrize(("to", "source"), PAIRS.values(), ids=PAIRS.keys())
@pytest.mark.parametrize("wrap", [lambda a: a, inlay.from_numpy], ids=["array", "tensor"])
def test_overlapping_sources_are_read_as_they_were(write, to, source, wrap):
    start = np.random.default_rng(0).integers(0, 100, (6, 6))
    apart, shared = start.copy(), start.copy()
    write(wrap(apart[to]), wrap(start[source].copy()))
    write(wrap(shared[to]), wrap(shared[source]))
    np.testing.assert_array_equal(shared, apart)


@writes
def test_the_array_itself_is_written_and_returned(write):
    x = np.zeros((4, 4))
    assert write(x, np.ones((4, 4))) is x
    assert x.any()
    t = inlay.zeros([4, 4], dtype="float64")
    assert write(t, np.ones((4, 4))) is t
    assert t.numpy().any()


@writes
def test_read_only_arrays_are_refused(write):
    x = np.zeros((4, 4))
    x.flags.writeable = False
    for target in (x, inlay.from_numpy(x)):
        with pytest.raises(ValueError, match="read-only"):
            write(target, np.ones((4, 4)))
    assert not x.any()


@writes
def test_arrays_that_overlap_themselves_are_refused(write):
    memory = np.zeros(8)
    x = np.lib.stride_tricks.as_strided(memory, (4, 4), (8, 8), writeable=True)
    with pytest.raises(ValueError, match="overlap"):
        write(x, np.ones((4, 4)))
    assert not memory.any()


@writes
def test_foreign_byte_order_is_refused_in_place_and_taken_as_input(write):
    x = np.zeros((4, 4), dtype=">f8")
    with pytest.raises((TypeError, ValueError), match=r"byte order|endian"):
        write(x, np.ones((4, 4)))
    assert not x.any()
    native = np.zeros((4, 4))
    write(native, np.ones((4, 4), dtype=">f8"))
    assert native.max() >= 1


@writes
def test_lists_are_refused_as_targets(write):
    with pytest.raises((TypeError, AttributeError)):
        write([[1, 2], [3, 4]], [[1, 2], [3, 4]])


def test_an_error_late_in_the_index_leaves_the_target_alone():
    x = np.arange(100_000.0)
    before = x.copy()
    index = np.zeros(100_000, int)
    index[-1] = 100_000
    with pytest.raises(IndexError, match=r"index\[99999\] is 100000"):
        inlay.scatter_(x, index, np.ones(100_000))
    with pytest.raises(IndexError, match=r"index\[99999\]"):
        inlay.scatter_(x, index, np.ones(100_000), overwrite=False, reduce="amax")
    with pytest.raises(IndexError, match=r"index\[99999\]"):
        inlay.put_along_axis_(x, index, np.ones(100_000), 0, reduce="mul")
    with pytest.raises(ValueError, match="source has 99999 elements, mask selects 100000"):
        inlay.masked_scatter_(x, True, np.ones(99_999))
    np.testing.assert_array_equal(x, before)


def hammer(change, call, seconds=0.5):
    """Calls `call` repeatedly while another thread runs `change`."""
    stop = threading.Event()

    def run():
        while not stop.is_set():
            change()

    thread = threading.Thread(target=run)
    thread.start()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    try:
        while not stop.is_set():
            call()
    finally:
        stop.set()
        thread.join()
        timer.cancel()


def test_an_index_that_another_thread_changes_is_checked_where_it_is_used():
    n = 60_000
    index = np.zeros(n, int)
    x, updates = np.zeros(50), np.ones(n)
    outcomes = set()

    def change():
        index[:] = 1 << 60
        index[:] = 0

    def call():
        for how in ({}, {"overwrite": False}, {"overwrite": False, "reduce": "mean"}):
            try:
                inlay.scatter_(x, index, updates, **how)
                inlay.index_select(x, index)
                inlay.put_along_axis_(x, index, updates, 0)
                outcomes.add("written")
            except IndexError:
                outcomes.add("refused")

    hammer(change, call)
    assert outcomes
    assert not x[1:].any(), "only place 0 was ever named"


def test_a_mask_that_another_thread_changes_selects_no_more_than_the_source_has():
    n = 60_000
    mask = np.zeros(n, bool)
    x, source = np.zeros(n), np.ones(n // 2)

    def change():
        mask[:] = True
        mask[:] = False

    def call():
        try:
            inlay.masked_scatter_(x, mask, source)
            assert inlay.masked_select(x, mask).size <= n
        except ValueError as error:
            assert "source has 30000 elements" in str(error)  # noqa: PT017 - either may come

    hammer(change, call)


def test_threads_that_write_one_tensor_take_turns():
    x = inlay.zeros([50_000], dtype="int64")
    index, ones = np.arange(50_000), np.ones(50_000, int)

    def add():
        for _ in range(20):
            x.scatter_(index, ones, overwrite=False, include_self=True)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (x.numpy() == 80).all()


def test_reduce_without_overwrite_warns():
    x = np.zeros(2)
    with pytest.warns(UserWarning, match="overwrite=False"):
        inlay.scatter(x, [0], [1.0], reduce="mean")
    with pytest.warns(UserWarning, match="overwrite=False"):
        inlay.zeros([2]).scatter_([0], [1.0], reduce="sum")
    inlay.scatter(x, [0], [1.0], overwrite=True, reduce="mean")
    inlay.scatter(x, [0], [1.0], overwrite=False, reduce="mean")
