"""The texts of functions: each is read back as the same function, and junk is refused."""

from __future__ import annotations

import copy
import pickle
import random
import re
import subprocess
import sys

import numpy as np
import pytest
from cases import Case

import inlay
from inlay._inlay import Function

from .support import CASES, bound, for_each, of_dtypes

ONES = of_dtypes("float64")


def derived(function: Function) -> list[Function]:
    """Derivatives and batches of a function, of depth 1 and 2."""
    if function.inputs == 0:
        return []
    batch = [None] * function.inputs
    batch[-1] = 2
    made = [function.vmap([0] * function.inputs), function.vmap(batch)]
    if any(function.differentiable):
        made.append(function.vjp(function.differentiable))
    return [*made, *(one.vmap([1] * one.inputs) for one in made)]


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
    # Texts of the outer functions come first: theirs are read before those of what they are made of.
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
        ("full", ([1], 1, None, "cpu"), "full(shape=[1], fill_value=1, device='cpu')"),
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


# Junk.

JUNK = [
    "",
    " ",
    "@",
    "(",
    ")",
    "()",
    "(@)",
    "tril",
    "tril(",
    "tril(@",
    "tril(@))",
    "tril(@) tril(@)",
    "tril()",
    "tril(@, @)",
    "tril([@])",
    "tril(@,)",
    "tril(,@)",
    "tril(@ diagonal=1)",
    "tril(@, diagonal)",
    "tril(@, diagonal=)",
    "tril(@, diagonal=1.5)",
    "tril(@, diagonal='1')",
    "tril(@, diagonal=True)",
    "tril(@, diagonal=None)",
    "tril(@, diagonal=99999999999999999999)",
    "tril(@, diagonal=-99999999999999999999)",
    "tril(@, diagonal=--1)",
    "tril(@, no_such=1)",
    "tril(@, x=@)",
    "tril(@, name='label')",
    "no_such(@)",
    "Tril(@)",
    "conjugate(@)",
    "scatter_(@, @, @)",
    "concat(@)",
    "concat([@)",
    "concat([@ @])",
    "concat([@, @,, @])",
    "concat([@], [@])",
    "scatter(@, @, @, reduce='no_such')",
    "scatter(@, @, @, reduce='assign')",
    "scatter(@, @, @, reduce=sum)",
    "scatter(@, @, @, reduce='sum)",
    "scatter(@, @, @, overwrite=true)",
    "scatter(@, @, @, overwrite=1)",
    "cast(@, dtype='no_such')",
    "cast(@, dtype=float32)",
    "full(shape=[1], fill_value=1, device='tpu')",
    "full(shape=[1], fill_value=1j)",
    "full(shape=[1], fill_value=complex(1))",
    "full(shape=[1], fill_value=complex(1, 2, 3))",
    "full(shape=[1], fill_value=@)",
    "full(shape=1, fill_value=1)",
    "full(shape=[None], fill_value=1)",
    "slice_scatter(@, @, start=[[1]])",
    "slice_scatter(@, @, start=[1, None)",
    "vjp(tril(@))",
    "vjp(; tril(@))",
    "vjp(2; tril(@))",
    "vjp(11; tril(@))",
    "vjp(1, tril(@))",
    "vjp(1; tril(@)",
    "vjp(1; )",
    "vjp(1; vjp)",
    "vjp(11; index_select(@, @))",
    "vmap(tril(@))",
    "vmap(; tril(@))",
    "vmap(_; tril(@))",
    "vmap(-1; tril(@))",
    "vmap(0.5; tril(@))",
    "vmap(99999999999999999999; tril(@))",
    "vmap(0, 0; tril(@))",
    "vmap(0,; tril(@))",
    "vmap(0; vmap(0; ))",
    "tril(@)\0",
    "tril(\u00e9)",
    "tril(@, diagonal=\u0661)",
    "\u00e9",
    "tril(@, diagonal='\u00e9",
    "tril(@)" * 1000,
    "(" * 100_000,
    "[" * 100_000,
    "vjp(1; " * 10_000,
    "vmap(0; " * 10_000 + "tril(@)" + ")" * 10_000,
    "vjp(1; vmap(0; " * 5_000 + "tril(@)" + "))" * 5_000,
    "tril(@, diagonal=" + "9" * 100_000 + ")",
    "concat([" + "@, " * 10_000 + "])",
]


@pytest.mark.parametrize("text", JUNK, ids=lambda text: text[:40] or "nothing")
def test_junk_is_refused(text: str) -> None:
    with pytest.raises(inlay.InlayValueError) as raised:
        Function.parse(text)
    assert len(str(raised.value)) < 1000


def test_numbers_of_any_size_are_read() -> None:
    """Where a number may be a float, one that no integer holds is a float."""
    text = f"full(shape=[1], fill_value={'9' * 200})"
    assert Function.parse(text).text == "full(shape=[1], fill_value=1e200)"
    largest = Function.parse(f"tril(@, diagonal={2**63 - 1})")
    assert largest.call([np.ones((2, 2))])[0].tolist() == [[1, 1], [1, 1]]
    smallest = Function.parse(f"tril(@, diagonal={-(2**63)})")
    assert smallest.call([np.ones((2, 2))])[0].tolist() == [[0, 0], [0, 0]]
    far = Function.parse(f"vmap({2**64 - 1}; tril(@))")
    assert Function.parse(far.text) == far
    with pytest.raises(inlay.InlayValueError, match="exceeds the rank"):
        far.call([np.ones((2, 2))])


def test_depth_is_limited() -> None:
    """What can be made can be read back, and recursion stays within the stack."""
    function, depth = Function.parse("tril(@)"), 0
    with pytest.raises(inlay.InlayValueError, match="more than"):
        while depth < 1000:
            function = function.vmap((0,))
            depth += 1
    assert depth == 64
    assert Function.parse(function.text) == function
    with pytest.raises(inlay.InlayValueError):
        Function.parse(f"vmap(0; {function.text})")
    x = inlay.ones([1] * 6)
    with pytest.raises(inlay.InlayError):
        function.call([x])


PIECES = [*"()[],;=@_'-. 019aT", "@, ", "None", "True", "vjp(1; ", "vmap(0; ", "tril(@)", "'sum'",
          "axis=1", "\u00e9", "1e9", "[@, @]", "NaN"]  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 3)):
        at, end = sorted(rng.randint(0, len(text)) for _ in range(2))
        piece = rng.choice(PIECES)
        text = rng.choice(
            [
                text[:at] + piece + text[at:],
                text[:at] + text[at + 1 :],
                text[:at] + piece + text[at + 1 :],
                text[:at] + text[end:],
                text[:at] + text[at:end] * 2 + text[end:],
            ]
        )
    return text


def test_mutated_texts_are_read_or_refused() -> None:
    """What can be read is called: it gives a result or an error."""
    rng = random.Random(16)
    known = [(bound(case), case.op) for case in CASES if case.expect is not None]
    counts = {"read": 0, "refused": 0, "called": 0}
    for _ in range(30_000):
        (function, tensors), op = rng.choice(known)
        text = mutated(rng.choice([function, function, *derived(function)]).text, rng)
        try:
            function = Function.parse(text)
        except inlay.InlayValueError:
            counts["refused"] += 1
            continue
        counts["read"] += 1
        assert Function.parse(function.text).text == function.text
        # Large results take time, which is not the point here.
        if re.search(r"\d{3}|\de\d", text) or op in ("full", "ones", "zeros", "arange"):
            continue
        given = (tensors * 9)[: function.inputs]
        if len(given) < function.inputs:
            continue
        try:
            function.infer([(str(one.dtype), list(one.shape)) for one in given])
            function.call(given)
            counts["called"] += 1
        except inlay.InlayError:
            pass
    assert min(counts.values()) > 500, counts
