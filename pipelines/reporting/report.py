"""The job `report`: gathers the facts of a tokenizer, and writes them as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from pipelines.comparing.compare import load_all, warnings_on_table
from pipelines.comparing.measuring import Measured, measure_table, measure_texts, work_directory
from pipelines.comparing.tokenizers import names_of
from pipelines.counting.count import count
from pipelines.counting.options import CountCall, CountOptions
from pipelines.counting.word_table import WordTable, read_word_table
from pipelines.files import inputs, outputs, storage
from pipelines.files.filesystems import join, parent
from pipelines.files.input_batches import warnings_of_text
from pipelines.files.owned import OwnedDirectory
from pipelines.files.places import check_writable
from pipelines.reporting.cuts import Cuts, Rare
from pipelines.reporting.facts import GENERATOR, Facts, OnText, Other
from pipelines.reporting.options import ReportCall
from pipelines.reporting.vocabulary import TrainingLog, at_sizes, read_log, with_vocabulary
from pipelines.reporting.words import cuts_of
from pipelines.running.checks import checked_call
from pipelines.running.progress import Progress
from wordpiece_core import Tokenizer
from wordpiece_core.declaration import named
from wordpiece_core.errors import InputError, OptionError, OutputError, WordpieceError
from wordpiece_core.measures import AnyTokenizer, tokens_of

LIBRARIES = ("jinja2", "vl_convert")  # of the extra `report`
HEAD_BYTES = 4096  # of a page; in them it says what made it
WORDS = "words"


@dataclass(frozen=True)
class Report:
    """What came of a report. `output`: the page; `bytes`: its size; `facts`: what it shows.

    >>> import pipelines
    >>> trained = pipelines.train("corpus/", output="tokenizer", vocab_size=14, quiet=True)
    >>> done = pipelines.report("tokenizer", on="corpus/", output="report.html", quiet=True)
    >>> sorted(done.facts.at_sizes), done.facts.at_sizes[12].all.tokens
    ([11, 12, 14], 22)
    """

    output: str
    bytes: int
    facts: Facts
    more_warnings: Sequence[str] = ()

    def summary(self) -> dict[str, Any]:
        """What `wordpiece report --json` prints."""
        on_text = self.facts.on_text
        whole = on_text.all if on_text else None
        return {
            "output": self.output,
            "bytes": self.bytes,
            "vocab_size": len(self.facts.spec.vocab),
            "words": whole.words if whole else None,
            "tokens": whole.tokens if whole else None,
            "tokens_per_word": whole.tokens_per_word if whole else None,
        }

    def warnings(self) -> list[str]:
        """What should be looked at, one sentence each."""
        return list(self.more_warnings)


def report(call: ReportCall, *, beam_args: Sequence[str] = (), progress: Progress) -> Report:
    """Writes a page about a tokenizer.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    check_libraries()
    check_output(call.output, overwrite=call.overwrite)
    checked = checked_call(call, beam_args)
    from pipelines.reporting.page import page  # it loads libraries that are not always there

    (tokenizer, *others), more_warnings = load_all([call.tokenizer, *call.compare_with])
    if not isinstance(tokenizer, Tokenizer):
        raise InputError(
            f"{call.tokenizer}: of a kind that only the library tokenizers runs; give it by"
            f" {named('compare_with')}, or to wordpiece compare"
        )
    place = call.tokenizer if isinstance(call.tokenizer, str) else None
    name, *names = names_of([call.tokenizer, *call.compare_with])
    facts = Facts(
        name,
        tokenizer.spec,
        TrainingLog() if place is None else read_log(place),
        others=[Other(n, tokens_by_id(of)) for n, of in zip(names, others, strict=True)],
    )
    if call.on or call.word_counts:
        run = ReportRun(checked, tokenizer, others, beam_args, progress)
        facts, more = run.on_text(replace(facts, text=list(call.on) or [str(call.word_counts)]))
        more_warnings += more
    data = page(facts)
    outputs.write_bytes(call.output, data)
    return Report(call.output, len(data), facts, tuple(dict.fromkeys(more_warnings)))


def check_libraries() -> None:
    """OptionError unless the libraries are there that pages are made with."""
    for name in LIBRARIES:
        if find_spec(name) is None:
            raise OptionError(f"a report needs the library {name}; install wordpiece-beam[report]")


def check_output(path: str, *, overwrite: bool) -> None:
    """OptionError unless a page can be written there; OutputError if that would replace something
    else than a page."""
    check_writable(named("output"), parent(path) or ".")
    entry = storage.info(path)
    if entry is None:
        return
    if entry.kind != "file":
        raise OptionError(
            f"{named('output')}: {path} is a directory; give a file, such as report.html"
        )
    with storage.StoredFile(path) as file:
        is_page = GENERATOR.encode() in file.read(HEAD_BYTES)
    if not is_page and not overwrite:
        raise OutputError(
            f"{path}: not a page of this command; give {named('overwrite')}, or another file"
        )


def tokens_by_id(tokenizer: AnyTokenizer) -> dict[int, str]:
    """The tokens of a tokenizer as WordPiece writes them, in the order of their ids."""
    tokens = tokens_of(tokenizer)
    ids = range(len(tokens)) if isinstance(tokenizer, Tokenizer) else tokenizer.ids.values()
    return dict(sorted(zip(ids, tokens, strict=True)))


@dataclass(frozen=True)
class ReportRun:
    """What a text comes to. `tokenizer`: the one that is shown."""

    call: ReportCall
    tokenizer: Tokenizer
    others: Sequence[AnyTokenizer]
    beam_args: Sequence[str]
    progress: Progress

    def on_text(self, facts: Facts) -> tuple[Facts, list[str]]:
        """The facts with those of the text, and what should be looked at."""
        vocabularies = at_sizes(facts.spec, facts.log)[:-1]  # the last is all of it
        smaller = [Tokenizer.of(with_vocabulary(facts.spec, vocab)) for vocab in vocabularies]
        tokenizers = [self.tokenizer, *self.others, *smaller]
        with _work_directory(self.call.measuring.work_dir, self.beam_args) as directory:
            if self.call.word_counts:
                table = read_word_table(self.call.word_counts)
                measured = self._measured(tokenizers, table)
            else:
                measured = self._measured(tokenizers, None)
                table = self._count(join(directory, WORDS))
            cuts, rare = self._cuts(table, directory)
        on_texts = [_on_text(measured, number) for number in range(len(tokenizers))]
        first, others, sizes = on_texts[0], on_texts[1:], on_texts[1 + len(self.others) :]
        by_size = {len(v): of for v, of in zip(vocabularies, sizes, strict=True)}
        if facts.log.merges is not None:
            by_size[len(facts.spec.vocab)] = first
        known = zip(facts.others, others[: len(self.others)], strict=True)
        facts = replace(
            facts,
            on_text=first,
            at_sizes=by_size,
            cuts=cuts,
            rare_count=rare.most_count,
            others=[replace(other, on_text=of) for other, of in known],
        )
        return facts, list(self._warnings(facts, table, measured))

    def _measured(self, tokenizers: Sequence[AnyTokenizer], table: WordTable | None) -> Measured:
        options, how = self.call.measuring, {"beam_args": self.beam_args, "progress": self.progress}
        if table is not None:
            return measure_table(tokenizers, table, options, **how)  # type: ignore[arg-type]
        files = inputs.resolve(self.call.on, [self.call.output])
        return measure_texts(tokenizers, files, options, **how)  # type: ignore[arg-type]

    def _count(self, output: str) -> WordTable:
        """The words of the texts, as the tokenizer cuts them before it looks for tokens."""
        options = self.call.measuring
        counting = CountOptions(
            text_column=options.text_column,
            worker_memory=options.worker_memory,
            text=self.tokenizer.spec.text,
        )
        call = CountCall(inputs=self.call.on, output=output, counting=counting)
        own = [self.call.output]
        return count(call, own=own, beam_args=self.beam_args, progress=self.progress)

    def _cuts(self, table: WordTable, directory: str) -> tuple[Cuts, Rare]:
        tokenizers = [self.tokenizer, *self.others]
        how = {"beam_args": self.beam_args, "progress": self.progress}
        return cuts_of(table, tokenizers, directory, **how)  # type: ignore[arg-type]

    def _warnings(self, facts: Facts, table: WordTable, measured: Measured) -> Iterator[str]:
        if not self.call.word_counts:
            yield from warnings_of_text(measured.read["replaced"])
            return
        names = [facts.name, *(other.name for other in facts.others)]
        for name, tokenizer in zip(names, [self.tokenizer, *self.others], strict=True):
            yield from warnings_on_table(table, name, tokenizer)


def _on_text(measured: Measured, number: int) -> OnText:
    return OnText({group: m for (n, group), m in measured.groups.items() if n == number})


@contextmanager
def _work_directory(work_dir: str | None, beam_args: Sequence[str]) -> Iterator[str]:
    """A directory for the words of the texts, and for what workers find. It is deleted in the
    end."""
    with work_directory(work_dir, beam_args) as place:
        owned = OwnedDirectory(join(place, "report"), "report", ".*")
        owned.claim()
        try:
            yield owned.path
        finally:
            with suppress(WordpieceError):  # whatever happened before is the error to see
                owned.delete()
