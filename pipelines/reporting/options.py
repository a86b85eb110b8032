"""A call of the job `report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.comparing.options import MeasureOptions, TokenizerPlace, Tokenizers, check_texts
from pipelines.running.call import JobCall
from wordpiece_core.declaration import MAIN, REQUIRED, group, option
from wordpiece_core.option_kinds import Flag, Place, Places

if TYPE_CHECKING:
    from wordpiece_core import Tokenizer


@dataclass(frozen=True, kw_only=True)
class ReportCall(JobCall):
    """Write an HTML report about a tokenizer and how it tokenizes text.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. The page is one file
    that needs no network.
    """

    SECTION = MAIN
    ARGUMENTS = ("tokenizer",)
    ALTERNATIVES = (("on", "word_counts"),)

    tokenizer: str | Tokenizer = option(REQUIRED, TokenizerPlace(), "The tokenizer to show.")
    on: tuple[str, ...] = option(
        (),
        Places("INPUT"),
        "Text for the report: a file, a glob or a directory, as for count; repeatable.",
    )
    word_counts: str | None = option(None, Place(), "Use this word table instead of texts.")
    compare_with: tuple[str | Tokenizer, ...] = option(
        (),
        Tokenizers("TOKENIZER"),
        "Tokenizer to compare with; repeatable.",
    )
    output: str = option(REQUIRED, Place("FILE"), "The page to write, such as report.html.")
    overwrite: bool = option(False, Flag(), "Replace a file that this command did not write.")
    measuring: MeasureOptions = group(MeasureOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_texts(self.on, self.word_counts, self.measuring)
