"""Loading Beam without what it says to everyone who does not use Google's cloud."""

from __future__ import annotations

import logging


def load_beam() -> None:
    """Imports Beam. Nothing is logged on the way, and the logging of the program stays as it was:
    Beam's warning that "apitools" is missing would set it up as a side effect."""
    root, handler = logging.getLogger(), logging.NullHandler()
    disabled = root.manager.disable
    root.addHandler(handler)
    logging.disable(logging.WARNING)
    try:
        import apache_beam  # noqa: F401
    finally:
        logging.disable(disabled)
        root.removeHandler(handler)
