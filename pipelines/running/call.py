"""The options that all jobs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from wordpiece_core.declaration import (
    FOLLOW,
    INPUT,
    MAIN,
    REQUIRED,
    Declared,
    Option,
    option,
)
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Duration, Flag, Place, Places

INPUTS = "inputs"


@dataclass(frozen=True, kw_only=True)
class JobCall(Declared):
    """A call of a job: its options."""

    ALTERNATIVES: ClassVar[Sequence[Sequence[str]]] = ()
    """Options of which a call takes one: if one is set nearer than the others, that one."""

    ARGUMENTS: ClassVar[Sequence[str]] = (INPUTS,)
    """The options that a command line gives without a name, in their order."""

    @classmethod
    def arguments_first(cls) -> list[Option]:
        """The options, in the order of the command line."""
        declared = {option.name: option for option in cls.options()}
        return list({name: declared[name] for name in [*cls.ARGUMENTS, *declared]}.values())

    def absolute(self) -> Self:
        """The same call, with places that mean the same in processes elsewhere."""
        from wordpiece_core.uri import absolute

        places: dict[str, Any] = {}
        for known in self.options():
            value = getattr(self, known.name, None)  # also None for options of groups
            if value and isinstance(known.kind, Places) and known.kind.are_paths:
                places[known.name] = tuple(map(absolute, value))
            elif value and type(known.kind) is Place:  # a tokenizer may be a name on the Hub
                places[known.name] = absolute(value)
        return replace(self, **places)


@dataclass(frozen=True, kw_only=True)
class CsvOptions(Declared):
    """How CSV and TSV are read."""

    no_quoting: bool = option(
        False,
        Flag(),
        "Treat quotes in .csv and .tsv as text: each line is a row.",
        section=INPUT,
    )


@dataclass(frozen=True, kw_only=True)
class FollowOptions(Declared):
    """How a job follows its inputs. Times are in seconds."""

    SECTION = FOLLOW

    follow: bool = option(
        False, Flag(), "Also encode new files as they appear, until stopped.", section=MAIN
    )
    poll: float = option(
        5.0, Duration(least=0.1), "Time between two listings of the inputs, with `follow`."
    )
    until_idle: float | None = option(
        None, Duration(), "Stop when no new file has appeared for this time, with `follow`."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.until_idle is not None and not self.follow:
            raise OptionError("until_idle: also set `follow`")


@dataclass(frozen=True, kw_only=True)
class Call(JobCall):
    """A call of a job that reads inputs and writes an output."""

    inputs: tuple[str, ...] = option(
        (),
        Places("INPUT..."),
        "Files, globs or directories of .parquet, .arrow, .feather, .txt, .jsonl, .csv, .tsv (text"
        " also .gz, .zst, .bz2, .lz4, .xz), local, or on s3://, gs:// or any file system of"
        " fsspec.",
        on="INPUT",
    )
    output: str = option(REQUIRED, Place(), "Directory to write.", section=MAIN)
    given: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """The names of the options that were given, even if with their defaults."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """As in `Declared`."""
        return replace(super().of(**values), given=frozenset(values))

    def check_inputs(self, *others: object) -> None:
        """OptionError unless there are inputs, or something else to read."""
        if not self.inputs and not any(others):
            raise OptionError(f"set `{INPUTS}`: files, globs or directories")
