"""Training a vocabulary from a word table in memory."""

from __future__ import annotations

import os
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wordpiece_core import _kernel
from wordpiece_core.counting import WORDS_KEY, text_of
from wordpiece_core.declared import Form, job, with_options
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.option_types import Place
from wordpiece_core.options import (
    BPE,
    UNIGRAM,
    UNK,
    PreTokenizer,
    SuperwordOptions,
    TextOptions,
    TrainingOptions,
)
from wordpiece_core.summary import Summarized
from wordpiece_core.symbols import BYTES, ROLES, SPACE_MARK, WORD_END
from wordpiece_core.text_parts import BERT, GPT2
from wordpiece_core.tokenizer.bytes_as_text import bytes_of
from wordpiece_core.tokenizer.families import trained_spec
from wordpiece_core.tokenizer.models import Bpe, Unigram, WordPiece
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.training.alphabet import reserved_tokens
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.merging import Merging, split_tokens, splitter
from wordpiece_core.training.rounds import Batch, InMemory, RoundAlgorithm, make_round, with_facts
from wordpiece_core.training.starting import (
    MergingStart,
    algorithm_of,
    start_of,
    start_passes,
)
from wordpiece_core.training.superwords import (
    first_phase,
    joined_log,
    second_phase,
    second_vocabulary,
    split_segments,
)
from wordpiece_core.training.unigram import UnigramTraining

WORDS_AT_ONCE = 1 << 18  # words that are segmented at a time
MERGES, PIECES = "merges.parquet", "pieces.parquet"


WordCounts = Annotated[
    Mapping[str, int] | Iterable[tuple[str, int]] | pa.Table,
    Form("", check=lambda value: value),
]
"""Words with their counts: a mapping, pairs, or a table with the columns `word` and `count`."""


class FewerTokensWarning(UserWarning):
    """The vocabulary has fewer tokens than requested, because no pair was left to merge, or
    because no other substring is frequent enough for Unigram."""


@dataclass(frozen=True, kw_only=True)
class SaveOptions(TextOptions):
    """Arguments of `TrainingResult.save`."""

    directory: Place = field(kw_only=False)
    """Directory to write."""


@dataclass(frozen=True, kw_only=True)
class InMemoryTraining(RoundBudget, SuperwordOptions, TrainingOptions):
    """Arguments of `train`."""

    word_counts: WordCounts = field(kw_only=False)
    """Words with their counts: a table of `count_words`, a mapping, pairs, or another table with
    the columns `word` and `count`."""
    pre_tokenizer: PreTokenizer | None = None
    """Pre-tokenizer that split text into the words. Words of gpt2, llama3 and others include their
    spaces; they train only `model="bpe", word_boundary="bytes"` (default: the pre-tokenizer of the
    table, or bert)."""


@dataclass(frozen=True, repr=False)
class TrainingResult(Summarized):
    """A trained vocabulary.

    Attributes:
        vocab: Tokens in id order.
        merges: The training log, a row per merge: `step` (from 1), `left`, `right`, `token`,
            `score`, and the counts before the merge: `pair_count`, `left_count`, `right_count`. A
            merge whose token is in the vocabulary already adds no token. Empty for Unigram.
        rounds: Number of times that all tokens and pairs were counted.
        marks: How words were marked; see `TrainingOptions.word_marks`.
        pieces: Tokens of Unigram except special tokens and bytes, in id order, with their `score`
            and their expected `count`.
        estimates: For each round of Unigram except the first, the number of `pieces` before some
            were dropped, and the `log_likelihood` of all words, in nats.
        text: Options that split text into the words, if the word table carries them.

    >>> result = train({"hug": 10, "pug": 5}, vocab_size=10, min_pair_count=1)
    >>> result.merges.select(["left", "right", "token", "pair_count"]).to_pylist()
    [{'left': 'h', 'right': '##u', 'token': 'hu', 'pair_count': 10}]
    """

    vocab: list[str]
    merges: pa.Table
    rounds: int = 1
    options: TrainingOptions = field(default_factory=TrainingOptions)
    marks: str | None = None
    pieces: pa.Table | None = None
    estimates: tuple[dict[str, float], ...] = ()
    text: TextOptions | None = None

    def summary(self) -> dict[str, int]:
        """Return the numbers of tokens, merges and rounds."""
        log, table = self.log
        return {
            "vocab_size": len(self.vocab),
            log.removesuffix(".parquet"): len(table),
            "rounds": self.rounds,
        }

    @property
    def log(self) -> tuple[str, pa.Table]:
        """Name and table of the training log."""
        if self.pieces is not None:
            return PIECES, self.pieces
        return MERGES, self.merges

    @with_options(TextOptions)
    def tokenizer(self, text: TextOptions) -> Tokenizer:
        """Return the tokenizer of the vocabulary, for words that these text options split. The
        default is `text` of the result. Without it text is lowercased, unless tokens have capital
        letters or accents, which lowercased text could never match.

        >>> train({"Hug": 9, "Pug": 5}, vocab_size=10).tokenizer().tokenize("Hug")
        ['H', '##ug']
        """
        if self.text is not None and text == TextOptions():
            text = self.text
        elif self.marks == GPT2 and text.pre_tokenizer is None:
            text = replace(text, pre_tokenizer=GPT2)
        elif text.lowercase is None and text.strip_accents is None and self._is_cased():
            text = replace(text, lowercase=False)
        return Tokenizer.from_spec(self.tokenizer_spec(text))

    def _is_cased(self) -> bool:
        """True if lowercasing and removing accents would change a token."""
        reserved = {*reserved_tokens(self.options)}
        tokens = [token for token in self.vocab if token not in reserved]
        if self.options.model == BPE and self.options.word_boundary == BYTES:
            tokens = [bytes_of(token).decode(errors="ignore") for token in tokens]
        joined = " ".join(tokens)
        decomposed = unicodedata.normalize("NFD", joined)
        has_accents = any(unicodedata.category(c) == "Mn" for c in decomposed)
        return has_accents or _kernel.lowercase(joined) != joined

    def tokenizer_spec(self, text: TextOptions) -> TokenizerSpec:
        """Return the specification of the tokenizer, for words that were split by `text`. Raises
        OptionError if `text` cannot give such words."""
        options = self.options
        if options.word_marks(text) != self.marks:
            raise OptionError(
                f"{opt.pre_tokenizer}: {text.pre_tokenizer or BERT}, but the training words"
                f" {'include' if self.marks == GPT2 else 'do not include'} the spaces of the text"
            )
        listed = options.listed_tokens
        roles: dict[str, str] | None = None
        if options.roles or UNK not in listed:
            roles = {role: t for role, t in ROLES.items() if t in listed} | options.roles
        return trained_spec(
            self.vocab,
            self._model(),
            text,
            SPACE_MARK if self.pieces is not None else options.word_boundary,
            special_tokens=listed,
            roles=roles,
            model_max_length=options.model_max_length,
        )

    def _model(self) -> WordPiece | Bpe | Unigram:
        options = self.options
        if self.pieces is not None:
            scores = [0.0] * len(reserved_tokens(options)) + self.pieces["score"].to_pylist()
            return Unigram(scores, options.byte_fallback)
        if options.model == BPE:
            return bpe_of(self)
        return WordPiece(options.prefix, options.max_word_length)

    @with_options(SaveOptions)
    def save(self, options: SaveOptions) -> tuple[str, ...]:
        """Write the tokenizer and the training log, `merges.parquet` (for Unigram
        `pieces.parquet`), and return the paths. For the text options see `tokenizer`.

        >>> import tempfile
        >>> result = train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=12, min_pair_count=1)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     paths = result.save(directory, lowercase=False)
        ...     Tokenizer.load(directory).tokenize("hugs")
        ['hu', '##g', '##s']
        """
        paths = self.tokenizer(**options.select(TextOptions).values()).save(options.directory)
        name, table = self.log
        log = os.path.join(options.directory, name)
        pq.write_table(table, log, compression="zstd")
        return (*paths, log)


def bpe_of(result: TrainingResult) -> Bpe:
    """Return the merges as pairs of ids. A pair that was merged again, because other merges had
    rebuilt its tokens, has the rank of its first merge."""
    ids = {token: i for i, token in enumerate(result.vocab)}
    sides = (result.merges[name].to_pylist() for name in ("left", "right"))
    pairs = dict.fromkeys((ids[left], ids[right]) for left, right in zip(*sides, strict=True))
    options = result.options
    suffix = WORD_END if options.word_boundary == WORD_END else None
    return Bpe(list(pairs), suffix, options.byte_fallback)


@job(InMemoryTraining)
def train(options: InMemoryTraining) -> TrainingResult:
    """Train a vocabulary on words with their counts. Ties between scores go to the first word.

    Raises:
        OptionError: For a wrong option.
        InputError: For a table without words and counts.

    >>> train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=12, min_pair_count=1).vocab[5:]
    ['##g', '##s', '##u', 'h', 'p', 'hu', 'pu']
    >>> train({"hug": 10, "hugs": 5}, model="bpe", vocab_size=14).vocab[5:]
    ['g', 'g</w>', 'h', 's</w>', 'u', 'hu', 'hug</w>', 'hug', 'hugs</w>']

    Superwords are trained on words with the spaces between them, from
    `count_words(..., superwords=True)`:

    >>> from wordpiece_core import count_words
    >>> words = count_words(["a hug", "a hug a pug"], pre_tokenizer="gpt2", superwords=True)
    >>> bpe = {"model": "bpe", "word_boundary": "bytes", "vocab_size": 261}
    >>> train(words, superwords=1, **bpe).vocab[-1]
    'aĠhug'
    """
    training, budget = options.select(TrainingOptions), options.select(RoundBudget)
    text = text_of(options.word_counts)
    if options.superwords:
        result = _with_superwords(options.word_counts, options, training, budget)
    else:
        marks = training.word_marks(_text_of_words(text, options.pre_tokenizer))
        words = word_batch(options.word_counts)
        result = replace(_trained(words, training, budget, marks), text=text)
    fewer = fewer_tokens(len(result.vocab), training)
    if fewer:
        warnings.warn(fewer, FewerTokensWarning, stacklevel=3)
    return result


def _trained(
    words: pa.RecordBatch, training: TrainingOptions, budget: RoundBudget, marks: str | None
) -> TrainingResult:
    """Train a vocabulary on words."""
    parts = partial(parts_of, words)
    (symbols,) = InMemory(parts).run(partial(start_passes, training, marks))["symbols"]
    start = start_of(symbols, training, marks)
    threads = os.cpu_count() or 1
    algorithm = algorithm_of(start, training, budget, words=len(words), threads=threads)
    return training_result(algorithm, _rounds(algorithm, parts))


def _rounds(algorithm: RoundAlgorithm, parts: Callable[[], Iterator[Batch]]) -> int:
    """Run all rounds over words, and return their number."""
    executor = InMemory(parts, algorithm.first_kept)
    rounds, is_over = 0, False
    while not is_over:
        done = make_round(algorithm, executor, lambda merges, tokens: None)
        rounds, is_over = rounds + 1, done.is_last
    return rounds


def _with_superwords(
    counts: WordCounts, superwords: SuperwordOptions, training: TrainingOptions, budget: RoundBudget
) -> TrainingResult:
    """Train words, then superwords (`wordpiece_core.training.superwords`)."""
    shorter, text = first_phase(training, superwords.superwords), text_of(counts, WORDS_KEY)
    if text is None:
        raise OptionError(
            f"{opt.superwords}: the word table has no segments; count it with"
            " count_words(texts, pre_tokenizer=..., superwords=True)"
        )
    segments, marks = word_batch(counts), training.word_marks(text)
    first = _trained(word_batch(split_segments(segments, text)), shorter, budget, marks)
    options, most = second_phase(training), superwords.max_superword_words
    vocabulary = second_vocabulary(first.vocab, bpe_of(first), options, most)
    tokens = split_tokens(splitter(vocabulary, options), segments, 0)
    start = MergingStart(vocabulary, tokens)
    algorithm = algorithm_of(start, options, budget, words=len(segments))
    rounds = _rounds(algorithm, partial(parts_of, segments))
    return with_superwords(first, training_result(algorithm, rounds), training, text_of(counts))


def with_superwords(
    words: TrainingResult,
    superwords: TrainingResult,
    options: TrainingOptions,
    text: TextOptions | None,
) -> TrainingResult:
    """Return the result of both phases.

    Args:
        options: Options of the complete training.
        text: Options that split text into segments.
    """
    log = joined_log(words.merges, superwords.merges)
    rounds = words.rounds + superwords.rounds
    return replace(superwords, merges=log, rounds=rounds, options=options, text=text)


def _text_of_words(text: TextOptions | None, pre_tokenizer: Any) -> TextOptions:
    """Return the options that split the words. Raises OptionError if `pre_tokenizer` differs from
    the pre-tokenizer of the table."""
    if text is None:
        return TextOptions(pre_tokenizer=pre_tokenizer)
    if pre_tokenizer not in (None, text.pre_tokenizer):
        raise OptionError(
            f"{opt.pre_tokenizer}: {pre_tokenizer}, but {text.pre_tokenizer} split the words of the"
            " table; remove the option"
        )
    return text


def parts_of(words: pa.RecordBatch) -> Iterator[Batch]:
    """Yield the words of a table in parts, as passes read them."""
    for start in range(0, max(len(words), 1), WORDS_AT_ONCE):
        yield with_facts(words.slice(start, WORDS_AT_ONCE), first_rank=start)


def training_result(algorithm: RoundAlgorithm, rounds: int) -> TrainingResult:
    """Return the result of a finished training."""
    if isinstance(algorithm, UnigramTraining):
        return _unigram_result(algorithm, rounds)
    assert isinstance(algorithm, Merging)
    return _merging_result(algorithm, rounds)


def _unigram_result(training: UnigramTraining, rounds: int) -> TrainingResult:
    assert training.pieces is not None
    pieces = pa.Table.from_batches([training.pieces]).rename_columns(["token", "score", "count"])
    vocab = [*reserved_tokens(training.options), *pieces["token"].to_pylist()]
    log = tuple(training.estimates)
    more: dict[str, Any] = {"pieces": pieces, "estimates": log}
    return TrainingResult(vocab, pa.table({}), rounds, training.options, **more)


def _merging_result(merging: Merging, rounds: int) -> TrainingResult:
    trainer = merging.trainer
    merges = pa.record_batch(trainer.merges())
    tokens = pa.array(trainer.tokens, pa.string())
    names = ("left", "right", "token")
    columns = {"step": pa.array(range(1, len(merges) + 1), pa.int64())}
    columns |= {name: tokens.take(merges[name]) for name in names}
    columns |= {name: merges[name] for name in merges.schema.names if name not in names}
    table, marks = pa.table(columns), merging.vocabulary.marks
    return TrainingResult(trainer.tokens, table, rounds, merging.options, marks)


def word_batch(words: WordCounts) -> pa.RecordBatch:
    """Return a word table as one batch of `word: string, count: int64`."""
    if isinstance(words, pa.RecordBatch):
        words = pa.Table.from_batches([words])
    if not isinstance(words, pa.Table):
        try:
            rows = list(words.items() if isinstance(words, Mapping) else words)
            if isinstance(words, str) or any(isinstance(row, str) for row in rows):
                raise ValueError("these are texts; pass count_words(texts)")
            columns = [[word for word, _ in rows], [count for _, count in rows]]
            words = pa.table({"word": pa.array(columns[0], pa.string()), "count": columns[1]})
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"word counts: not words with their counts ({error})") from error
    for name in ("word", "count"):
        if name not in words.column_names:
            raise InputError(f"word table: no column {name!r}, only {words.column_names}")
    try:
        count = pc.cast(words["count"], pa.int64())
    except pa.ArrowException as error:
        raise InputError(f"word table: column 'count': {error}") from error
    columns = [words["word"].combine_chunks(), count.combine_chunks()]
    return pa.record_batch(columns, names=["word", "count"])


def fewer_tokens(size: int, options: TrainingOptions) -> str | None:
    """Return the warning if the vocabulary could not be filled, else None."""
    if size == options.vocab_size:
        return None
    is_unigram = options.model == UNIGRAM
    why = "no other substring is frequent enough" if is_unigram else "no pair is left to merge"
    return f"the vocabulary has {size} tokens, not {options.vocab_size}: {why}"
