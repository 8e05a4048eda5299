"""The limit: how many bytes a workload must read and write, if it touches each of them once.

The limit's time is that of a copy that reads and writes as many bytes in total; for a workload that
only writes, that of a fill. A cache line of which one element is needed counts as one element, so
with a random index the limit can't be reached.
"""

from __future__ import annotations

import numpy as np

from benchmarks import chains
from benchmarks.inputs import Arrays, dtype
from benchmarks.reference import along, reduction, region
from benchmarks.rows import CHAINS, TRIANGLES, Row

SMALLEST = 64 * 1024  # bytes; below, the overhead of a call dominates


def written(row: Row, arrays: Arrays) -> int:
    """The number of elements of x that are selected, each counted once."""
    if row.op in ("slice_scatter", "select_scatter", "diagonal_scatter"):
        return region(row, arrays["x"]).size
    if "mask" in arrays:
        return int(arrays["mask"].sum()) * (row.count // arrays["mask"].size)
    named = np.zeros(row.count if "along" in row.op else row.shape[row.axis], bool)
    named[along(row, arrays) if "along" in row.op else arrays["index"]] = True
    return int(named.sum()) * (row.count // named.size)


def moved(row: Row, arrays: Arrays, result: np.ndarray) -> tuple[int, int] | None:
    """The bytes read and the bytes written; None for gradients and tiny calls."""
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
                read += named  # only the last of duplicates must be read
            else:
                read += arrays["values"].nbytes + (named if row.include_self else 0)
    return (read, write) if read + write >= SMALLEST else None
