"""The tests of the bridge to PyTorch. They are skipped if torch is not installed."""

from __future__ import annotations

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    # Torch itself calls torch.jit, for example when a dual tensor is made.
    for name in ("script", "trace", "trace_method", "load", "save"):
        ignored = f"ignore:`torch.jit.{name}` is deprecated:FutureWarning"
        config.addinivalue_line("filterwarnings", ignored)
