"""Registers Inlay's handler with XLA, after a look at the version of its interface."""

from __future__ import annotations

import re
from pathlib import Path

import jax

from inlay._inlay import _xla_handler, _xla_version

__all__ = ["TARGET", "register"]

TARGET = "inlay_function"
"""The name of the handler in compiled programs."""


def register() -> None:
    """Registers the handler. Raises an `ImportError` if jaxlib is too old or too new."""
    found = _interface_version()
    if found is not None:
        check_version(found)
    try:
        jax.ffi.register_ffi_target(TARGET, _xla_handler(), platform="cpu", api_version=1)
    except Exception as error:
        text = f"inlay.jax: jaxlib {jax.lib.__version__} does not take Inlay's handler: {error}"
        raise ImportError(text) from error


def check_version(found: tuple[int, int]) -> None:
    """Raises an `ImportError` unless an interface of this version has the one that Inlay uses."""
    major, minor = _xla_version()
    if found[0] == major and found[1] >= minor:
        return
    advice = "update Inlay" if found[0] > major else "update jaxlib"
    raise ImportError(
        f"inlay.jax: jaxlib {jax.lib.__version__} has version {found[0]}.{found[1]} of XLA's "
        f"foreign function interface, expected {major}.{minor} or a later {major}.x: {advice}"
    )


def _interface_version() -> tuple[int, int] | None:
    """The version in the header that jaxlib ships, or `None` if it ships none."""
    try:
        path = Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h"
        header = path.read_text(encoding="utf-8")
    except (AttributeError, OSError):
        return None
    parts = [re.search(rf"#define XLA_FFI_API_{name}\s+(\d+)", header) for name in _PARTS]
    if not all(parts):
        return None
    major, minor = (int(part[1]) for part in parts if part)
    return major, minor


_PARTS = ("MAJOR", "MINOR")
