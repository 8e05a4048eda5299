"""The peers are imported here once, so that what they warn of at import is no error of a test."""

from __future__ import annotations

import warnings

from test_against_numpy import quiet, rng  # noqa: F401  (fixtures)

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle  # noqa: F401
