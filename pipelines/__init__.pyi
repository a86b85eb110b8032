# ruff: noqa: E501
# fmt: off
"""The jobs of wordpiece-beam as functions, and transforms for your own Beam pipelines.

Made by `python -m docs.site.signatures`.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Literal

import pyarrow as pa

from pipelines.comparing.check import Checked as Checked
from pipelines.counting.word_table import WordTable as WordTable
from pipelines.encoding.result import Encoded as Encoded
from pipelines.functions import JobWarning as JobWarning
from pipelines.reporting.report import Report as Report
from pipelines.training.extend import Extended as Extended
from pipelines.training.prune import Pruned as Pruned
from pipelines.training.train import Trained as Trained
from pipelines.transforms import CountWords as _CountWords
from pipelines.transforms import EncodeTexts as _EncodeTexts
from wordpiece_core import Tokenizer

__all__: list[str]
__version__: str

def check(
    tokenizer: str | PathLike[str],
    *,
    no_quoting: bool = ...,
    on: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    sample: int | str = ...,
    text_column: str = ...,
    lowercase: bool | None = ...,
    encoding: Literal["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony", "llama3", "qwen"] | None = ...,
    quiet: bool = ...,
) -> Checked: ...

def compare(
    tokenizers: str | PathLike[str] | Tokenizer | Sequence[str | PathLike[str] | Tokenizer] = ...,
    *,
    on: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    word_counts: str | PathLike[str] | None = ...,
    vocab_sizes: int | Sequence[int] = ...,
    no_quoting: bool = ...,
    group_column: str | None = ...,
    text_column: str = ...,
    worker_memory: int | str = ...,
    work_dir: str | PathLike[str] | None = ...,
    beam_args: Sequence[str] = ...,
    quiet: bool = ...,
) -> pa.Table: ...

def count(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    *,
    output: str | PathLike[str],
    merge: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    min_word_count: int = ...,
    special_tokens: Sequence[str] | None = ...,
    no_quoting: bool = ...,
    group_column: str | None = ...,
    smoothing_exponent: float = ...,
    worker_memory: int | str = ...,
    text_column: str = ...,
    lowercase: bool | None = ...,
    strip_accents: bool | None = ...,
    clean_text: bool | None = ...,
    handle_chinese_chars: bool | None = ...,
    pre_tokenizer: str | Sequence[str] = ...,
    normalizer: Sequence[Literal["nfc", "nfd", "nfkc", "nfkd", "lowercase", "strip_accents"]] = ...,
    beam_args: Sequence[str] = ...,
    quiet: bool = ...,
) -> WordTable: ...

def encode(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    *,
    output: str | PathLike[str],
    tokenizer: str | PathLike[str] | Tokenizer,
    lowercase: bool | None = ...,
    encoding: Literal["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony", "llama3", "qwen"] | None = ...,
    unk_scope: Literal["word", "character"] = ...,
    no_quoting: bool = ...,
    text_column: str = ...,
    text_pair_column: str | None = ...,
    keep_columns: Sequence[str] | None = ...,
    pack: bool = ...,
    compression: Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"] = ...,
    add_special_tokens: bool = ...,
    append_eos: bool = ...,
    eos_token: str | None = ...,
    prepend_bos: bool = ...,
    bos_token: str | None = ...,
    special_tokens_in_text: Literal["parse", "text", "error"] = ...,
    max_length: int | None = ...,
    truncation: Literal["longest_first", "only_first", "only_second"] = ...,
    stride: int | None = ...,
    padding: bool = ...,
    columns: Sequence[Literal["attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping", "word_ids", "num_tokens"]] = ...,
    id_type: Literal["int32", "uint16"] = ...,
    shard_size: int | str | None = ...,
    shuffle: int | None = ...,
    splits: str | Mapping[str, str | float] | Sequence[tuple[str, str | float]] | None = ...,
    format: Literal["parquet", "megatron", "ds"] = ...,
    on_error: Literal["fail", "skip"] = ...,
    card: bool = ...,
    allow_unknown: bool = ...,
    worker_memory: int | str = ...,
    follow: bool = ...,
    poll: float | str = ...,
    until_idle: float | str | None = ...,
    beam_args: Sequence[str] = ...,
    quiet: bool = ...,
) -> Encoded: ...

def extend(
    tokenizer: str | PathLike[str],
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    *,
    output: str | PathLike[str],
    word_counts: str | PathLike[str] | None = ...,
    work_dir: str | PathLike[str] | None = ...,
    split_special_tokens: bool = ...,
    keep_work: bool = ...,
    overwrite: bool = ...,
    lowercase: bool | None = ...,
    encoding: Literal["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony", "llama3", "qwen"] | None = ...,
    no_quoting: bool = ...,
    group_column: str | None = ...,
    smoothing_exponent: float = ...,
    worker_memory: int | str = ...,
    text_column: str = ...,
    new_tokens: int | None = ...,
    vocab_size: int | None = ...,
    into: Literal["append", "unused"] = ...,
    criterion: Literal["pmi", "likelihood", "frequency"] | None = ...,
    min_pair_count: int | Literal["auto"] = ...,
    min_word_count: int = ...,
    new_characters: int | Literal["all"] = ...,
    max_token_length: int | None = ...,
    round_budget: float = ...,
    driver_memory: int | str = ...,
    beam_args: Sequence[str] = ...,
    quiet: bool = ...,
) -> Extended: ...

def prune(
    tokenizer: str | PathLike[str],
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    *,
    output: str | PathLike[str],
    word_counts: str | PathLike[str] | None = ...,
    work_dir: str | PathLike[str] | None = ...,
    split_special_tokens: bool = ...,
    keep_work: bool = ...,
    overwrite: bool = ...,
    lowercase: bool | None = ...,
    encoding: Literal["r50k_base", "p50k_base", "cl100k_base", "o200k_base", "o200k_harmony", "llama3", "qwen"] | None = ...,
    no_quoting: bool = ...,
    group_column: str | None = ...,
    smoothing_exponent: float = ...,
    worker_memory: int | str = ...,
    text_column: str = ...,
    vocab_size: int,
    beam_args: Sequence[str] = ...,
    quiet: bool = ...,
) -> Pruned: ...

def report(
    tokenizer: str | PathLike[str] | Tokenizer,
    *,
    on: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    word_counts: str | PathLike[str] | None = ...,
    compare_with: str | PathLike[str] | Tokenizer | Sequence[str | PathLike[str] | Tokenizer] = ...,
    output: str | PathLike[str],
    overwrite: bool = ...,
    no_quoting: bool = ...,
    group_column: str | None = ...,
    text_column: str = ...,
    worker_memory: int | str = ...,
    work_dir: str | PathLike[str] | None = ...,
    beam_args: Sequence[str] = ...,
    quiet: bool = ...,
) -> Report: ...

def train(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]] = ...,
    *,
    output: str | PathLike[str],
    word_counts: str | PathLike[str] | None = ...,
    work_dir: str | PathLike[str] | None = ...,
    split_special_tokens: bool = ...,
    keep_work: bool = ...,
    overwrite: bool = ...,
    vocab_size: int = ...,
    model: Literal["wordpiece", "bpe", "unigram"] = ...,
    word_boundary: Literal["</w>", "\u2581", "bytes"] | None = ...,
    byte_fallback: bool = ...,
    seed_size: int = ...,
    criterion: Literal["pmi", "likelihood", "frequency"] | None = ...,
    min_pair_count: int | Literal["auto"] = ...,
    min_word_count: int = ...,
    limit_alphabet: int | None = ...,
    initial_alphabet: str = ...,
    special_tokens: Sequence[str] | None = ...,
    unk_token: str | None = ...,
    bos_token: str | None = ...,
    eos_token: str | None = ...,
    pad_token: str | None = ...,
    mask_token: str | None = ...,
    model_max_length: int | None = ...,
    max_token_length: int | None = ...,
    max_word_length: int = ...,
    continuing_prefix: str | None = ...,
    alphabet_order: Literal["sorted", "first_seen"] = ...,
    round_budget: float = ...,
    driver_memory: int | str = ...,
    no_quoting: bool = ...,
    group_column: str | None = ...,
    smoothing_exponent: float = ...,
    worker_memory: int | str = ...,
    text_column: str = ...,
    lowercase: bool | None = ...,
    strip_accents: bool | None = ...,
    clean_text: bool | None = ...,
    handle_chinese_chars: bool | None = ...,
    pre_tokenizer: str | Sequence[str] = ...,
    normalizer: Sequence[Literal["nfc", "nfd", "nfkc", "nfkd", "lowercase", "strip_accents"]] = ...,
    beam_args: Sequence[str] = ...,
    quiet: bool = ...,
) -> Trained: ...

class CountWords(_CountWords):
    def __init__(
        self,
        text_column: str = ...,
        *,
        special_tokens: Sequence[str] | None = ...,
        worker_memory: int | str = ...,
        batch_size: int = ...,
        max_delay: float = ...,
        error_handling: Mapping[str, str] | None = ...,
        lowercase: bool | None = ...,
        strip_accents: bool | None = ...,
        clean_text: bool | None = ...,
        handle_chinese_chars: bool | None = ...,
        pre_tokenizer: str | Sequence[str] = ...,
        normalizer: Sequence[Literal["nfc", "nfd", "nfkc", "nfkd", "lowercase", "strip_accents"]] = ...,
    ) -> None: ...

class EncodeTexts(_EncodeTexts):
    def __init__(
        self,
        tokenizer: str | Tokenizer,
        text_column: str = ...,
        *,
        text_pair_column: str | None = ...,
        lowercase: bool | None = ...,
        unk_scope: str = ...,
        batch_size: int = ...,
        max_delay: float = ...,
        error_handling: Mapping[str, str] | None = ...,
        add_special_tokens: bool = ...,
        append_eos: bool = ...,
        eos_token: str | None = ...,
        prepend_bos: bool = ...,
        bos_token: str | None = ...,
        special_tokens_in_text: Literal["parse", "text", "error"] = ...,
        max_length: int | None = ...,
        truncation: Literal["longest_first", "only_first", "only_second"] = ...,
        stride: int | None = ...,
        padding: bool = ...,
        columns: Sequence[Literal["attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping", "word_ids", "num_tokens"]] = ...,
        id_type: Literal["int32", "uint16"] = ...,
    ) -> None: ...
