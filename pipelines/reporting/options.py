"""The options of the job `report`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pipelines.comparing.options import OnTextOptions, TokenizerPlace, Tokenizers
from wordpiece_core.declared import MAIN, Form
from wordpiece_core.option_types import File


@dataclass(frozen=True, kw_only=True)
class ReportOptions(OnTextOptions, section=MAIN):
    """Write an HTML report about a tokenizer and how it tokenizes text.

    TOKENIZER: a tokenizer directory, a tokenizer file, or a name on the Hub. The page is one file
    that needs no network.
    """

    tokenizer: TokenizerPlace = field(kw_only=False)
    """The tokenizer to show."""
    compare_with: Annotated[Tokenizers, Form("TOKENIZER")] = ()
    """Tokenizer to compare with; repeatable."""
    token_counts: File | None = None
    """Show the uses of tokens in a dataset, from this file of `encode` `--token-counts`, instead of
    those in the text."""
    output: File
    """The page to write, such as report.html."""
    overwrite: bool = False
    """Replace a file that this command did not write."""
