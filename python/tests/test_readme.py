"""Tests that the Python examples of README.md and docs/ give the output that they show."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]


@pytest.mark.parametrize("page", PAGES)
def test_examples_give_what_they_show(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(examples.examples) >= text.count("```python\n>>> ")
    runner = doctest.DocTestRunner()
    output: list[str] = []
    runner.run(examples, out=output.append)
    assert runner.failures == 0, "".join(output)


def test_the_pages_have_examples():
    assert sum((ROOT / page).read_text(encoding="utf-8").count(">>> ") for page in PAGES) > 60
