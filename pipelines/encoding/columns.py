"""The columns of shards: the texts that are read, the columns that are added, and how columns are
stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.encoding.options import ShardOptions
from pipelines.io.columns import TextColumns
from pipelines.io.outputs import empty_parquet
from wordpiece_core import Packer, Tokenizer
from wordpiece_core.errors import OptionError, opt

SCHEMAS = 64  # number of schemas whose columns are remembered
SOURCE_ROWS = "overflow_to_sample_mapping"


def text_columns(options: ShardOptions) -> TextColumns:
    """Return the columns that hold text."""
    group, keeps_texts = options.group_column, options.stride is None
    if options.ids_column is not None:
        return TextColumns(options.ids_column, group, keeps_texts=False, has_ids=True)
    return TextColumns(options.text_column, group, options.text_pair_column, keeps_texts)


@lru_cache(SCHEMAS)
def added_schema(tokenizer: Tokenizer, options: ShardOptions) -> pa.Schema:
    """Return the columns that are added: the ids, and other columns on request."""
    if options.pack:
        return Packer(tokenizer, options, best_fit=options.is_best_fit).finish().schema
    pairs: list[str] | None = [] if options.text_pair_column else None
    added = tokenizer.encode_table([], pairs, options=options).table.schema
    if options.stride is not None:
        added = added.append(pa.field(SOURCE_ROWS, pa.int64()))
    return added


def check_fit(options: ShardOptions, tokenizer: Tokenizer) -> None:
    """Raise OptionError if the options do not fit the vocabulary."""
    if options.pack:
        Packer(tokenizer, options, best_fit=options.is_best_fit)
        return
    if options.add_special_tokens and not tokenizer.adds_special_tokens:
        raise OptionError(
            f"the vocabulary lacks [CLS] or [SEP]; set {opt['add_special_tokens=False']}"
        )
    tokenizer.check_options(options, bool(options.text_pair_column))


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema after a round trip through Parquet, which for example renames the values of
    lists."""
    return pa.schema([*pq.read_schema(pa.BufferReader(empty_parquet(schema)))])


@lru_cache(SCHEMAS)
def columns_digest(schema: pa.Schema) -> str:
    """Return a digest of the names and types of columns, as Parquet stores them."""
    columns = [(field.name, str(field.type), field.nullable) for field in stored_schema(schema)]
    return hashlib.sha256(str(columns).encode()).hexdigest()[:16]


def storing(options: ShardOptions, schema: pa.Schema, kept: Sequence[str]) -> dict[str, Any]:
    """Return how pyarrow stores columns: kept columns with statistics, and with dictionaries where
    they help; ids and texts plain."""
    paths, codec = _leaf_paths(schema, tuple(kept)), options.compression
    return {"compression": codec, "use_dictionary": paths, "write_statistics": paths}


@lru_cache(SCHEMAS)
def _leaf_paths(schema: pa.Schema, names: tuple[str, ...]) -> list[str]:
    """Return Parquet's names of stored columns. A nested column has several."""
    stored = pq.read_metadata(pa.BufferReader(empty_parquet(schema))).schema
    paths = (stored.column(i).path for i in range(len(stored)))
    return [path for path in paths if path in names or path.split(".")[0] in names]
