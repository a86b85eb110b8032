"""The Rust kernel. Arrays come and go through the Arrow PyCapsule interface: any object with
`__arrow_c_array__` is taken, and `pyarrow.array(x)` or `pyarrow.record_batch(x)` takes the results.
Wrong values are ValueErrors, wrong types TypeErrors, each of one line."""

from collections.abc import Sequence
from typing import Any, Protocol

class ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

class WordCounter:
    """Counts words in a hash table."""

    rows: int
    nulls: int
    bytes: int
    words: int  # of the batches taken so far
    replaced: int  # invalid UTF-8 sequences
    def __init__(
        self,
        *,
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: bool,
        lowercase: bool,
        pre_tokenizer: str,
    ) -> None: ...
    @property
    def memory(self) -> int: ...
    def count(self, texts: ArrowArray) -> None: ...
    def take(self, partitions: int) -> list[tuple[int, ArrowArray]]:
        """Empties the table: batches of `word`, `count` by partition, each ordered by word."""

def merge_word_counts(batches: Sequence[ArrowArray]) -> ArrowArray:
    """Sums equal words; ordered by count (descending), then word."""

def repair_utf8(array: ArrowArray) -> tuple[ArrowArray, int]: ...
def split_lines(block: bytes | memoryview) -> tuple[ArrowArray, int]: ...
def pre_tokenize(
    texts: ArrowArray,
    *,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
    pre_tokenizer: str,
) -> ArrowArray: ...

class Encoder:
    def __init__(
        self,
        vocab: Sequence[str],
        *,
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: bool,
        lowercase: bool,
        pre_tokenizer: str,
        unk_token: str,
        continuing_prefix: str,
        max_word_length: int,
        unk_scope: str,
        special_tokens: Sequence[str],
        prefix_ids: Sequence[int],
        suffix_ids: Sequence[int],
    ) -> None: ...
    def encode(
        self, texts: ArrowArray, *, add_special_tokens: bool, threads: int = 1
    ) -> tuple[ArrowArray, int]:
        """`list<int32>` of ids, and how many are unknown."""

    def encode_with_offsets(
        self, texts: ArrowArray, *, add_special_tokens: bool
    ) -> tuple[ArrowArray, ArrowArray, int]:
        """As `encode`, with `list<fixed_size_list<int32>[2]>`: characters from, to, in the row."""

def symbol_counts(
    words: ArrowArray, *, first_rank: int, min_word_count: int, max_word_length: int
) -> ArrowArray:
    """`character`, `continuing`, `count`, `first_rank`, `first_offset` of part of a word table."""

class Splitter:
    """Splits of words after merges. `alphabet`: symbols and their ids; `merges` has the columns
    `left`, `right`, `token` (ids), in order."""

    def __init__(
        self,
        alphabet: Sequence[tuple[str, int]],
        merges: ArrowArray | None,
        *,
        continuing_prefix: str,
        min_word_count: int,
        max_word_length: int,
    ) -> None: ...
    def split(self, words: ArrowArray, first_rank: int) -> ArrowArray:
        """`rank`, `count`, `symbols: list<uint32>` of a part of a word table."""

class PairCounter:
    """Counts of tokens (`token`, `count`) and of pairs (`left`, `right`, `count`, `merges`,
    `tokens`, `first_rank`, `first_offset`) over splits."""

    def __init__(self) -> None: ...
    def add_splits(self, splits: ArrowArray) -> None: ...
    def add_counts(self, unigrams: ArrowArray, pairs: ArrowArray) -> None: ...
    def unigrams(self) -> ArrowArray: ...
    def pairs(self) -> ArrowArray: ...

def words_with_pairs(splits: ArrowArray, pairs: ArrowArray) -> ArrowArray: ...

class Trainer:
    def __init__(
        self,
        tokens: Sequence[str],
        *,
        vocab_size: int,
        criterion: str,
        min_pair_count: int | None,
        max_token_length: int,
        continuing_prefix: str,
        support: int = 0,
    ) -> None: ...
    @property
    def support(self) -> int: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def vocab_size(self) -> int: ...
    def start_round(
        self, unigrams: ArrowArray, pairs: ArrowArray, splits: Sequence[ArrowArray]
    ) -> None: ...
    def run(self, most: int) -> str:
        """Makes up to `most` merges: "running", "round over" or "done"."""

    def hot_pairs(self, unigrams: ArrowArray, pairs: ArrowArray, budget: int) -> ArrowArray:
        """`left`, `right` of the best pairs whose words have no more than `budget` tokens."""

    def merges(self) -> ArrowArray:
        """`left`, `right`, `token` (ids), `score`, `pair_count`, `left_count`, `right_count`."""
