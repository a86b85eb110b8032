"""Arrow types of text."""

from __future__ import annotations

import pyarrow as pa

_TYPES = (  # a tuple, because not every type has a hash
    *(pa.null(), pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
)


def holds_text(kind: pa.DataType) -> bool:
    """Return True for types of texts: strings or bytes of any layout, or only nulls."""
    return kind in _TYPES
