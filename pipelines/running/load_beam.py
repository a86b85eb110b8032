"""Importing Beam without its warning for users who do not use Google Cloud."""

from __future__ import annotations

import logging
import sys


def load_beam() -> None:
    """Imports Beam, unless somebody has. The logging of the program is not changed: Beam's warning
    that "apitools" is missing would configure it as a side effect."""
    if "apache_beam" in sys.modules:
        return
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    root.addFilter(_is_of_use)
    try:
        import apache_beam  # noqa: F401
    finally:
        root.removeFilter(_is_of_use)
        root.removeHandler(handler)


def _is_of_use(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("apitools not found")
