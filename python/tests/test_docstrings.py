"""Runs the examples in the docstrings."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

import inlay

PARSER = doctest.DocTestParser()


def documented() -> dict[str, str]:
    """All public docstrings, by the public names of their objects."""
    found = {"inlay": inlay.__doc__ or ""}
    for name in inlay.__all__:
        value = getattr(inlay, name)
        if not (inspect.isroutine(value) or inspect.isclass(value)):
            continue
        found[name] = value.__doc__ or ""
        if inspect.isclass(value):
            for member, inner in vars(value).items():
                if not member.startswith("_"):
                    found[f"{name}.{member}"] = inspect.getdoc(inner) or ""
    return found


DOCUMENTED = documented()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_name_is_documented(name) -> None:
    assert DOCUMENTED[name].strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", [name for name, text in DOCUMENTED.items() if ">>>" in text])
def test_examples_give_what_they_show(name) -> None:
    scope = {"inlay": inlay, "np": np}
    examples = PARSER.get_doctest(inspect.cleandoc(DOCUMENTED[name]), scope, name, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, report.append)
    assert not report, "".join(report)
