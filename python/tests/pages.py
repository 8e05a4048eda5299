"""The examples of README.md and docs/: which of them run where.

An example that needs another library is in a block that starts with ```python and the library's
name: ```python torch. All examples of docs/torch.md need torch, and so on.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ("torch", "paddle", "jax")
PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
BLOCK = re.compile(r"^ *```python(?: (\w+))?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def examples(page: str, library: str | None = None) -> str:
    """The text of a page, with blank lines in place of blocks that need another library."""
    text = (ROOT / page).read_text(encoding="utf-8")
    whole = Path(page).stem if Path(page).stem in LIBRARIES else None

    def shown(block: re.Match[str]) -> str:
        needed = block[1] or whole
        return block[0] if needed in (None, library) else re.sub(".", "", block[0])

    return BLOCK.sub(shown, text)


def needing(page: str, library: str) -> int:
    """How many examples of a page need a library."""
    return examples(page, library).count(">>> ") - examples(page).count(">>> ")


def run(page: str, library: str | None = None) -> None:
    """Runs the examples of a page that need no library, or this one."""
    text = examples(page, library)
    found = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert len(found.examples) == len(re.findall(r"^ *>>> ", text, re.MULTILINE))
    runner = doctest.DocTestRunner()
    output: list[str] = []
    runner.run(found, out=output.append)
    assert runner.failures == 0, "".join(output)
