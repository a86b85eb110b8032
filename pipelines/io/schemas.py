"""Join the schemas of several inputs, and convert tables to a schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from wordpiece_core.errors import ColumnError, one_line, opt

PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Types that replace views where Arrow cannot process them."""


def joined_schema(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the schema of the rows of all inputs.

    A column that an input lacks is null there. If the types of a column differ, it gets a type that
    holds all values.

    Args:
        schemas: The names of inputs, and their schemas.

    Raises ColumnError if no type holds the values of a column, naming two inputs.
    """
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
    """Return the type that holds the values of both, if there is one."""
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
    """Return True if no decimals become floats, which Arrow would round silently."""
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_decimal(joined))
    if pa.types.is_struct(kind):
        return all(_keeps_decimals(field.type, joined.field(field.name).type) for field in kind)
    fields = range(kind.num_fields)
    return all(_keeps_decimals(kind.field(i).type, joined.field(i).type) for i in fields)


def _decoded(kind: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the value type of a dictionary if the other type is not a dictionary."""
    is_alone = pa.types.is_dictionary(kind) and not pa.types.is_dictionary(other)
    return kind.value_type if is_alone and not pa.types.is_null(other) else kind


def taken(column: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Take rows of a column. Views are converted, because Arrow cannot take their rows."""
    kind = column.type
    return column.cast(PLAIN.get(kind, kind)).combine_chunks().take(rows).cast(kind)


def conformed(table: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    """Convert a table to a schema. Missing columns are null. `path`: path of the input.

    Raises ColumnError for a value that the schema does not hold.
    """
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
