"""Tests that the examples for Paddle in README.md and docs/ give the output that they show."""

from __future__ import annotations

import pages
import pytest

PAGES = [page for page in pages.PAGES if pages.needing(page, "paddle")]


@pytest.mark.parametrize("page", PAGES)
def test_examples_give_what_they_show(page) -> None:
    pages.run(page, "paddle")


def test_the_overview_has_examples() -> None:
    assert "docs/frameworks.md" in PAGES
