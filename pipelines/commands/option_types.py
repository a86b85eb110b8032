"""What options of the command line take: texts, places, numbers, shares, sizes."""

from __future__ import annotations

import os

import click

from wordpiece_core.errors import OptionError
from wordpiece_core.options import is_utf8
from wordpiece_core.sizes import MOST, parse_size, show_size


class Text(click.ParamType):  # type: ignore[type-arg]
    """An option that holds any text that files can hold."""

    name = "TEXT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        text = str(value)
        if not is_utf8(text):
            self.fail(f"{_raw(text)} is not UTF-8", param, ctx)
        if "\0" in text:
            self.fail(f"{text!r} holds the character NUL", param, ctx)
        return text


class Place(Text):
    """An option that holds a path or a URI."""

    name = "PLACE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if value == "":
            self.fail("give a path; this one is empty", param, ctx)
        if not is_utf8(str(value)):
            self.fail(f"{_raw(str(value))} is not UTF-8; rename it", param, ctx)
        return super().convert(value, param, ctx)


class Whole(click.IntRange):
    """A whole number from `least` to `most`. (An IntRange would show large ends in the help.)"""

    name = "integer range"

    def __init__(self, most: int, least: int = 1) -> None:
        super().__init__(min=least)
        self.most = most

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        number = int(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if number > self.most:
            self.fail(f"{value} is more than {self.most}, the most it can be", param, ctx)
        return number


class Share(click.FloatRange):
    """A number from 0 to 1. (To a FloatRange nan is in any range.)"""

    name = "float range"

    def __init__(self, *, min_open: bool = False) -> None:
        super().__init__(0.0, 1.0, min_open=min_open)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if number != number:
            self.fail(f"{value} is not a number", param, ctx)
        return number


class Size(click.ParamType):  # type: ignore[type-arg]
    """An option that holds a size, `least` at least and `MOST` at most."""

    name = "SIZE"

    def __init__(self, least: int = 1) -> None:
        self.least = least

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            size = value if isinstance(value, int) else parse_size(str(value))
        except OptionError as error:
            self.fail(str(error), param, ctx)
        if size < self.least:
            self.fail(f"{value} is too little; give {show_size(self.least)} at least", param, ctx)
        if size > MOST:
            self.fail(f"{value} is too much; give {show_size(MOST)} at most", param, ctx)
        return size


def _raw(text: str) -> str:
    """The bytes of a text that is not UTF-8, as Python writes them."""
    try:
        return repr(os.fsencode(text))
    except UnicodeEncodeError:  # it does not come from the command line
        return repr(text)


TEXT, PLACE = Text(), Place()
