"""Small versions of the benchmark's rows on tensors of each framework that is installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks import inputs, reference, rows

INSTALLED = [host for host in rows.HOSTS if importlib.util.find_spec(host)]
CASES = [
    pytest.param(row.scaled(0.002), name, id=f"{row.name} ({name})")
    for row in rows.load("bridges")
    for name in row.contenders
    if row.host in INSTALLED and name.startswith("inlay-")
]


@pytest.mark.filterwarnings("ignore")  # those of the frameworks
@pytest.mark.parametrize(("row", "name"), CASES)
def test_variants_give_the_expected_result(row: rows.Row, name: str) -> None:
    arrays = reference.given(row, inputs.build(row))
    library = importlib.import_module(f"benchmarks.libraries.{name.replace('-', '_')}_")
    tensors = library.tensors(arrays, row)
    (variant,) = library.variants(row, tensors).values()
    found = variant() if row.mode == "backward" else [variant()]
    assert all(type(one) is type(tensors["x"]) for one in found)
    names = ("result", "grad_x", "grad_values")
    named = dict(zip(names, map(library.array, found), strict=False))
    verdict, error = reference.compare(row, named, reference.results(row, arrays))
    assert verdict == "same", error
    np.testing.assert_array_equal(library.array(tensors["x"]), arrays["x"])
