"""Real text for tests: the help topics of Python."""

from __future__ import annotations

from pydoc_data.topics import topics

CHARACTERS = 250_000


def real_lines(characters: int = CHARACTERS) -> list[str]:
    """Return about this number of characters of text as lines, without empty ones."""
    text = "\n".join(topics[name] for name in sorted(topics))[:characters]
    return [line for line in text.split("\n") if line.strip()]
