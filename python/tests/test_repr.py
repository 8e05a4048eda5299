"""The text of a tensor: values as NumPy prints them, then shape and dtype."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from naive import COMPLEXES, DTYPES, INTEGERS

import inlay

REALS = ["float16", "float32", "float64"]

# Until 2.3 all dtypes had exponents from 1e8 on, which for the short ones is too late.
same_rules = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="an older NumPy prints by other rules"
)

Scale = Callable[[np.random.Generator, int], np.ndarray]

EDGES = [0.0001, 0.001, 0.1, 1, 10, 999.9999999, 1000, 1001, 999999, 1e6, 99999999, 1e8]

SCALES: dict[str, Scale] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "whole": lambda rng, n: rng.integers(-999, 1000, n).astype(float),
    "large whole": lambda rng, n: rng.integers(-(10**9), 10**9, n).astype(float),
    "binary fractions": lambda rng, n: rng.integers(-2000, 2000, n) / 2.0 ** rng.integers(12),
    "decimal fractions": lambda rng, n: np.round(rng.uniform(-99, 99, n), rng.integers(12)),
    "mixed": lambda rng, n: 10.0 ** rng.uniform(-12, 12, n),
    "all magnitudes": lambda rng, n: 2.0 ** rng.uniform(-1074, 1024, n),
    "tiny": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(-320, -3),
    "huge": lambda rng, n: rng.standard_normal(n) * 10.0 ** rng.integers(3, 307),
    "powers of two": lambda rng, n: 2.0 ** rng.integers(-40, 40, n),
    "at the edges": lambda rng, n: rng.choice(EDGES, n) * rng.choice([-1, 1], n),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
}

SHAPES = [
    (),
    (1,),
    (2,),
    (3,),
    (40,),
    (1000,),
    (1001,),
    (3, 4),
    (2, 30),
    (500, 3),
    (3, 500),
    (2, 3, 4),
    (13, 6, 14),
    (1, 1, 2, 1),
    (4, 1, 7, 8, 9),
    (1,) * 8,
    (2,) * 8,
    (2, 1, 7, 2, 8, 1, 3, 2),
]


def expected(array: np.ndarray) -> str:
    values = np.array2string(array, separator=", ", prefix="Tensor(")
    return f"Tensor({values}, shape={list(array.shape)}, dtype={array.dtype})"


def cast(values: np.ndarray, dtype: np.dtype | str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def with_specials(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    specials = rng.choice([np.nan, np.inf, -np.inf, -0.0], rng.integers(1, 5))
    chosen = rng.random(values.size) < rng.random()
    return np.where(chosen, rng.choice(specials, values.size), values)


def floats(rng: np.random.Generator, scale: Scale, dtype: np.dtype | str, size: int) -> np.ndarray:
    values = scale(rng, size)
    if rng.random() < 0.4:
        values = with_specials(rng, values)
    return cast(values, dtype)


@same_rules
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("dtype", REALS)
def test_floats_are_as_in_numpy(dtype: str, scale: Scale) -> None:
    rng = np.random.default_rng(7)
    for shape in SHAPES * 3:
        array = floats(rng, scale, dtype, int(np.prod(shape))).reshape(shape)
        assert repr(inlay.to_tensor(array)) == expected(array)


@same_rules
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_complex_numbers_are_as_in_numpy(dtype: str, scale: Scale) -> None:
    rng = np.random.default_rng(7)
    for shape in SHAPES:
        array = np.empty(shape, dtype)
        other = SCALES[rng.choice(list(SCALES))]
        array.real = floats(rng, scale, array.real.dtype, array.size).reshape(shape)
        array.imag = floats(rng, other, array.imag.dtype, array.size).reshape(shape)
        assert repr(inlay.to_tensor(array)) == expected(array)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_bools_and_integers_are_as_in_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    if dtype == "bool":
        arrays = [rng.random(shape) < 0.5, np.ones(shape, bool), np.zeros(shape, bool)]
    else:
        info = np.iinfo(dtype)
        whole = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        small = rng.integers(max(info.min, -9), 100, shape, dtype)
        arrays = [np.asarray(whole, dtype), np.asarray(small, dtype)]
    for array in arrays:
        assert repr(inlay.to_tensor(array)) == expected(array)


@same_rules
@pytest.mark.parametrize("dtype", REALS)
def test_any_bits_are_as_in_numpy(dtype: str) -> None:
    rng = np.random.default_rng(7)
    for length in [1] * 1000 + [2] * 500 + [20] * 50:
        array = np.frombuffer(rng.bytes(length * np.dtype(dtype).itemsize), dtype)
        assert repr(inlay.to_tensor(array)) == expected(array)


@same_rules
@pytest.mark.parametrize("dtype", REALS)
def test_powers_of_two_are_as_in_numpy(dtype: str) -> None:
    """Where floats lie closer below than above, the shortest digits are not always the nearest."""
    info = np.finfo(dtype)
    for exponent in range(info.minexp - info.nmant, info.maxexp):
        power = cast(np.array([2.0**exponent]), dtype)
        for array in power, np.append(power, np.array(1.2345e-4, dtype)):
            assert repr(inlay.to_tensor(array)) == expected(array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4), (0,) * 8], ids=str)
def test_no_elements(dtype: str, shape: tuple[int, ...]) -> None:
    text = repr(inlay.to_tensor(np.zeros(shape, dtype)))
    assert text == f"Tensor([], shape={list(shape)}, dtype={dtype})"


VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, :, ::-1],
    "sliced": lambda a: a[1:, 1::2, 3:0:-2],
    "broadcast": lambda a: np.broadcast_to(a[:, :1], (7, *a.shape)),
    "endless": lambda a: np.broadcast_to(a[0, 0], (2**20, 2**20, a.shape[-1])),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views(view: Callable[[np.ndarray], np.ndarray]) -> None:
    array = view(np.arange(11 * 13 * 17, dtype="int32").reshape(11, 13, 17))
    assert repr(inlay.from_numpy(array)) == expected(array)


def test_bfloats_have_the_digits_that_tell_them() -> None:
    """NumPy prints them by no rule of its own, so here they have that of the others."""
    tensor = inlay.to_tensor(np.array([[1, 0.1], [3.14, np.nan]], DTYPES["bfloat16"]))
    text = "Tensor([[1.  , 0.1 ],\n        [3.14,  nan]], shape=[2, 2], dtype=bfloat16)"
    assert repr(tensor) == text


def test_text_is_the_same_as_repr() -> None:
    tensor = inlay.to_tensor(np.array([[1, 2], [3, 4]], "float32"))
    assert str(tensor) == repr(tensor)
    assert str(tensor) == "Tensor([[1., 2.],\n        [3., 4.]], shape=[2, 2], dtype=float32)"
