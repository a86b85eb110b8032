"""The plan of `encode`: the shards to encode, and the schema of all shards.

The driver opens each input that has no finished shard, and reads its columns: the footer of
Parquet, the first row of CSV, all rows of JSON lines whose keys are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from pipelines.encoding.columns import added_schema, columns_digest, stored_schema, text_columns
from pipelines.encoding.dataset import Contents
from pipelines.encoding.options import SKIP, ShardOptions
from pipelines.encoding.shards import (
    CHANGED,
    COLUMN,
    BadInput,
    ShardError,
    ShardRecord,
    ShardResult,
    ShardsError,
    is_of,
    shard_error,
    shard_schema,
    source_of,
)
from pipelines.io import inputs
from pipelines.io.inputs import InputFile
from pipelines.io.schemas import joined_schema
from wordpiece_core import Tokenizer
from wordpiece_core.errors import ColumnError, InputError, OptionError
from wordpiece_core.storage import in_parallel
from wordpiece_core.uri import is_uri, join


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """A shard to encode.

    Attributes:
        name: Name of the shard, relative to the dataset.
        bytes: Approximate bytes of the text.
        schema: Number of the schema of the kept columns of the input.
    """

    file: InputFile
    name: str
    bytes: int
    schema: int = 0

    @property
    def input_bytes(self) -> int:
        """Bytes of input: compressed bytes of a compressed file."""
        return self.file.size if self.file.compression else self.bytes


@dataclass(frozen=True)
class EncodePlan:
    """The plan of a run.

    Attributes:
        names: Names of the shards by the path of their input.
        files: Inputs by the name of their shard.
        contents: Contents of the dataset before the run.
        finished: Shards that are kept.
        to_encode: Shards to encode, the largest first.
        bad: Inputs that cannot be read.
        schemas: Distinct schemas of the inputs to encode.
        schema: Schema of the kept columns of all shards; None if there is none to encode.
    """

    names: Mapping[str, str]
    files: Mapping[str, InputFile]
    contents: Contents
    finished: Mapping[str, ShardResult]
    to_encode: Sequence[PlannedShard] = ()
    bad: Sequence[BadInput] = ()
    schemas: Sequence[pa.Schema] = field(default_factory=list)
    schema: pa.Schema | None = None

    @property
    def is_done(self) -> bool:
        """True if there is nothing to encode and to commit."""
        return self.contents.is_committed and not self.to_encode and not self.bad

    @property
    def kept(self) -> int:
        """Number of the inputs whose shards are kept."""
        return sum(name in self.finished for name in self.files)

    def bad_inputs(self, errors: Sequence[ShardError], on_error: str) -> list[BadInput]:
        """Return the inputs that cannot be encoded: those known before, and these errors.

        Raises ShardsError unless all of them are skipped. Nothing is skipped if files have changed,
        or if the options fit no file.
        """
        bad = [*self.bad, *(BadInput(self.files[error.name], error) for error in errors)]
        bad.sort(key=lambda each: each.error.name)
        causes = [each.error.cause for each in bad]
        is_fault_of_files = CHANGED not in causes and causes != [COLUMN] * len(self.files)
        if bad and not (on_error == SKIP and is_fault_of_files):
            raise ShardsError(bad, len(self.files))
        return bad

    def contents_after(
        self, results: Mapping[str, ShardResult], bad: Sequence[BadInput]
    ) -> Contents:
        """Return the contents of the dataset after the run. `results`: the new shards by name."""
        shards, before = {**self.finished, **results}, self.contents
        skipped = {n: e for n, e in before.errors.items() if n not in self.files | shards.keys()}
        contents = before.after(shards, skipped | {each.error.name: each.error for each in bad})
        roots = {name: file.root for name, file in self.files.items()}
        return replace(contents, roots={**before.roots, **roots})


def plan_shards(
    path: str,
    contents: Contents,
    files: Sequence[InputFile],
    options: ShardOptions,
    tokenizer: Tokenizer,
    *,
    own_schemas: bool = False,
) -> EncodePlan:
    """Plan the shards of these inputs.

    Args:
        path: Path of the dataset.
        contents: Contents of the dataset.
        own_schemas: True if each shard has the schema of its input, because it is resharded.

    Raises:
        OptionError: If a shard would replace another file.
        ColumnError: If no schema holds the columns of two inputs.
    """
    names = inputs.output_names(files)
    _check_files(path, files, names, contents)
    by_name = {names[file.path]: file for file in files}
    finished = {
        name: result
        for name, result in contents.finished.items()
        if (name in contents.listed and name not in by_name)
        or (name in by_name and is_of(result, by_name[name]))
    }
    plan = EncodePlan(names, by_name, contents, finished)
    waiting = [file for file in files if names[file.path] not in finished]
    if not waiting:
        return plan
    plan = _with_inputs(plan, waiting, options)
    if own_schemas or not plan.to_encode:
        inputs_in_order = sorted(plan.to_encode, key=lambda shard: shard.name)
        joined_schema([(s.file.path, plan.schemas[s.schema]) for s in inputs_in_order])
        return plan
    return _with_one_schema(plan, path, options, tokenizer)


def _with_inputs(
    plan: EncodePlan, waiting: Sequence[InputFile], options: ShardOptions
) -> EncodePlan:
    """Open inputs, and add them to the shards to encode, or to the bad inputs."""

    def opened(file: InputFile) -> tuple[pa.Schema, int] | ShardError:
        try:
            return inputs.describe(file, text_columns(options), options.kept, options.limits)
        except InputError as error:
            return shard_error(file, plan.names[file.path], error)

    schemas: list[pa.Schema] = []
    known: dict[bytes, int] = {}
    to_encode, bad = [], []
    small = [file for file in waiting if file.is_small and not is_uri(file.path)]
    large = [file for file in waiting if not file.is_small or is_uri(file.path)]
    # Threads would wait for each other's Python code while they open small local files.
    described = [*in_parallel(opened, large), *map(opened, small)]
    results = dict(zip([*large, *small], described, strict=True))
    for file in waiting:
        found = results[file]
        if isinstance(found, ShardError):
            bad.append(BadInput(file, found))
            continue
        schema, size = found
        number = known.setdefault(schema.serialize().to_pybytes(), len(schemas))
        if number == len(schemas):
            schemas.append(schema)
        to_encode.append(PlannedShard(file, plan.names[file.path], size, number))
    to_encode.sort(key=lambda shard: -shard.file.size)
    return replace(plan, to_encode=to_encode, bad=[*plan.bad, *bad], schemas=schemas)


def _with_one_schema(
    plan: EncodePlan, path: str, options: ShardOptions, tokenizer: Tokenizer
) -> EncodePlan:
    """Decide the schema of all shards. Finished shards that do not have it are encoded again."""
    finished = plan.finished
    found: list[tuple[str, pa.Schema]] = []
    digest = ""
    if finished:
        name = min(finished, key=lambda name: (name not in plan.contents.listed, name))
        digest, added = finished[name].columns, {*added_schema(tokenizer, options).names}
        stored = shard_schema(join(path, name))
        kept = pa.schema([field for field in stored if field.name not in added])
        same = (schema for schema in plan.schemas if stored_schema(schema).equals(kept))
        found.append((plan.contents.source(name), next(same, kept)))
    for shard in sorted(plan.to_encode, key=lambda shard: shard.name):
        found.append((shard.file.path, plan.schemas[shard.schema]))
    first = found[0][1]
    is_same = all(schema.equals(first, check_metadata=True) for _, schema in found)
    schema = first if is_same else stored_schema(joined_schema(found))
    if not (finished and schema.equals(first)):
        digest = columns_digest(pa.schema([*schema, *added_schema(tokenizer, options)]))
    others = [name for name, result in finished.items() if result.columns != digest]
    for name in others:
        if name not in plan.files:
            raise ColumnError(
                f"{plan.contents.source(name)}: its shard has other columns than the current"
                " inputs; also pass this input again"
            )
    kept_shards = {name: result for name, result in finished.items() if name not in others}
    plan = replace(plan, finished=kept_shards, schema=schema)
    if not others:
        return plan
    more = _with_inputs(plan, [plan.files[name] for name in others], options)
    offset = len(plan.schemas)
    again = [replace(shard, schema=shard.schema + offset) for shard in more.to_encode]
    to_encode = sorted([*plan.to_encode, *again], key=lambda shard: -shard.file.size)
    return replace(more, to_encode=to_encode, schemas=[*plan.schemas, *more.schemas])


def _check_files(
    path: str, files: Sequence[InputFile], names: Mapping[str, str], contents: Contents
) -> None:
    """Raise OptionError if a shard would replace a shard of another input, or another file, or if
    an input would get a second shard. Raise InputError if a shard was changed whose input is not
    given."""
    records: dict[str, ShardRecord] = {**contents.errors, **contents.results}
    shards = {contents.source(name): name for name in records}
    for file in files:
        name = names[file.path]
        holds = _in_the_way(file, name, records.get(name), contents)
        if shards.get(file.path, name) != name:
            holds = f"a shard {shards[file.path]} of it"
        if holds:
            raise OptionError(f"{file.path}: {path} contains {holds}; choose another directory")
    for name in sorted(contents.changed - {*names.values()}):
        place, source = join(path, name), contents.source(name)
        raise InputError(f"{place}: was modified; delete it, or pass {source} again")


def _in_the_way(
    file: InputFile, name: str, record: ShardRecord | None, contents: Contents
) -> str | None:
    """Describe a file with the name of the shard that was not made from this input. A changed input
    is recognized by its directory; a moved one by its size and modification time."""
    if record is None:
        return f"{name}, which is no shard of this job" if name in contents.sizes else None
    if name not in contents.listed and name not in contents.errors:
        return None  # a killed run has written it
    is_moved = record.source == source_of(file)
    is_changed = contents.roots.get(name) == file.root
    if record.input == file.name and (is_moved or is_changed):
        return None
    return f"a shard {name} of {contents.source(name)}"
