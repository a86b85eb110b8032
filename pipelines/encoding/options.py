"""What an encoded shard holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.files.inputs import Columns
from wordpiece_core import EncodingOptions, Packer, Tokenizer
from wordpiece_core.errors import OptionError


@dataclass(frozen=True)
class EncodeOptions:
    """What an encoded shard holds. `keep_columns`: of the input; None for all, for all but the
    texts with a stride (each row would repeat its whole text), or for none with `pack`; `pack`:
    sequences of exactly `encoding.max_length`; `compression`: one of Parquet's."""

    text_column: str = "text"
    text_pair_column: str | None = None
    keep_columns: tuple[str, ...] | None = None
    pack: bool = False
    compression: str = "zstd"
    encoding: EncodingOptions = field(default_factory=EncodingOptions)

    def __post_init__(self) -> None:
        for option, name in {
            "--text-column": self.text_column,
            "--text-pair-column": self.text_pair_column,
        }.items():
            if name == "":
                raise OptionError(f"{option}: give the name of a column")
        if not self.pack:
            return
        encoding = self.encoding
        if encoding.max_length is None:
            raise OptionError("--pack: give --max-length, the length of a sequence")
        for option, given in {
            "--keep-columns": self.keep_columns,
            "--text-pair-column": self.text_pair_column,
            "--stride": encoding.stride is not None,
            "--no-special-tokens": not encoding.add_special_tokens,
        }.items():
            if given:
                raise OptionError(f"{option}: does not go with --pack, whose rows are no texts")

    def check(self, tokenizer: Tokenizer) -> None:
        """OptionError if they do not fit a vocabulary."""
        if self.encoding.add_special_tokens and not tokenizer.adds_special_tokens:
            raise OptionError("the vocabulary has no [CLS] or no [SEP]; give --no-special-tokens")
        if self.pack:
            Packer(tokenizer, self.encoding)
        else:
            tokenizer.check_options(self.encoding, bool(self.text_pair_column))

    def plain(self) -> dict[str, Any]:
        """The options as JSON has them, those of encoding among them."""
        own = asdict(self)
        options = own | own.pop("encoding")
        return {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}

    @property
    def columns(self) -> Columns:
        """Those that hold text."""
        keeps_texts = self.encoding.stride is None
        return Columns(self.text_column, pair=self.text_pair_column, keeps_texts=keeps_texts)

    @property
    def kept(self) -> list[str] | None:
        """The columns to keep; None for the usual ones."""
        kept = () if self.pack else self.keep_columns
        return None if kept is None else list(kept)
