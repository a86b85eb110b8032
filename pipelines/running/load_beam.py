"""Importing Beam without its warnings for users who do not use Google Cloud."""

from __future__ import annotations

import logging


def load_beam() -> None:
    """Imports Beam. Nothing is logged meanwhile, and the logging of the program is not changed.
    Beam's warning that "apitools" is missing would configure it as a side effect."""
    root, handler = logging.getLogger(), logging.NullHandler()
    disabled = root.manager.disable
    root.addHandler(handler)
    logging.disable(logging.WARNING)
    try:
        import apache_beam  # noqa: F401
    finally:
        logging.disable(disabled)
        root.removeHandler(handler)
