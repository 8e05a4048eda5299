"""The limit: a copy or a fill in pre-faulted huge pages, with one thread and with all threads."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries import Variants
from benchmarks.rows import Row

VERSION = np.__version__
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
PIECE = 1 << 20
POOL = ThreadPoolExecutor(max(1, THREADS - 1))

# ctypes releases the GIL during a call, so threads run in parallel.
memmove, memset = ctypes.CDLL(None).memmove, ctypes.CDLL(None).memset
memmove.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)


def memory(size: int) -> np.ndarray:
    pages = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(pages, np.uint8)
    array.fill(1)
    return array


def tensors(bases: dict[str, np.ndarray], row: Row) -> dict[str, Any]:
    if "moved" not in bases:
        return {}
    read, write = bases["moved"].tolist()
    if read == 0:
        return {"to": memory(write)}
    size = (read + write) // 2
    return {"to": memory(size), "from": memory(size)}


def array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor)


def variants(row: Row, t: dict[str, Any]) -> Variants:
    if "to" not in t:
        return {}
    copies = "from" in t
    function = memmove if copies else memset

    def pieces(start: int, stop: int, size: int) -> list[tuple[int, int, int]]:
        """The arguments of the calls, one call for each range of the bytes."""
        to, source = t["to"].ctypes.data, t["from"].ctypes.data if copies else 0
        edges = [*range(start, stop, size), stop]
        return [(to + a, source + a if copies else 1, b - a) for a, b in itertools.pairwise(edges)]

    def work(calls: list[tuple[int, int, int]]) -> None:
        for call in calls:
            function(*call)

    def together(shares: list[list[tuple[int, int, int]]]) -> None:
        waiting = [POOL.submit(work, share) for share in shares[1:]]
        work(shares[0])
        for one in waiting:
            one.result()

    whole = t["to"].size
    found: Variants = {}
    # The C library uses non-temporal stores for large blocks, which is not always faster. So
    # smaller blocks are tried, too.
    for name, size in {"at once": whole, "in pieces": PIECE}.items():
        found[name] = partial(work, pieces(0, whole, size))
        if THREADS > 1:
            edges = itertools.pairwise(whole * n // THREADS for n in range(THREADS + 1))
            shares = [pieces(start, stop, size) for start, stop in edges]
            found[f"{name}, {THREADS} threads"] = partial(together, shares)
    return found
