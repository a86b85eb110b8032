"""One schema for the shards of all inputs, and tables that have it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from wordpiece_core.errors import ColumnError, one_line, opt

PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""The types that views are stored in where Arrow cannot process them."""


def joined_schema(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """The schema of all rows, from those of inputs, by their names. A column that an input does not
    have is null there, and a type becomes the larger one where inputs differ, which keeps all
    values. ColumnError if two inputs have a column of types that no type holds."""
    joined: dict[str, tuple[pa.Field, str]] = {}
    for name, schema in schemas:
        for field in schema:
            other, of = joined.setdefault(field.name, (field, name))
            if other.type == field.type:
                continue
            kind = _joined_type(other.type, field.type)
            if kind is None:
                raise ColumnError(
                    f"{name}: column {field.name!r} is {field.type}, but {other.type} in {of};"
                    f" exclude it with {opt.keep_columns}"
                )
            joined[field.name] = field.with_type(kind), name if kind == field.type else of
    fields = [field.with_nullable(True) for field, _ in joined.values()]
    return pa.schema(fields, metadata=schemas[0][1].metadata if schemas else None)


def _joined_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both, if there is one."""
    one, other = _decoded(one, other), _decoded(other, one)
    both = [pa.schema([("", PLAIN.get(kind, kind))]) for kind in (one, other)]
    try:
        kind = pa.unify_schemas(both, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None
    if not (_keeps_decimals(one, kind) and _keeps_decimals(other, kind)):
        return None
    is_bytes = [pa.types.is_binary(k) or pa.types.is_large_binary(k) for k in (one, other, kind)]
    return None if is_bytes[2] and not (is_bytes[0] and is_bytes[1]) else kind


def _keeps_decimals(kind: pa.DataType, joined: pa.DataType) -> bool:
    """Whether no decimals of a type become floats. Arrow would round them, and not say so."""
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_decimal(joined))
    if pa.types.is_struct(kind):
        return all(_keeps_decimals(field.type, joined.field(field.name).type) for field in kind)
    fields = range(kind.num_fields)
    return all(_keeps_decimals(kind.field(i).type, joined.field(i).type) for i in fields)


def _decoded(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary where others are not in one."""
    is_alone = pa.types.is_dictionary(kind) and not pa.types.is_dictionary(other)
    return kind.value_type if is_alone and not pa.types.is_null(other) else kind


def taken(column: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Rows of a column. Arrow cannot take those of views, so these are converted."""
    kind = column.type
    return column.cast(PLAIN.get(kind, kind)).combine_chunks().take(rows).cast(kind)


def conformed(table: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    """A table with the columns of a schema. Those that it does not have are null. ColumnError for
    a value that the schema does not hold. `path`: of the input."""
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ColumnError(
                f"{path}: column {field.name!r} is {field.type} because of other inputs, and cannot"
                f" hold all values here ({one_line(error)}); exclude it with"
                f" {opt.keep_columns}"
            ) from error
    return pa.table(columns, schema=schema)
