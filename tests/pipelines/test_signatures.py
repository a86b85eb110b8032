"""The signatures that editors and type checkers see are those of the declared options."""

from __future__ import annotations

from docs.site import signatures


def test_signatures_have_the_declared_options() -> None:
    made = "; run python -m docs.site.signatures"
    assert signatures.STUB.read_text() == signatures.stub(), made
    assert signatures.KEYWORDS.read_text() == signatures.keywords(), made
