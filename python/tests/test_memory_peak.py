"""The memory that a call needs in addition to its result, by the counters of the pool.

Each call runs in a new process, because the peak is counted per process.
"""

import subprocess
import sys

import pytest

# The sizes are size classes of the pool, so that no size is rounded up.
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
"""Allowance for small blocks, such as counts per part."""


def workspace(setup: str, call: str) -> int:
    """The peak memory of ``call`` in bytes, without its result."""
    program = f"{PRELUDE}{setup}\ncall = lambda: {call}\n{MEASURE}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(
    ("setup", "call", "most"),
    [
        # A bitmap with a popcount per block, without prefix sums.
        (
            f"x, m = f32({N}), own(rng.random({N}) < 0.5)",
            "x.masked_scatter(m, x)",
            N // 8 + N // 512,
        ),
        # A strided mask is first copied to contiguous memory.
        (
            f"x, m = f32({N}), own(rng.random({2 * N}) < 0.5)[::2]",
            "x.masked_scatter(m, x)",
            N + N // 8 + N // 512,
        ),
        (f"x, u = f32(4, {N // 4}), f32(2, {N // 4})", "x.slice_scatter(u, 0, 1, 3)", 0),
        ("x, u = f32(1024, 1024), f32(1024)", "x.diagonal_scatter(u)", 0),
        (VALUES, "x.scatter(i, u)", 0),
        (VALUES, "x.scatter(i, u, overwrite=False, include_self=True)", 0),
        # One bit per place marks that it has its first value.
        (VALUES, "x.scatter(i, u, overwrite=False)", N // 4 // 8),
        # One count per place.
        (VALUES, "x.scatter(i, u, overwrite=False, reduce='mean')", N),
        (WIDE, "x.scatter(i, u)", 16 * ROWS + 4 * PLACES),
        (WIDE, "x.scatter(i, u, overwrite=False)", 16 * ROWS + 4 * PLACES),
        (WIDE, "x.scatter(i, u, overwrite=False, reduce='mean')", 16 * ROWS + 4 * PLACES),
        # The entries are written in index order, with one bit per place.
        (SPARSE, "x.scatter(i, u)", 0),
        (SPARSE, "x.scatter(i, u, overwrite=False)", 16 * ROWS // 8),
        # The entries are grouped, because a partial sum does not fit into an element. This needs
        # the index, the order of its entries, and the end of each group.
        (HALVES, "x.scatter(i, u, overwrite=False)", 16 * ROWS),
    ],
)
def test_a_fresh_result_needs_little_beside_itself(setup: str, call: str, most: int) -> None:
    assert workspace(setup, call) <= most + PAGE


def test_the_measure_sees_a_workspace() -> None:
    """Checks the measurement itself: sorting an index needs scratch memory."""
    assert workspace(HALVES, "x.scatter(i, u, overwrite=False)") >= 8 * ROWS


@pytest.mark.parametrize("name", ["__iadd__", "__isub__", "__imul__", "__itruediv__"])
def test_arithmetic_in_place_makes_no_second_tensor(name: str) -> None:
    result = 4 * N
    assert workspace(f"x, u = f32({N}), f32({N})", f"x.{name}(u)") + result <= PAGE
    assert workspace(f"x, u = f32({N}), f32({N})", "x + u") + result >= result


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
