"""Find texts in the columns of Arrow tables.

A text may be a field of a struct: `meta.body` names the field `body` of the column `meta`. A column
with this name comes first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wordpiece_core._kernel import repair_utf8
from wordpiece_core.errors import ColumnError, InputError, opt
from wordpiece_core.text_types import holds_text

DOCUMENT_STARTS = "document_starts"
"""A column of packed rows."""


@dataclass(frozen=True)
class TextColumns:
    """The columns, or keys, of texts.

    Attributes:
        text: The text.
        group: The group of the text.
        pair: The second text of a pair.
        keeps_texts: True if texts are among the columns that are kept by default.
        has_ids: True if the column `text` has lists of ids, which a decoder turns into texts.
    """

    text: str = "text"
    group: str | None = None
    pair: str | None = None
    keeps_texts: bool = True
    has_ids: bool = False

    @property
    def names(self) -> list[str]:
        """The columns without duplicates."""
        return list(dict.fromkeys(name for name in (self.text, self.pair, self.group) if name))

    @property
    def encoded(self) -> list[str]:
        """The columns that are encoded: the text, and the second text of a pair."""
        return [name for name in (self.text, self.pair) if name]

    def option(self, name: str) -> str:
        """Return the option that names a column."""
        if name == self.text:
            return opt.ids_column if self.has_ids else opt.text_column
        return opt.text_pair_column if name == self.pair else opt.group_column

    def missing(
        self, path: str, name: str, names: Sequence[str], what: str = "column {!r}"
    ) -> ColumnError:
        """Return the error for a file without a column. `names`: the columns of the file."""
        choose = f"(choose with {self.option(name)})"
        if len(names) == 1 and ";" in names[0]:
            choose = "(separated by semicolons? Write it with commas, or tabs as .tsv)"
        return ColumnError(f"{path}: no {what.format(name)}; {it_has(names)} {choose}")

    def check(self, path: str, schema: pa.Schema) -> None:
        """Raise ColumnError unless the schema of a file has all of them, with text."""
        if self.has_ids and DOCUMENT_STARTS in schema.names:
            raise ColumnError(
                f"{path}: has packed rows, in which texts begin and end anywhere; pass the dataset"
                " that they were packed from"
            )
        for name in self.names:
            place = path_of(schema, name)
            if place is None:
                raise self.missing(path, name, schema.names)
            check_once(path, schema.names, place[0])
            kind = schema.field(place[0]).type
            for field in place[1:]:
                kind = kind.field(field).type
            has_ids = self.has_ids and name == self.text
            if has_ids and not _holds_ids(kind):
                raise ColumnError(
                    f"{path}: column {name!r} is {kind}, not lists of ids (choose another with"
                    f" {self.option(name)})"
                )
            if not has_ids and not holds_text(_value_type(kind)):
                raise ColumnError(
                    f"{path}: column {name!r} is {kind}, not text (choose another with"
                    f" {self.option(name)})"
                )


def _holds_ids(kind: pa.DataType) -> bool:
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_a(kind) for is_a in lists) and bool(pa.types.is_integer(kind.value_type))


def it_has(names: Sequence[str]) -> str:
    """Return the columns of a file for messages."""
    listed = ", ".join(repr(name) for name in names[:20]) or "no columns"
    return f"it has {listed}" + (", ..." if len(names) > 20 else "")


def path_of(schema: pa.Schema, name: str) -> list[str] | None:
    """Return the names of a column and of the fields inside it; None if there is no such column.

    >>> path_of(pa.schema([("meta", pa.struct([("body", pa.string())]))]), "meta.body")
    ['meta', 'body']
    """
    fields = {field.name: field for field in schema}
    if name in fields:
        return [name]
    dots = [i for i, character in enumerate(name) if character == "."]
    for dot in reversed(dots):
        field = fields.get(name[:dot])
        if field is not None and pa.types.is_struct(field.type):
            below = path_of(pa.schema(list(field.type)), name[dot + 1 :])
            if below is not None:
                return [field.name, *below]
    return None


def picked(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return a column, or a field of a struct, which is null where the struct is. It must exist."""
    first, *below = path_of(table.schema, name) or [name]
    column = table.column(first)
    return pc.struct_field(column, below) if below else column


def to_read(schema: pa.Schema, kept: Collection[str], texts: TextColumns) -> list[str]:
    """Return the columns, and fields of columns, to read for kept columns and texts, in the order
    of the file."""
    paths = {name: path_of(schema, name) or [name] for name in texts.names}
    whole = {*kept, *(path[0] for path in paths.values() if len(path) == 1)}
    names = []
    for column in schema.names:
        if column in whole:
            names.append(column)
        else:
            names += [name for name, path in paths.items() if path[0] == column]
    return names


def check_once(path: str, names: Sequence[str], *checked: str) -> None:
    """Raise InputError if two columns have one of the checked names."""
    for name in checked:
        if names.count(name) > 1:
            raise InputError(f"{path}: two columns are named {name!r}; rename one")


def check_storable(path: str, schema: pa.Schema, kept: Collection[str]) -> None:
    """Raise InputError for a kept column whose type Parquet lacks."""
    for field in map(schema.field, kept):
        try:
            with pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])):
                pass
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{path}: column {field.name!r} is {field.type}, which Parquet cannot store"
                f" (exclude it with {opt.keep_columns})"
            ) from error


def plain(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text of any accepted type as `string`, or as `binary` if it may not be UTF-8."""
    kind = _value_type(texts.type)
    promised = pa.types.is_null(kind) or "string" in str(kind)
    return texts.cast(kind).cast(pa.string() if promised else pa.binary())


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def text_bytes(texts: pa.Array | pa.ChunkedArray) -> int:
    """Return the bytes of all texts, string or binary."""
    return pc.sum(pc.binary_length(texts)).as_py() or 0


def invalid_utf8(array: pa.Array) -> int:
    """Return the number of invalid UTF-8 sequences in strings, including nested strings."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return invalid_utf8(array.dictionary)
    if pa.types.is_map(kind):
        return invalid_utf8(array.keys) + invalid_utf8(array.items)
    if pa.types.is_struct(kind):
        return sum(map(invalid_utf8, array.flatten()))
    if pa.types.is_nested(kind):
        return invalid_utf8(array.flatten())
    if "string" not in str(kind):
        return 0
    try:
        array.validate(full=True)  # a fast check
    except pa.ArrowInvalid:
        invalid: int = repair_utf8(array)[1]
        return invalid
    return 0
