"""The options of encoded shards, and of the job `encode`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pipelines.comparing.options import LoadingOptions, TokenizerPlace
from pipelines.options import CsvOptions, FollowOptions, InputOptions
from wordpiece_core.declared import (
    INPUT,
    MAIN,
    OTHER,
    OUTPUT,
    TOKENIZER,
    TRUTH,
    Form,
    Ge,
    Le,
    Options,
    refusal,
)
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.option_types import (
    Column,
    File,
    Inputs,
    Size,
    Splits,
    TokenCount,
    WorkerMemory,
    path,
)
from wordpiece_core.options import EncodingOptions, UnkScope, changed
from wordpiece_core.uri import absolute

if TYPE_CHECKING:
    from pipelines.encoding.mix import Mix
    from wordpiece_core import Tokenizer

SKIP = "skip"  # what to do about a bad input
BEST_FIT = "best-fit"
SHARD_SIZE = 256 << 20  # of a resharded dataset, by default


def _packing(value: Any) -> bool | str:
    """Return a value of `pack` in its normal form: "concat" is True."""
    if value not in (True, False, "concat", BEST_FIT):
        raise refusal(value, f"concat or {BEST_FIT}")
    return bool(value) if value in (True, False, "concat") else BEST_FIT


Packing = Annotated[
    bool | Literal["concat", "best-fit"],
    Form("[concat|best-fit]", "", lambda text: TRUTH.get(text.lower(), text), check=_packing),
]
"""Packing of texts: concatenated and split, by best fit, or none."""


@dataclass(frozen=True, kw_only=True)
class TokenizerOptions(LoadingOptions, section=TOKENIZER):
    """The tokenizer to use, and what to override in it."""

    tokenizer: Annotated[TokenizerPlace, MAIN]
    """Tokenizer directory, tokenizer file, or name on the Hub."""
    unk_scope: UnkScope = "word"
    """Replace the complete word or only the character with [UNK]."""

    def load_tokenizer(self) -> Tokenizer:
        """Load the tokenizer, with a TakenAsCasedWarning if it is taken as cased.

        Raises OptionError if options are given that would change a `Tokenizer`.
        """
        from wordpiece_core import Tokenizer

        if isinstance(self.tokenizer, Tokenizer):
            if (self.lowercase, self.encoding, self.unk_scope) != (None, None, "word"):
                raise OptionError(
                    f"{opt.lowercase}, {opt.encoding}, {opt.unk_scope}: set them when you create"
                    " the Tokenizer"
                )
            return self.tokenizer
        return self.load(self.tokenizer, self.unk_scope)


@dataclass(frozen=True, kw_only=True)
class ShardOptions(CsvOptions, EncodingOptions, section=OUTPUT):
    """Contents of an encoded shard. `keep_columns`: the columns of the input to keep. None keeps
    all of them; with a stride all except the texts, which each row would repeat; with `pack` none.
    """

    text_column: Annotated[Column, MAIN] = "text"
    """Column or key that holds the text."""
    ids_column: Annotated[Column | None, INPUT] = None
    """Column that holds ids of `from_tokenizer`, instead of a text."""
    group_column: Annotated[Column | None, INPUT] = None
    """Column of the groups that `mix` names."""
    text_pair_column: Annotated[Column | None, INPUT] = None
    """Column or key that holds the second text, for pairs."""
    keep_columns: Annotated[Sequence[str] | None, Form("LIST"), MAIN] = None
    """Columns of the input to keep; "" for none, as with `pack` (default: all; all except the texts
    with `stride`)."""
    pack: Annotated[Packing, MAIN] = False
    """Fill rows of exactly `max_length` from many texts: split texts (concat, the default), or keep
    them complete and pad rows (best-fit)."""
    compression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"] = "zstd"
    """Compression of Parquet shards."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ids_column is not None:
            for name, usual in (("text_column", "text"), ("text_pair_column", None)):
                if getattr(self, name) != usual:
                    raise OptionError(f"{opt[name]}: cannot be combined with {opt.ids_column}")
        if not self.pack:
            return
        if self.max_length is None:
            raise OptionError(f"{opt.pack}: set {opt.max_length}, the length of a row")
        has_boundaries = self.add_special_tokens or self.marks_boundaries
        for name, given in {
            "keep_columns": self.keep_columns,
            "text_pair_column": self.text_pair_column,
            "stride": self.stride is not None,
            "padding": self.padding and self.pack == BEST_FIT,
            "add_special_tokens=False": not has_boundaries,
        }.items():
            if given:
                raise OptionError(f"{opt[name]}: cannot be combined with {opt.pack}")

    @property
    def is_best_fit(self) -> bool:
        """True if packed texts stay complete."""
        return self.pack == BEST_FIT

    def identity(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as values that JSON can hold. Runs
        that share a dataset have the same ones."""
        return changed(ShardOptions, self.select(ShardOptions).to_dict())

    @property
    def kept(self) -> list[str] | None:
        """The columns to keep; None for the default ones."""
        kept = () if self.pack else self.keep_columns
        return None if kept is None else list(kept)


@dataclass(frozen=True, kw_only=True)
class ReshardOptions(Options, section=OUTPUT):
    """Layout of a resharded dataset (`pipelines.encoding.resharding`)."""

    shard_size: Annotated[Annotated[Size, Ge(1 << 10)] | None, MAIN] = None
    """Approximate size of a shard; shards join rows of all inputs (default: off; 256MiB with
    `pack`, `shuffle`, `splits`, `format`)."""
    shuffle: Annotated[Annotated[int, Ge(0), Le(2**63 - 1)] | None, MAIN] = None
    """Shuffle all rows with this seed (default: off)."""
    splits: Splits | None = None
    """Assign rows to splits by a hash of their text, for example train=0.98,validation=0.02
    (default: all in train)."""
    format: Literal["parquet", "megatron", "ds", "npy"] = "parquet"
    """Format of the shards."""
    mix: File | None = None
    """Draw rows from sources, as this YAML file says; with `shuffle`."""
    tokens: TokenCount | None = None
    """Number of tokens to draw with `mix`, such as 10B."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mix is not None and self.shuffle is None:
            raise OptionError(f"{opt.mix}: also set {opt.shuffle}, the seed of the drawing")
        if self.tokens is not None and self.mix is None:
            raise OptionError(f"{opt.tokens}: also set {opt.mix}")

    @property
    def layout_options(self) -> list[str]:
        """The names of the options that ask for a layout."""
        given = {
            "shard_size": self.shard_size,
            "shuffle": self.shuffle,
            "splits": self.splits,
            "format": None if self.format == "parquet" else self.format,
            "mix": self.mix,
        }
        return [name for name, value in given.items() if value is not None]

    @property
    def size(self) -> int:
        """Approximate bytes of a shard."""
        return self.shard_size or SHARD_SIZE

    @property
    def shares(self) -> dict[str, str]:
        """The splits and their shares, which are decimal numbers."""
        return {name: str(share) for name, share in dict(self.splits or {"train": "1"}).items()}

    def layout(self) -> dict[str, Any]:
        """Return the layout as values that JSON can hold."""
        splits = None if self.splits is None else self.shares
        size, seed = self.size, self.shuffle
        return {"shard_size": size, "shuffle": seed, "splits": splits, "format": self.format}


@dataclass(frozen=True, kw_only=True)
class EncodeOptions(
    FollowOptions, ShardOptions, ReshardOptions, TokenizerOptions, InputOptions, section=OUTPUT
):
    """Encode INPUT into shards of token ids, one for each input file or of a given size.

    INPUT: files, globs or directories, local or in a store, in the formats that wordpiece count
    reads. A rerun keeps finished shards.
    """

    inputs: Inputs = field(default=(), kw_only=False)
    """Files, globs or directories, as for count."""
    from_tokenizer: Annotated[TokenizerPlace | None, INPUT] = None
    """Tokenizer to decode `ids_column` with."""
    on_error: Literal["fail", "skip"] = "fail"
    """If an input cannot be read: fail, or leave it out and list it."""
    card: bool = False
    """Write a dataset card for the Hub, README.md."""
    token_counts: File | None = None
    """Also count how often each id occurs, into this Parquet file."""
    allow_unknown: Annotated[bool, OTHER] = False
    """Accept a dataset with more than 90 % unknown tokens."""
    worker_memory: WorkerMemory = 512 << 20
    """Memory of a worker for rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_inputs(self.mix)
        if self.mix is not None and self.padding and not self.pack:
            raise OptionError(f"{opt.padding}: cannot be combined with {opt.mix}, except packed")
        if self.group_column is not None and self.mix is None:
            raise OptionError(f"{opt.group_column}: also set {opt.mix}")
        if (self.ids_column is None) != (self.from_tokenizer is None):
            given, other = ("ids_column", "from_tokenizer")[:: 1 if self.ids_column else -1]
            raise OptionError(f"{opt[given]}: also set {opt[other]}")
        for name in self.layout_options[:1]:
            if self.follow:
                raise OptionError(f"{opt[name]}: cannot be combined with {opt.follow}")
            if self.stride is not None:
                raise OptionError(f"{opt[name]}: cannot be combined with {opt.stride}")
        if self.token_counts is not None:
            self._check_token_counts()
        if self.format != "parquet":
            self._check_ids_alone()

    def load_source(self) -> Tokenizer | None:
        """Load the tokenizer of the ids to decode, if there are any."""
        from wordpiece_core import Tokenizer

        place = self.from_tokenizer
        return place if place is None or isinstance(place, Tokenizer) else Tokenizer.load(place)

    def load_mix(self) -> Mix | None:
        """Read the sources of rows. Raises OptionError for a file that does not fit the options."""
        if self.mix is None:
            return None
        from pipelines.encoding.mix import read_mix  # imports pyarrow

        mix = read_mix(path(self.mix), self.tokens)
        if mix.groups and (self.group_column is None or not self.inputs):
            name = "inputs" if self.group_column else "group_column"
            raise OptionError(f"{path(self.mix)}: its sources are groups; also set {opt[name]}")
        if mix.inputs and (self.group_column is not None or self.inputs):
            name = "inputs" if self.inputs else "group_column"
            raise OptionError(f"{path(self.mix)}: its sources are inputs; remove {opt[name]}")
        return mix

    @property
    def is_resharded(self) -> bool:
        """True if shards are made from the rows of all inputs, not one from each input."""
        return bool(self.layout_options) or (self.pack is not False and not self.follow)

    def _check_token_counts(self) -> None:
        """Raise OptionError for a file of counts that would be a shard, or that follows nothing."""
        if self.follow:
            raise OptionError(f"{opt.token_counts}: cannot be combined with {opt.follow}")
        if absolute(path(self.token_counts)).startswith(absolute(path(self.output)) + "/"):
            raise OptionError(
                f"{opt.token_counts}: {path(self.token_counts)} is in {opt.output}, whose readers"
                " would take it for a shard; choose a file outside"
            )

    def _check_ids_alone(self) -> None:
        """Raise OptionError for options that files of ids do not have."""
        compressed = self.compression not in ("zstd", "none")
        for name, is_given, why in (
            ("keep_columns", self.keep_columns, "only ids"),
            ("columns", self.columns, "only ids"),
            (
                "id_type",
                self.id_type != "int32" and self.format != "npy",
                "whose type of ids follows from the size of the vocabulary",
            ),
            ("compression", compressed, "whose files are not compressed"),
        ):
            if is_given:
                chosen = f"{opt.format} {self.format}"
                raise OptionError(f"{opt[name]}: cannot be combined with {chosen}, {why}")

    @property
    def shared_options(self) -> dict[str, Any]:
        """The options that all shards of a directory share."""
        layout = {"layout": self.layout()} if self.is_resharded else {}
        return self.identity() | layout
