"""The limit: the number of bytes that a workload must read and write at least once.

The time of the limit is that of a copy that reads and writes as many bytes in total. For a workload
that only writes, it is the time of a fill. If only one element of a cache line is needed, only that
element counts, so a workload with a random index can't reach the limit.
"""

from __future__ import annotations

import numpy as np

from benchmarks import chains
from benchmarks.inputs import Arrays, dtype
from benchmarks.reference import along, reduction, region
from benchmarks.rows import CHAINS, TRIANGLES, Row

SMALLEST = 64 * 1024  # bytes; in smaller workloads, the overhead of a call dominates


def written(row: Row, arrays: Arrays) -> int:
    """The number of different elements of x that are selected."""
    if row.op in ("slice_scatter", "select_scatter", "diagonal_scatter"):
        return region(row, arrays["x"]).size
    if "mask" in arrays:
        return int(arrays["mask"].sum()) * (row.count // arrays["mask"].size)
    named = np.zeros(row.count if "along" in row.op else row.shape[row.axis], bool)
    named[along(row, arrays) if "along" in row.op else arrays["index"]] = True
    return int(named.sum()) * (row.count // named.size)


def moved(row: Row, arrays: Arrays, result: np.ndarray) -> tuple[int, int] | None:
    """The bytes that are read and written, or None for gradients and tiny calls."""
    if row.mode == "backward":
        return None
    if row.op in CHAINS:
        return chains.moved(row, arrays)
    if row.op in TRIANGLES:
        read, write = 0, result.nbytes
    else:
        item = dtype(row.dtype).itemsize
        size, named = row.count * item, written(row, arrays) * item
        read = sum(arrays[name].nbytes for name in ("index", "mask") if name in arrays)
        if row.op in ("index_select", "take_along_axis", "masked_select"):
            read, write = read + named, result.nbytes
        else:
            write = named if row.mode == "in place" else size
            if row.mode == "out of place":
                read += size - named  # the elements that are kept
            if row.op in ("masked_fill", "index_fill"):
                pass  # filled elements read nothing
            elif reduction(row) == "assign":
                read += named  # of duplicates, only the last one must be read
            else:
                read += arrays["values"].nbytes + (named if row.include_self else 0)
    return (read, write) if read + write >= SMALLEST else None
