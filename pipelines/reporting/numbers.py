"""How numbers are written in a page."""

from __future__ import annotations

SUFFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def compact(value: float) -> str:
    """A short form for axes.

    >>> compact(30_000), compact(2.5), compact(1e-7)
    ('30k', '2.5', '1e-7')
    """
    for least, suffix in SUFFIXES:
        if abs(value) >= least:
            return f"{value / least:.4g}{suffix}"
    if 0 < abs(value) < 0.01:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:.4g}"


def whole(value: int) -> str:
    """A whole number with thousands set apart."""
    return f"{value:,}"


def percent(share: float) -> str:
    """A share from 0 to 1 in per cent, with as many digits as tell it from 0 and from 100 %.

    >>> percent(0.5), percent(0.00001), percent(0), percent(1), percent(0.99999)
    ('50.0 %', '0.0010 %', '0 %', '100 %', '99.9990 %')
    """
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    near = min(share, 1 - share)
    digits = 1 if near >= 0.001 else 2 if near >= 0.0001 else 4
    if near < 0.000001:
        return "<0.0001 %" if share < 0.5 else ">99.9999 %"
    return f"{share * 100:.{digits}f} %"


def size(number: int) -> str:
    """Bytes in the largest unit that gives 1 or more."""
    for least, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= least:
            return f"{number / least:.1f} {unit}"
    return f"{number} bytes"
