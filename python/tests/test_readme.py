"""The README's Python examples give what they show."""

import doctest
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_examples_give_what_they_show():
    text = README.read_text()
    examples = doctest.DocTestParser().get_doctest(text, {}, "README", str(README), 0)
    assert len(examples.examples) > 15
    runner = doctest.DocTestRunner()
    output: list[str] = []
    runner.run(examples, out=output.append)
    assert runner.failures == 0, "".join(output)
