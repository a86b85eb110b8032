"""The job `report`: gathers the facts of a tokenizer, and writes them as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from pipelines.comparing.compare import load_all, names_of, warnings_on_table
from pipelines.comparing.measuring import measure_all, work_directory
from pipelines.comparing.options import MeasureOptions, tokenizers_of
from pipelines.counting.count import count_job
from pipelines.counting.options import CountOptions
from pipelines.counting.word_table import read_word_table
from pipelines.io import inputs, outputs
from pipelines.io.reader import warnings_of_text
from pipelines.progress import Progress
from pipelines.reporting.facts import GENERATOR, Facts, OnText, Other
from pipelines.reporting.options import ReportOptions
from pipelines.reporting.vocabulary import TrainingLog, read_log, smaller_sizes
from pipelines.reporting.words import notable_words
from pipelines.token_counts import read_counts
from wordpiece_core import Tokenizer, storage
from wordpiece_core.counting import words_in_segments
from wordpiece_core.errors import InputError, OptionError, OutputError, opt
from wordpiece_core.measures import superwords, tokens_by_id
from wordpiece_core.option_types import path, paths
from wordpiece_core.storage import check_writable
from wordpiece_core.summary import Summarized
from wordpiece_core.symbols import BYTES
from wordpiece_core.uri import join, parent

LIBRARIES = ("jinja2", "vl_convert")  # of the extra `report`
HEAD_BYTES = 4096  # of a page, which contain `GENERATOR`
WORDS = "words"


@dataclass(frozen=True, repr=False)
class Report(Summarized):
    """The result of `pipelines.report`. `output`: the page; `bytes`: its size; `facts`: its
    content.

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
        """Return the object that `wordpiece report --json` prints."""
        on_text = self.facts.on_text
        total = on_text.all if on_text else None
        return {
            "output": self.output,
            "bytes": self.bytes,
            "vocab_size": len(self.facts.spec.vocab),
            "words": total.words if total else None,
            "tokens": total.tokens if total else None,
            "tokens_per_word": total.tokens_per_word if total else None,
        }

    def lines(self) -> list[str]:
        """Return the summary that `wordpiece report` prints."""
        lines = [f"vocabulary: {len(self.facts.spec.vocab):,} tokens"]
        total = self.facts.on_text.all if self.facts.on_text else None
        if total is not None and total.words:
            lines.append(f"words: {total.words:,}, tokens per word: {total.tokens_per_word:.3f}")
        return [*lines, f"report: {self.output}, {self.bytes / 1e3:,.0f} kB"]

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""
        return list(self.more_warnings)


def report_job(options: ReportOptions, progress: Progress) -> Report:
    """Write a page about a tokenizer.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    check_libraries()
    output = path(options.output)
    check_output(output, overwrite=options.overwrite)
    checked = options.checked()
    from pipelines.reporting.page import page  # it loads libraries that are not always there

    places = [*tokenizers_of(options.tokenizer), *tokenizers_of(options.compare_with)]
    (tokenizer, *others), more_warnings = load_all(places)
    if tokenizer.spec.library is not None:
        raise InputError(
            f"{places[0]}: the kernel cannot run this tokenizer, and a report needs that;"
            f" use wordpiece compare, or {opt.compare_with}"
        )
    place = places[0] if isinstance(places[0], str) else None
    name, *names = names_of(places)
    facts = Facts(
        name,
        tokenizer.spec,
        TrainingLog() if place is None else read_log(place),
        others=[Other(n, tokens_by_id(of)) for n, of in zip(names, others, strict=True)],
    )
    if options.token_counts is not None:
        counts = read_counts(path(options.token_counts), list(tokenizer.spec.vocab))
        facts = replace(facts, dataset_counts=counts)
    if options.on or options.word_counts:
        facts = replace(facts, text=list(paths(options.on)) or [str(options.word_counts)])
        facts, more = _with_text(facts, [tokenizer, *others], checked, progress)
        more_warnings += more
    data = page(facts)
    outputs.write_bytes(output, data)
    return Report(output, len(data), facts, tuple(dict.fromkeys(more_warnings)))


def check_libraries() -> None:
    """OptionError unless the libraries of the extra `report` are installed."""
    for name in LIBRARIES:
        if find_spec(name) is None:
            raise OptionError(f"a report needs {name}: pip install jinja2 vl-convert-python")


def check_output(place: str, *, overwrite: bool) -> None:
    """OptionError unless a page can be written there; OutputError if it would replace another kind
    of file."""
    check_writable("output", parent(place) or ".")
    entry = storage.info(place)
    if entry is None:
        return
    if entry.kind != "file":
        raise OptionError(
            f"{opt.output}: {place} is a directory; choose a file name, such as report.html"
        )
    with storage.StoredFile(place) as file:
        is_page = GENERATOR.encode() in file.read(HEAD_BYTES)
    if not is_page and not overwrite:
        raise OutputError(
            f"{place}: the file was not written by wordpiece report; set {opt.overwrite}, or"
            " choose another file"
        )


def _with_text(
    facts: Facts,
    tokenizers: Sequence[Tokenizer],
    options: ReportOptions,
    progress: Progress,
) -> tuple[Facts, list[str]]:
    """Return the facts, including facts about the text, and warnings. `tokenizers`: begins with the
    tokenizer of the report."""
    measuring, number = options.select(MeasureOptions), len(tokenizers)
    smaller = smaller_sizes(facts.spec, facts.log)
    measured_ones = [*tokenizers, *map(Tokenizer.from_spec, smaller.values())]
    how: Any = {"beam_args": options.beam_args, "progress": progress}
    with work_directory(options.work_dir, options.beam_args) as directory:
        if options.word_counts:
            table = read_word_table(path(options.word_counts))
            measured = measure_all(measured_ones, table, measuring, **how)
            names = [facts.name, *(other.name for other in facts.others)]
            found = [
                text
                for name, tokenizer in zip(names, tokenizers, strict=True)
                for text in warnings_on_table(table, name, tokenizer)
            ]
        else:
            own = [path(options.output)]
            files = inputs.resolve(paths(options.on), own, quoting=not options.no_quoting)
            measured = measure_all(measured_ones, files, measuring, **how)
            found = list(warnings_of_text(measured.replaced))
            text = facts.spec.text
            if facts.spec.word_boundary == BYTES and superwords(facts.spec):
                text = words_in_segments(text)
            counted = CountOptions(
                inputs=options.on,
                output=join(directory, WORDS),
                text_column=options.text_column,
                no_quoting=options.no_quoting,
                worker_memory=options.worker_memory,
                beam_args=options.beam_args,
                limits=options.limits,
                **text.values(),
            )
            table = count_job(counted, progress, own=own)
        words = notable_words(table, tokenizers, directory, **how)
    first, *more = (
        OnText({group: m for (n, group), m in measured.groups.items() if n == i})
        for i in range(len(measured_ones))
    )
    by_size = dict(zip(smaller, more[number - 1 :], strict=True))
    if smaller:
        by_size[len(facts.spec.vocab)] = first
    return replace(
        facts,
        on_text=first,
        at_sizes=by_size,
        words=words,
        others=[replace(o, on_text=of) for o, of in zip(facts.others, more, strict=False)],
    ), found
