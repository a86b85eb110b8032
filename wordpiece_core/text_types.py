"""Arrow's types that hold text."""

from __future__ import annotations

import pyarrow as pa

_TYPES = (  # compared one by one: not every type has a hash
    *(pa.null(), pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
)


def holds_text(kind: pa.DataType) -> bool:
    """Whether arrays of a type can be texts: strings or bytes of any layout, or nothing but
    nulls."""
    return kind in _TYPES
