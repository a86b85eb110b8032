"""The options of following inputs. They belong to a call of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wordpiece_core.declaration import FOLLOW, MAIN, Declared, named, option
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Duration, Flag, Text, Whole

MOST_FILES = 10**9
NAME = "NAME"  # in a marker: the name of the file


@dataclass(frozen=True)
class Marker(Text):
    """The name of a file, in which `NAME` may stand for that of another."""

    metavar: str = "PATTERN"

    def check(self, value: Any) -> str:
        name = super().check(value)
        if name in ("", NAME, ".", "..") or "/" in name:
            raise ValueError(f"{name!r} is no name of a marker; give one like NAME._SUCCESS")
        return name


@dataclass(frozen=True, kw_only=True)
class FollowOptions(Declared):
    """How a job follows its inputs. Times are in seconds."""

    SECTION = FOLLOW

    follow: bool = option(
        False, Flag(), "Continue with new files as they appear, until stopped.", section=MAIN
    )
    poll: float = option(
        5.0, Duration(least=0.1), "With {follow}: time between two listings of the inputs."
    )
    max_files: int = option(
        10_000,
        Whole(MOST_FILES),
        "With {follow}: most files between two commits.",
        in_config=True,
    )
    until_idle: float | None = option(
        None, Duration(), "With {follow}: stop when no new file has appeared for this time."
    )
    marker: str | None = option(
        None,
        Marker(),
        "With {follow}: a file is complete when its marker exists, as NAME._SUCCESS.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("until_idle", "marker"):
            if getattr(self, name) is not None and not self.follow:
                raise OptionError(f"{named(name)}: give {named('follow')} too")
