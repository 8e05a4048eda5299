"""Tests that the Python examples of README.md and docs/ give the output that they show."""

import pages
import pytest


@pytest.mark.parametrize("page", pages.PAGES)
def test_examples_give_what_they_show(page):
    pages.run(page)


def test_the_pages_have_examples():
    assert sum(pages.examples(page).count(">>> ") for page in pages.PAGES) > 60


def test_examples_for_another_library_are_left_out():
    page = "docs/frameworks.md"
    for library in pages.LIBRARIES:
        assert f">>> import inlay, {library}\n" in pages.examples(page, library)
        assert f"import inlay, {library}\n" not in pages.examples(page)
