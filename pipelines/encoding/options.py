"""The options of encoded shards, and a call of the job `encode`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipelines.comparing.options import TokenizerOptions, TokenizerPlace
from pipelines.running.call import Call, CsvOptions, FollowOptions
from wordpiece_core.declaration import (
    INPUT,
    MAIN,
    OUTPUT,
    REQUIRED,
    TOKENIZER,
    Declared,
    group,
    option,
)
from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Choice, Column, Flag, Names, Shares, Size, Whole
from wordpiece_core.options import (
    ID_TYPES,
    LEAST_WORKER_MEMORY,
    UNK_SCOPES,
    EncodingOptions,
)

if TYPE_CHECKING:
    from wordpiece_core import Tokenizer

COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")
FAIL, SKIP = "fail", "skip"  # what to do about a bad input
FORMATS = ("parquet", "megatron", "ds")
SHARD_SIZE = 256 << 20  # of a resharded dataset, by default
LEAST_SHARD_SIZE = 1 << 10


@dataclass(frozen=True, kw_only=True)
class TokenizerChoice(Declared):
    """Which tokenizer to use, and which of its options to override."""

    SECTION = TOKENIZER

    tokenizer: str | Tokenizer = option(
        REQUIRED,
        TokenizerPlace(),
        "Tokenizer directory, tokenizer file, or name on the Hub.",
        section=MAIN,
    )
    reading: TokenizerOptions = group(TokenizerOptions)
    unk_scope: str = option(
        "word", Choice(UNK_SCOPES), "Replace the complete word or only the character with [UNK]."
    )

    def load(self) -> Tokenizer:
        """Loads the tokenizer, with a TakenAsCasedWarning if it is taken as cased. OptionError if
        options are given that would change a `Tokenizer`."""
        from wordpiece_core import Tokenizer

        if isinstance(self.tokenizer, Tokenizer):
            if self.reading != TokenizerOptions() or self.unk_scope != "word":
                raise OptionError(
                    "`lowercase`, `encoding`, `unk_scope`: set them when you create the Tokenizer"
                )
            return self.tokenizer
        return self.reading.load(self.tokenizer, self.unk_scope)


@dataclass(frozen=True, kw_only=True)
class ShardOptions(CsvOptions):
    """What an encoded shard holds. `keep_columns`: the columns of the input to keep. None keeps all
    of them; with a stride all but the texts, which each row would repeat; with `pack` none."""

    SECTION = OUTPUT

    text_column: str = option("text", Column(), "Column or key that holds the text.", section=MAIN)
    text_pair_column: str | None = option(
        None, Column(), "Column or key that holds the second text, for pairs.", section=INPUT
    )
    keep_columns: tuple[str, ...] | None = option(
        None,
        Names("columns"),
        'Columns of the input to keep; "" for none, as with `pack`.',
        shown_default="all; all except the texts with `stride`",
        section=MAIN,
    )
    pack: bool = option(
        False, Flag(), "Fill rows of exactly `max_length` from many texts.", section=MAIN
    )

    compression: str = option("zstd", Choice(COMPRESSIONS), "Compression of Parquet shards.")
    encoding: EncodingOptions = group(EncodingOptions)

    def __post_init__(self) -> None:
        super().__post_init__()

        if not self.pack:
            return
        encoding, length = self.encoding, "`max_length`"
        if encoding.max_length is None:
            raise OptionError(f"pack: set {length}, the length of a row")
        for name, given in {
            "`keep_columns`": self.keep_columns,
            "`text_pair_column`": self.text_pair_column,
            "`stride`": encoding.stride is not None,
            "`add_special_tokens=False`": not (
                encoding.add_special_tokens or encoding.marks_boundaries
            ),
        }.items():
            if given:
                raise OptionError(f"{name}: cannot be combined with `pack`")

    def plain(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, encoding options included, as values
        that JSON can hold. Runs that share a dataset have the same ones."""
        own, usual = asdict(self), asdict(ShardOptions())
        own, usual = (each | each.pop("encoding") for each in (own, usual))
        options = {name: value for name, value in own.items() if value != usual[name]}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}

    @property
    def kept(self) -> list[str] | None:
        """The columns to keep; None for the default ones."""
        kept = () if self.pack else self.keep_columns
        return None if kept is None else list(kept)


@dataclass(frozen=True, kw_only=True)
class ReshardOptions(Declared):
    """How the rows of all inputs are resharded (`pipelines.encoding.resharding`)."""

    SECTION = OUTPUT

    shard_size: int | None = option(
        None,
        Size(least=LEAST_SHARD_SIZE),
        "Approximate size of a shard; shards join rows of all inputs.",
        shown_default="off; 256MiB with `pack`, `shuffle`, `splits`, `format`",
        section=MAIN,
    )
    shuffle: int | None = option(
        None,
        Whole((1 << 63) - 1, 0),
        "Shuffle all rows with this seed.",
        shown_default="off",
        section=MAIN,
    )
    splits: tuple[tuple[str, str], ...] | None = option(
        None,
        Shares(),
        "Assign rows to splits by a hash of their text, for example train=0.98,validation=0.02.",
        shown_default="all in train",
    )
    format: str = option("parquet", Choice(FORMATS), "Format of the shards.")

    @property
    def asked_for(self) -> list[str]:
        """The options that ask for a layout."""
        asked_for = {
            "`shard_size`": self.shard_size,
            "`shuffle`": self.shuffle,
            "`splits`": self.splits,
            "`format`": None if self.format == "parquet" else self.format,
        }
        return [name for name, value in asked_for.items() if value is not None]

    @property
    def size(self) -> int:
        """About the bytes of a shard."""
        return self.shard_size or SHARD_SIZE

    @property
    def shares(self) -> tuple[tuple[str, str], ...]:
        """The splits and their shares."""
        return self.splits or (("train", "1"),)

    def plain(self) -> dict[str, Any]:
        """The options as values that JSON can hold."""
        splits = None if self.splits is None else dict(self.splits)
        size, seed = self.size, self.shuffle
        return {"shard_size": size, "shuffle": seed, "splits": splits, "format": self.format}


@dataclass(frozen=True, kw_only=True)
class EncodeCall(Call):
    """Encode INPUT into shards of token ids, one for each input file or of a given size.

    INPUT: files, globs or directories, local or in a store, in the formats that wordpiece count
    reads. A rerun keeps finished shards.
    """

    choice: TokenizerChoice = group(TokenizerChoice)
    shards: ShardOptions = group(ShardOptions)
    layout: ReshardOptions = group(ReshardOptions)
    on_error: str = option(
        FAIL,
        Choice((FAIL, SKIP)),
        "If an input cannot be read: fail, or list it in the manifest and leave it out.",
        section=OUTPUT,
    )
    card: bool = option(
        False, Flag(), "Write a dataset card for the Hub, README.md.", section=OUTPUT
    )
    allow_unknown: bool = option(
        False, Flag(), "Accept a dataset with more than 90 % unknown tokens."
    )
    worker_memory: int = option(
        512 << 20, Size(LEAST_WORKER_MEMORY), "Memory of a worker for `shuffle`.", section=OUTPUT
    )
    following: FollowOptions = group(FollowOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_inputs()

        asked_for, encoding = self.layout.asked_for, self.shards.encoding
        if asked_for and self.following.follow:
            raise OptionError(f"{asked_for[0]}: cannot be combined with `follow`")
        if asked_for and encoding.stride is not None:
            raise OptionError(f"{asked_for[0]}: cannot be combined with `stride`")

        if self.layout.format != "parquet":
            self._check_ids_alone()

    @property
    def is_resharded(self) -> bool:
        """Whether shards are made from the rows of all inputs, not one from each input."""
        return bool(self.layout.asked_for) or (self.shards.pack and not self.following.follow)

    def _check_ids_alone(self) -> None:
        """OptionError for options that files of ids do not have, even if they equal the default."""
        shards, encoding = self.shards, self.shards.encoding
        other_type = "id_type" in self.given or encoding.id_type != ID_TYPES[0]
        compressed = "compression" in self.given or shards.compression != COMPRESSIONS[0]
        for name, is_given, why in (
            ("keep_columns", shards.keep_columns, "only ids"),
            ("columns", encoding.columns, "only ids"),
            ("id_type", other_type, "whose type of ids follows from the size of the vocabulary"),
            (
                "compression",
                compressed and shards.compression != "none",
                "whose files are not compressed",
            ),
        ):
            if is_given:
                chosen = f"`format` {self.layout.format}"
                raise OptionError(f"{name}: cannot be combined with {chosen}, {why}")

    @property
    def job_options(self) -> dict[str, Any]:
        """The options that all shards of a directory share."""
        layout = {"layout": self.layout.plain()} if self.is_resharded else {}
        return self.shards.plain() | layout
