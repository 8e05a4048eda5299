"""Texts that describe no function are refused: quickly, by an error, and without a panic."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import inlay
from inlay._inlay import Function

from .support import CASES, bound, derived

DEEPEST = 64  # the largest number of derivatives and batches around a call

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
    function = Function.parse("tril(@)")
    for _ in range(DEEPEST):
        function = function.vmap((0,))
    with pytest.raises(inlay.InlayValueError, match=f"tril: more than {DEEPEST}"):
        function.vmap((0,))
    with pytest.raises(inlay.InlayValueError, match=f"tril: more than {DEEPEST}"):
        function.vjp((True,))
    assert Function.parse(function.text) == function
    with pytest.raises(inlay.InlayValueError):
        Function.parse(f"vmap(0; {function.text})")
    x = inlay.ones([1] * 6)
    with pytest.raises(inlay.InlayError):
        function.call([x])


PIECES = [*"()[],;=@_'-. 019aT", "@, ", "None", "True", "vjp(1; ", "vmap(0; ", "tril(@)", "'sum'",
          "axis=1", "\u00e9", "1e9", "[@, @]", "NaN"]  # fmt: skip


NUMBERS = [*range(-5, 6), 2**31, 2**63 - 1, -(2**63), 2**64, "1.5", "True", "[1, 0]", "None"]


def mutated(text: str, rng: random.Random) -> str:
    """A text that differs in some characters, or in one number."""
    if rng.random() < 0.4:
        numbers = list(re.finditer(r"-?\d+", text)) or [re.compile("$").search(text)]
        at = rng.choice(numbers)
        return f"{text[: at.start()]}{rng.choice(NUMBERS)}{text[at.end() :]}"
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
        if re.search(r"\d{3}|\de\d", text) and (not tensors or op == "scatter_nd"):
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
