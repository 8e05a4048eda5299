"""The Python examples of the README and of the pages beside it give what they show."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


PAGES = [("README.md", 15), ("docs/static.md", 6), ("docs/gpu.md", 5)]


@pytest.mark.parametrize(("page", "least"), PAGES)
def test_examples_give_what_they_show(page, least):
    text = (ROOT / page).read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(examples.examples) > least
    runner = doctest.DocTestRunner()
    output: list[str] = []
    runner.run(examples, out=output.append)
    assert runner.failures == 0, "".join(output)
