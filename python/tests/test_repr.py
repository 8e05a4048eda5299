"""The text of a tensor: the elements as NumPy prints them, the shape and the dtype."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from naive import COMPLEXES, DTYPES, INTEGERS

import inlay
from inlay import static

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


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "float16", "float32", "float64", *COMPLEXES])
def test_elements_are_printed_by_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    numbers = rng.standard_normal(shape) * 100
    for array in numbers, np.where(numbers > 50, np.nan, numbers * 1e-6), np.abs(numbers):
        with np.errstate(all="ignore"):
            typed = np.asarray(array).astype(dtype)
        assert repr(inlay.to_tensor(typed)) == expected(typed)


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


def test_bfloats_are_printed_as_float32() -> None:
    """This makes the text the same with and without `ml_dtypes`."""
    tensor = inlay.to_tensor(np.array([[1, 0.1], [3.14, np.nan]], DTYPES["bfloat16"]))
    elements = "[[1.        , 0.10009766],\n        [3.140625  ,        nan]]"
    assert repr(tensor) == f"Tensor({elements}, shape=[2, 2], dtype=bfloat16)"


def test_print_options_of_numpy_apply() -> None:
    array = np.arange(24).reshape(4, 6) / 7
    tensor = inlay.from_numpy(array)
    with np.printoptions(precision=2, threshold=20, edgeitems=1):
        text = repr(tensor)
        assert text == expected(array)
    assert "..." in text
    assert "..." not in repr(tensor)
    with np.printoptions(threshold=np.inf):
        assert "..." not in repr(inlay.zeros([2000]))


def test_tensors_that_numpy_can_not_hold_are_printed_all_the_same() -> None:
    text = repr(inlay.ones([1] * 70))
    assert text.startswith("Tensor([[[")
    text = repr(inlay.broadcast_to(inlay.ones([1]), [7] * 20))
    assert text == f"Tensor(..., shape={[7] * 20}, dtype=float32)"


def test_text_is_the_same_as_repr() -> None:
    tensor = inlay.to_tensor(np.array([[1, 2], [3, 4]], "float32"))
    assert str(tensor) == repr(tensor)
    assert str(tensor) == "Tensor([[1., 2.],\n        [3., 4.]], shape=[2, 2], dtype=float32)"


def test_a_gradient_is_shown() -> None:
    tensor = inlay.to_tensor([1.0], stop_gradient=False)
    assert repr(tensor) == "Tensor([1.], shape=[1], dtype=float32, stop_gradient=False)"
    assert str(tensor * 2) == "Tensor([2.], shape=[1], dtype=float32, stop_gradient=False)"
    assert "stop_gradient" not in repr(tensor.detach())
    with static.program_guard(static.Program()):
        symbol = static.data("x", [None])
        symbol.stop_gradient = False
        assert repr(symbol).endswith(", dtype=float32, stop_gradient=False)")


def test_one_element_is_formatted_as_a_number() -> None:
    assert f"{inlay.to_tensor(3.14159):.2f}" == "3.14"
    assert f"{inlay.to_tensor([[42]]):05d}" == "00042"
    assert f"{inlay.to_tensor([1.5], dtype='bfloat16', stop_gradient=False):.3e}" == "1.500e+00"
    assert f"{inlay.to_tensor(1 + 2j):.1f}" == "1.0+2.0j"
    several = inlay.to_tensor([1.0, 2.0])
    assert f"{several}" == str(several)
    assert format(several, "") == f"{several!s:}" == repr(several)
    with pytest.raises(TypeError, match="format: x has 2 elements, but the format"):
        f"{several:.2f}"
    with pytest.raises(ValueError, match="Unknown format code"):
        format(inlay.to_tensor(1.0), "d")
