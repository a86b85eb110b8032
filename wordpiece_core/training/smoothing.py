"""Weights for groups of text, so that a large language does not crowd out the small ones.

A group g with the share p_g of all words gets the share q_g = p_g^A / sum of all p^A, where A is
the smoothing exponent: 1 keeps the shares, 0 makes them equal, 0.7 is what
multilingual BERT was trained with (google-research/bert, multilingual.md). Each count of the group
is multiplied by q_g / p_g, so that all counts still add up to about the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

from wordpiece_core import _kernel

FRACTION_BITS: int = _kernel.FRACTION_BITS
_DIGITS = 60


def smoothing_weights(words: Sequence[int], exponent: float) -> list[int]:
    """Return the weights of groups with these numbers of words, in units of 2^-32, rounded half up.
    A weight is at least 1 unit.

    They are computed with 60 decimal digits, which gives the same result on every machine. A group
    without words has the weight 1.0. With the exponent 1 every weight is exactly 1.0.

    >>> [weight / 2**32 for weight in smoothing_weights([100, 300], 0.0)]
    [2.0, 0.6666666667442769]
    """
    one = 1 << FRACTION_BITS
    with localcontext(Context(prec=_DIGITS, rounding=ROUND_HALF_UP)):
        total = Decimal(sum(words))
        shares = [Decimal(count) / total for count in words if count]
        power = Decimal(str(exponent))
        smoothed = sum((share**power for share in shares), Decimal(0))
        weights = (share ** (power - 1) / smoothed * one for share in shares)
        of_groups = iter([max(int(weight.to_integral_value()), 1) for weight in weights])
    return [next(of_groups) if count else one for count in words]
