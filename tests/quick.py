"""Parametrize tests: `make test` runs some of the values, and `make soak` all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def parametrize(
    names: str | tuple[str, ...], values: Iterable[Any], *, quick: int, **options: Any
) -> pytest.MarkDecorator:
    """Parametrize as `pytest.mark.parametrize` does, with all values but the first `quick` marked
    as `soak`."""
    given = list(values)
    several = not isinstance(names, str)
    slow = [pytest.param(*(v if several else (v,)), marks=pytest.mark.soak) for v in given[quick:]]
    return pytest.mark.parametrize(names, [*given[:quick], *slow], **options)
