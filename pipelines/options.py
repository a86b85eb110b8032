"""Options that jobs share. Nothing here imports Beam or Arrow, so that `--help` is fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Self

from wordpiece_core.declared import FOLLOW, INPUT, MAIN, OTHER, Ge, Options, declared
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.option_types import Arguments, Duration, Inputs, Place, path, paths


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options, section=OTHER):
    """Options of every job."""

    ALTERNATIVES: ClassVar[Sequence[Sequence[str]]] = ()
    """Options that exclude each other. A flag wins over a config file."""

    quiet: bool = False
    """Show no progress and no summary."""


@dataclass(frozen=True, kw_only=True)
class BeamOptions(RunOptions, section=OTHER):
    """Options of a job that runs on Beam."""

    beam_args: Arguments = ()
    """Arguments for Beam, such as `--runner=FlinkRunner`."""

    def checked(self) -> Self:
        """Return the options as workers need them: with absolute paths if workers may run on other
        machines. Without arguments for Beam the job runs here, and Beam is not imported.

        Raises OptionError for arguments that Beam cannot parse.
        """
        if not self.beam_args:
            return self
        from pipelines.beam import check_beam_args

        return self if check_beam_args(self.beam_args) else self._absolute()

    def _absolute(self) -> Self:
        from wordpiece_core.uri import absolute

        places: dict[str, Any] = {}
        for option in declared(type(self)):
            value = getattr(self, option.name)
            if value and option.form.is_path:
                found = tuple(map(absolute, paths(value)))
                places[option.name] = found if isinstance(value, tuple) else found[0]
        return replace(self, **places)


@dataclass(frozen=True, kw_only=True)
class CsvOptions(Options, section=INPUT):
    """Options of CSV and TSV."""

    no_quoting: bool = False
    """Treat quotes in .csv and .tsv as text: each line is a row."""


@dataclass(frozen=True, kw_only=True)
class FollowOptions(Options, section=FOLLOW):
    """Options of following the inputs. Times are in seconds."""

    follow: Annotated[bool, MAIN] = False
    """Also encode new files as they appear, until stopped."""
    poll: Annotated[Duration, Ge(0.1)] = 5.0
    """Time between two listings of the inputs, with `follow`."""
    until_idle: Duration | None = None
    """Stop when no new file has appeared for this time, with `follow`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.until_idle is not None and not self.follow:
            raise OptionError(f"{opt.until_idle}: also set {opt.follow}")


@dataclass(frozen=True, kw_only=True)
class InputOptions(BeamOptions, section=OTHER):
    """The inputs and the output of a job."""

    inputs: Inputs = field(default=(), kw_only=False)
    """Files, globs or directories of .parquet, .arrow, .feather, .txt, .jsonl, .csv, .tsv (text
    also .gz, .zst, .bz2, .lz4, .xz), local, or on s3://, gs:// or any file system of fsspec."""
    output: Annotated[Place, MAIN]
    """Directory to write."""

    def checked(self) -> Self:
        """Also raise OptionError for an output that cannot be written."""
        from wordpiece_core.storage import check_writable

        check_writable("output", path(self.output))
        return super().checked()

    def check_inputs(self, *others: object) -> None:
        """Raise OptionError unless there are inputs, or something else to read."""
        if not self.inputs and not any(others):
            raise OptionError(f"set {opt.inputs}: files, globs or directories")
