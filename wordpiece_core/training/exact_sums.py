"""Sums of counts that do not wrap: Arrow adds int64 without a check."""

from __future__ import annotations

import pyarrow as pa

from wordpiece_core.errors import InputError

EXACT = pa.decimal128(19, 0)
"""Holds every int64. Sums and products in it have 38 digits."""
EXACT_LENGTH = pa.decimal128(10, 0)
"""Holds every int32, with room for products with `EXACT`."""
TOO_LARGE = "the counts of words add up to more than 2^63 - 1; scale them down"


def as_counts(sums: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return exact sums as int64. InputError if one is too large."""
    try:
        return sums.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(TOO_LARGE) from error
