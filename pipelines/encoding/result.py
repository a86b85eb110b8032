"""The result of `encode`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.encoding.shard_names import has_ids
from pipelines.encoding.shards import MEASURES, SUMS, BadInput
from pipelines.io.reader import warnings_of_text
from pipelines.summary import corpus_lines, counted, token_lines
from pipelines.token_counts import TokenCounts
from wordpiece_core.errors import opt
from wordpiece_core.measures import RARE
from wordpiece_core.summary import Summarized

MANY_UNKNOWN = 0.01  # share of [UNK] above which there is a warning
MANY_DROPPED = 0.01  # share of tokens dropped by `pack` above which there is a warning


@dataclass(frozen=True, repr=False)
class Encoded(Summarized):
    """The result of `pipelines.encode`.

    Attributes:
        output: The dataset.
        manifest: Its manifest.
        kept: Number of shards from an earlier run.
        others: Number of shards whose inputs were not passed.
        errors: Skipped inputs.
        token_counts: The file of counts, if the job has written one.

    >>> import pipelines
    >>> from wordpiece_core import Tokenizer
    >>> tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "pug", "pun", "##s"])
    >>> encoded = pipelines.encode("corpus/", tokenizer=tokenizer, output="dataset")
    >>> encoded.rows, encoded.tokens, encoded.unknown_tokens
    (3, 18, 0)
    """

    output: str
    manifest: dict[str, Any]
    kept: int
    others: int
    errors: list[BadInput]
    more_warnings: list[str] = field(default_factory=list)
    token_counts: TokenCounts | None = None

    @property
    def shards(self) -> list[str]:
        """Names of the shards, relative to the directory. For other formats than Parquet, names
        of the files with ids."""
        names = (shard["name"] for shard in self.manifest["shards"])
        return [name for name in names if has_ids(name)]

    @property
    def rows(self) -> int:
        """Number of rows of all shards: rows of the inputs, or packed rows."""
        return int(self.manifest["rows"])

    @property
    def tokens(self) -> int:
        """Number of ids of the texts, including special tokens. Excludes padding and separators of
        packed rows."""
        return int(self.manifest["tokens"])

    @property
    def word_tokens(self) -> int:
        """Number of tokens of words alone, before truncation, as `compare` counts them."""
        return int(self.manifest["word_tokens"])

    @property
    def unknown_tokens(self) -> int:
        """Number of [UNK] tokens."""
        return int(self.manifest["unknown_tokens"])

    @property
    def unknown_share(self) -> float:
        """Share of [UNK] tokens."""
        return self.unknown_tokens / max(self.tokens, 1)

    def summary(self) -> dict[str, Any]:
        """Return the object that `wordpiece encode --json` prints."""
        return {
            "output": self.output,
            "shards": len(self.shards),
            "kept": self.kept,
            "others": self.others,
            **{name: self.manifest[name] for name in (*SUMS, *MEASURES)},
            "errors": [asdict(bad.error) for bad in self.errors],
            "token_counts": None if self.token_counts is None else asdict(self.token_counts),
        }

    def lines(self) -> list[str]:
        """Return the summary that `wordpiece encode` prints."""
        manifest = self.manifest
        read = {name: manifest[name] for name in ("bytes", "nulls")}
        kept = f" ({self.kept} finished before)" if self.kept else ""
        others = f", {self.others} of them of inputs not given now" if self.others else ""
        lines = [
            *corpus_lines(read | {"rows": manifest["input_rows"]}),
            f"shards: {len(self.shards):,}{kept}{others}",
            *token_lines(manifest),
        ]
        if manifest["options"].get("pack"):
            length, dropped = manifest["options"]["max_length"], manifest["dropped_tokens"]
            left_out = f", {dropped:,} tokens at shard ends were dropped" if dropped else ""
            lines.append(f"sequences: {self.rows:,} of {length:,} ids{left_out}")
        for source in manifest.get("mix") or ():
            if source["source"] is not None:
                repeats, own = source["repeats"], source["source_tokens"]
                lines.append(
                    f"source {source['source']}: {source['tokens']:,} of {own:,} tokens"
                    f" ({repeats:.2f} repeats)"
                )
        if found := self.token_counts:
            lines += [
                f"token counts: {found.place}",
                f"unused tokens: {found.unused:,}; {found.rare:,} occur fewer than {RARE} times",
            ]
        return [*lines, f"dataset: {self.output}"]

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        manifest = self.manifest
        found = warnings_of_text(manifest["replaced"])
        if not manifest["bytes"]:
            found.append("the inputs hold no text")
        unknown = self.unknown_share
        if unknown > MANY_UNKNOWN:
            found.append(f"{unknown:.1%} of the tokens are [UNK]; does the tokenizer fit the text?")
        dropped = manifest["dropped_tokens"] / max(self.tokens, 1)
        if dropped > MANY_DROPPED:
            is_resharded = manifest["options"].get("layout") is not None
            larger = f"a larger {opt.shard_size}" if is_resharded else "larger input files"
            found.append(
                f"{dropped:.1%} of the tokens were left out, at the ends of the shards; give"
                f" {opt.padding}, {larger}, or a smaller {opt.max_length}"
            )
        if manifest["invalid"]:
            found.append(
                f"{manifest['invalid']:,} invalid UTF-8 sequences in kept columns are kept as they"
                f" are; some readers refuse them ({opt.keep_columns} leaves columns out)"
            )
        found += [
            f"{source['source_tokens']:,} tokens of groups that are not in {opt.mix} were left out"
            for source in manifest.get("mix") or ()
            if source["source"] is None
        ]
        if changed := manifest.get("changed_texts"):
            found.append(
                f"{counted(changed, 'text')} did not survive decoding with {opt.from_tokenizer}:"
                " unknown tokens, or other ids"
            )
        found += [f"skipped: {bad.message}" for bad in self.errors]
        return found + self.more_warnings
