"""The options that all jobs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from wordpiece_core.declaration import REQUIRED, Declared, option
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Place, Places

INPUTS = "inputs"  # the option that a command line gives without a name


@dataclass(frozen=True, kw_only=True)
class Call(Declared):
    """A call of a job: its inputs, its output and its options."""

    ALTERNATIVES: ClassVar[Sequence[Sequence[str]]] = ()
    """Options of which a call takes one: if one is set nearer than the others, that one."""

    inputs: tuple[str, ...] = option(
        (),
        Places("INPUT..."),
        "Files, globs or directories of .parquet, .txt, .jsonl (text also .gz, .zst), on any file"
        " system that Arrow reads.",
    )
    output: str = option(REQUIRED, Place(), "Directory to write.")

    def check_inputs(self, *others: object) -> None:
        """OptionError unless there are inputs, or something else to read."""
        if not self.inputs and not any(others):
            raise OptionError("give INPUT: files, globs or directories")
