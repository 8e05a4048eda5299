"""What a call needs besides its result, by the pool's own counters: each in a fresh process, since
the peak is that of the process."""

import subprocess
import sys

import pytest

# Sizes are the pool's own classes, so that nothing is rounded up.
PRELUDE = """
import numpy as np, inlay
inlay.set_num_threads(2)
rng = np.random.default_rng(0)
def own(array): return inlay.to_tensor(array)
def f32(*shape): return own(rng.random(shape, np.float32))
def f16(*shape): return own(rng.random(shape, np.float32).astype(np.float16))
def index(entries, places): return own(rng.integers(0, places, entries))
"""
MEASURE = """
before = inlay.memory_stats()['in_use']
y = call()
peak = inlay.memory_stats()['peak'] - before
print(peak - y.numpy().nbytes)
"""
N, ROWS, PLACES = 1 << 22, 1 << 16, 1 << 13
VALUES = f"x, i, u = f32({N // 4}), index({N}, {N // 4}), f32({N})"
WIDE = f"x, i, u = f32({PLACES}, 64), index({ROWS}, {PLACES}), f32({ROWS}, 64)"
SPARSE = f"x, i, u = f32({16 * ROWS}, 32), index({ROWS}, {16 * ROWS}), f32({ROWS}, 32)"
HALVES = SPARSE.replace("f32", "f16")
PAGE = 1 << 16
"""Small blocks beside: counts a part, lists on a stack."""


def workspace(setup: str, call: str) -> int:
    """Bytes that ``call`` held at its peak, besides its result."""
    program = f"{PRELUDE}{setup}\ncall = lambda: {call}\n{MEASURE}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(
    ("setup", "call", "most"),
    [
        # A bit an element and a count a block: no prefix sums.
        (
            f"x, m = f32({N}), own(rng.random({N}) < 0.5)",
            "x.masked_scatter(m, x)",
            N // 8 + N // 512,
        ),
        # One with gaps is copied together first.
        (
            f"x, m = f32({N}), own(rng.random({2 * N}) < 0.5)[::2]",
            "x.masked_scatter(m, x)",
            N + N // 8 + N // 512,
        ),
        (f"x, u = f32(4, {N // 4}), f32(2, {N // 4})", "x.slice_scatter(u, 0, 1, 3)", 0),
        ("x, u = f32(1024, 1024), f32(1024)", "x.diagonal_scatter(u)", 0),
        (VALUES, "x.scatter(i, u)", 0),
        (VALUES, "x.scatter(i, u, overwrite=False, include_self=True)", 0),
        # A bit a place, to know the first of its values.
        (VALUES, "x.scatter(i, u, overwrite=False)", N // 4 // 8),
        # A count a place.
        (VALUES, "x.scatter(i, u, overwrite=False, reduce='mean')", N),
        (WIDE, "x.scatter(i, u)", 16 * ROWS + 4 * PLACES),
        (WIDE, "x.scatter(i, u, overwrite=False)", 16 * ROWS + 4 * PLACES),
        (WIDE, "x.scatter(i, u, overwrite=False, reduce='mean')", 16 * ROWS + 4 * PLACES),
        # Written as it comes, with a bit a place.
        (SPARSE, "x.scatter(i, u)", 0),
        (SPARSE, "x.scatter(i, u, overwrite=False)", 16 * ROWS // 8),
        # Sorted, since a sum does not fit into an element: the index, where its entries belong, and
        # where those of a place end.
        (HALVES, "x.scatter(i, u, overwrite=False)", 16 * ROWS),
    ],
)
def test_a_fresh_result_needs_little_beside_itself(setup: str, call: str, most: int) -> None:
    assert workspace(setup, call) <= most + PAGE


def test_the_measure_sees_a_workspace() -> None:
    """A sorted index does need some: the measure is not blind."""
    assert workspace(HALVES, "x.scatter(i, u, overwrite=False)") >= 8 * ROWS


def test_a_result_that_numpy_frees_comes_back_to_the_pool() -> None:
    program = f"""{PRELUDE}
x, u = rng.random((1024, 1024)), np.zeros((512, 1024))
for _ in range(5):
    inlay.slice_scatter(x, u, 0, 0, 512)
print(inlay.memory_stats()['reused'])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 4
