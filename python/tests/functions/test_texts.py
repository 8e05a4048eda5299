"""The texts of functions: each is read back as the same function, and junk is refused."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from cases import Case

from inlay._inlay import Function

from .support import bound, derived, for_each, of_dtypes

ONES = of_dtypes("float64")


@for_each(ONES)
def test_a_text_is_read_back(case: Case) -> None:
    function, _ = bound(case)
    for one in [function, *derived(function)]:
        again = Function.parse(one.text)
        assert again == one
        assert hash(again) == hash(one)
        assert (again.text, again.name) == (one.text, one.name)
        assert (again.inputs, again.outputs) == (one.inputs, one.outputs)
        assert again.differentiable == one.differentiable
        assert repr(again) == f"<Function {one.text}>"
        # Spaces don't matter.
        spaced = re.sub(r"([(),;\[\]=])", r" \1  ", one.text)
        assert Function.parse(spaced).text == one.text


def test_texts_are_read_in_another_process() -> None:
    """A function that was made here is not known there, so its text is read."""
    texts = {bound(case)[0].text for case in ONES}
    texts |= {one.text for text in list(texts) for one in derived(Function.parse(text))}
    program = (
        "import sys; from inlay._inlay import Function\n"
        "for line in sys.stdin: assert Function.parse(line[:-1]).text == line[:-1], line"
    )
    # The longest come first: a text is read before those of the functions that it is made of.
    lines = "\n".join(sorted(texts, key=len, reverse=True)) + "\n"
    subprocess.run([sys.executable, "-c", program], input=lines, text=True, check=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "objects", "text"),
    [
        ("scatter", (None, None, None), "scatter(@, @, @)"),
        (
            "scatter",
            (None, None, None, False, -1, "mean", "label", True),
            "scatter(@, @, @, overwrite=False, axis=-1, reduce='mean', include_self=True)",
        ),
        ("put_along_axis", (None, None, None, 0, "assign"),
         "put_along_axis(@, @, @, axis=0, reduce='assign')"),
        ("slice_scatter", (None, None, [0, 1], [None, 2], None, [1, -1]),
         "slice_scatter(@, @, axis=[0, 1], start=[None, 2], step=[1, -1])"),
        ("slice_scatter", (None, None, 1, 2), "slice_scatter(@, @, axis=1, start=2)"),
        ("index_put", (None, [1, 2], None, True), "index_put(@, [@, @], @, accumulate=True)"),
        ("concat", ([], 1), "concat([], axis=1)"),
        ("cast", (None, "bfloat16"), "cast(@, dtype='bfloat16')"),
        ("sum", (None, (0, -1), True), "sum(@, axis=[0, -1], keepdim=True)"),
        ("full", ([2, 3], 1.5), "full(shape=[2, 3], fill_value=1.5)"),
        ("full", ([], -0.0), "full(shape=[], fill_value=-0.0)"),
        ("full", ([1], 1e300), "full(shape=[1], fill_value=1e300)"),
        ("full", ([1], 5e-324), "full(shape=[1], fill_value=5e-324)"),
        ("full", ([1], float("nan")), "full(shape=[1], fill_value=NaN)"),
        ("full", ([1], float("-inf")), "full(shape=[1], fill_value=-inf)"),
        ("full", ([1], 2**64 - 1), f"full(shape=[1], fill_value={2**64 - 1})"),
        ("full", ([1], True), "full(shape=[1], fill_value=True)"),
        ("full", ([1], 1 - 2j), "full(shape=[1], fill_value=complex(1.0, -2.0))"),
        ("full", ([1], 1, None, None, "cpu"), "full(shape=[1], fill_value=1, device='cpu')"),
        ("arange", (5,), "arange(start=5)"),
    ],
)  # fmt: skip
def test_texts_look_like_calls(name: str, objects: tuple[object, ...], text: str) -> None:
    function = Function(name, objects)
    assert function.text == text
    assert Function.parse(text) == function


def test_numbers_are_read_back_exactly() -> None:
    rng = np.random.default_rng(16)
    for bits in rng.integers(0, 2**64, 300, dtype=np.uint64):
        value = float(np.array(bits).view(np.float64))
        function = Function("full", ([], value, "float64"))
        (result,) = Function.parse(function.text).call([])
        np.testing.assert_array_equal(result.numpy(), value)


def test_texts_of_derivatives_and_batches() -> None:
    function = Function("scatter", (None, None, None))
    assert function.vjp((True, False, False)).text == "vjp(100; scatter(@, @, @))"
    assert function.vjp((False, False, False)).text == "vjp(000; scatter(@, @, @))"
    assert function.vmap((0, None, 12)).text == "vmap(0, _, 12; scatter(@, @, @))"
    nested = function.vmap((0, 1, None)).vjp((True, False, True)).vmap((0, 0, None, 1, 2))
    assert nested.text == "vmap(0, 0, _, 1, 2; vjp(101; vmap(0, 1, _; scatter(@, @, @))))"


def test_equality_and_hash() -> None:
    one, other = Function("tril", (None, 1)), Function("tril", (None, 2))
    assert one == Function.parse("tril(@, diagonal=1)")
    assert one != other
    assert one != "tril(@, diagonal=1)"
    assert one != one.vjp((True,))
    assert {one: 1, other: 2}[Function("tril", (None, 1))] == 1


def test_copies_and_pickles() -> None:
    function = Function("tril", (None, 1))
    for one in [function, function.vjp((True,)), function.vmap((0,)).vjp((True,))]:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(one, protocol)) == one
        assert copy.copy(one) == copy.deepcopy(one) == one
