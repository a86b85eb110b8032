"""The Rust kernel.

Arrays are passed through the Arrow PyCapsule interface: arguments are any objects with
`__arrow_c_array__`, and `pyarrow.array(x)` or `pyarrow.record_batch(x)` converts results. Arrays
are checked before they are used. Errors have one line:

- InputError for data: an array that breaks Arrow's rules, a table without a column, sums of counts
  above 2^63 - 1;
- OptionError for an argument;
- TypeError for an argument that is not Arrow data, or has another type;
- RuntimeError for a bug in the kernel, with its place in the source.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

FRACTION_BITS: int

class ArrowArray(Protocol):
    def __len__(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...

# Values by the names of options. `text`: what `wordpiece_core.TextOptions.for_kernel` gives; with
# `rules: Composed` text becomes words by these, in place of the other options.
Options = Mapping[str, Any]

class WordCounter:
    """Counter of words in a hash table, separately for each group. It is full when it has
    `most_bytes`."""

    rows: int
    nulls: int
    bytes: int
    replaced: int  # invalid UTF-8 sequences
    def __init__(
        self, text: Options, *, most_bytes: int = ..., split_at: Sequence[Options] = ...
    ) -> None:
        """`split_at`: the tokens that texts are split at, with their flags as in `AddedToken`."""

    @staticmethod
    def of_chunks(*, most_bytes: int = ...) -> WordCounter:
        """Counts chunks: what is between white space, unchanged. U+000B, U+000C and U+0085 do not
        split, as BERT's normalizer removes them."""

    @property
    def memory(self) -> int:
        """Bytes that counting on and `take` may need."""

    @property
    def is_full(self) -> bool: ...
    def count(self, texts: ArrowArray, groups: ArrowArray | None = None) -> int:
        """Counts texts from the first on until the table is full; returns how many, one at least.
        `groups`: the group of each text."""

    def add(self, words: ArrowArray) -> None:
        """Add words with their counts, unchanged."""

    def take(self, partitions: int) -> list[tuple[int, str | None, int, ArrowArray]]:
        """Empty the table. Returns the partition, the group, the sum of the counts, and the batch
        of `word`, `count`, ordered by word."""

def join_word_tables(batches: Sequence[ArrowArray]) -> ArrowArray:
    """The rows of tables without common words; each is ordered by count (descending), then word,
    and so is the result."""

def merge_sorted_words(batches: Sequence[ArrowArray]) -> ArrowArray:
    """Sums equal words; the batches are ordered by word, and so is the result."""

def weigh_sorted_words(
    batches: Sequence[ArrowArray], weights: Sequence[int], *, min_count: int
) -> ArrowArray:
    """Sums equal words, each count times the weight of its batch, in units of 2^-32; rounded once
    to the nearest, halves up, 1 at least for a word that occurs. Batches are ordered by word; the
    result by count (descending), then word, without those below `min_count`."""

def draw_words(words: ArrowArray, every: int) -> ArrowArray:
    """The rows whose word is one of about every `every` that are drawn, by the word alone."""

def partition_words(words: ArrowArray, partitions: int) -> list[tuple[int, ArrowArray]]:
    """The words by partition, as `WordCounter.take` divides them, in their order."""

def merges_of_ranks(
    tokens: Sequence[bytes], ranks: Sequence[int], *, by_character: bool = False
) -> list[tuple[int, int]]:
    """Return the merges, as pairs of ids, that build tokens with known ranks, for example of
    tiktoken. `tokens`: by id; empty for an id without a token. `ranks`: by id. `by_character`: True
    if tokens start as characters, as in sentencepiece, not as bytes."""

def lowercase(text: str) -> str:
    """The text with each character in lowercase, by the same Unicode tables as everywhere."""

def string_array(texts: Sequence[str | None]) -> ArrowArray: ...
def repair_utf8(array: ArrowArray) -> tuple[ArrowArray, int]: ...
def split_lines(block: bytes | memoryview) -> tuple[ArrowArray, int]: ...

class CsvRows:
    """Finds where the rows of a CSV file end, which comes in blocks of any size."""

    def __init__(self, delimiter: str, *, quoting: bool = True) -> None: ...
    @property
    def rows(self) -> int:
        """Number of finished rows, including the first one, without blank lines."""

    def scan(self, block: bytes) -> int:
        """Return the end of the last complete row in the next block; 0 if there is none. Raises
        InputError for a quoted field that does not end before a delimiter or a line end."""

    def finish(self) -> None:
        """InputError if a quoted field has no end."""

def hash_texts(texts: ArrowArray, key: bytes) -> ArrowArray:
    """For each row of an array of strings or bytes, `int.from_bytes(hashlib.blake2b(row, key=key,
    digest_size=8).digest(), "little")`, as uint64. A null hashes as the empty string."""

def hash_numbers(first: int, rows: int, key: bytes) -> ArrowArray:
    """As `hash_texts`, for `rows` numbers from `first` on, each as 8 bytes, the lowest first."""

def encrypted_columns(tail: bytes) -> list[str]:
    """Return the paths (`a.b`) of the encrypted columns of a Parquet file, in order. `tail`: the
    end of the file, including its footer. Raises InputError for an encrypted or damaged footer.
    pyarrow aborts the process when `row_group(i).column(j)` or `to_dict` reads the chunk of such a
    column."""

def pre_tokenize(texts: ArrowArray, text: Options) -> ArrowArray:
    """Return the words of texts as `list<string>`."""

class Composed:
    """The normalizer and the pre-tokenizer of a `tokenizer.json`. InputError for a part that is not
    known. `of_bytes`: the model takes words as bytes."""

    def __init__(
        self, normalizer: str | None, pre_tokenizer: str | None, *, of_bytes: bool
    ) -> None: ...
    @staticmethod
    def gpt2(add_prefix_space: bool) -> Composed:
        """Return GPT-2's parts. `add_prefix_space`: put a space before a text, and after each added
        token, if there is none."""

    def normalized(self, token: str) -> str:
        """Return an added token in the form that is searched for in normalized texts."""

class Bpe:
    """Byte-pair encoding: pairs of ids by rank, as two arrays of uint32. The encoder checks them:
    InputError for an id beyond the vocabulary, for a duplicate pair, and for a pair that does not
    build a token. See `wordpiece_core.tokenizer.models.Bpe`."""

    def __init__(
        self,
        left: ArrowArray,
        right: ArrowArray,
        *,
        word_boundary: str | None,
        byte_fallback: bool,
        fuse_unk: bool,
        ignore_merges: bool,
        tied: Sequence[int],
    ) -> None: ...

class Unigram:
    """A unigram language model with `scores` by id, of float64. The encoder checks them: InputError
    for a score that is not finite, for another number of scores than tokens, and for
    `of_sentencepiece` with `byte_fallback` and a byte without a token. See
    `wordpiece_core.tokenizer.models.Unigram`."""

    def __init__(
        self,
        scores: ArrowArray,
        *,
        byte_fallback: bool,
        of_sentencepiece: bool,
        user_defined: Sequence[int],
    ) -> None: ...

class Encoder:
    """Tokenizes texts by a vocabulary. The options: `unk_token: str | None`, None if there is none,
    which only Bpe allows: what is unknown vanishes; `continuing_prefix`, `max_word_length` and
    `unk_scope`, of WordPiece; `added_tokens: Sequence[Options]`, the tokens that are found in texts
    before anything else, each with `content` and the flags of `tokenizers`: `lstrip`, `rstrip`,
    `single_word`, `normalized`; and `hidden: Sequence[str]`, the tokens that no word becomes, but
    for `unk_token` where a word is unknown. These may be left out: `model: Bpe | Unigram | None`,
    None for WordPiece; `pad_id: int | None`, what rows are padded with; and `trim_offsets:
    Sequence[bool]`, the `add_prefix_space` of each post-processor of `tokenizers` that trims
    offsets."""

    def __init__(self, vocab: Sequence[str], text: Options, options: Options) -> None: ...
    def encode(
        self,
        texts: ArrowArray,
        pairs: ArrowArray | None,
        options: Options,
        *,
        pages: IdPages | None = None,
        least_ids: int = 0,
    ) -> tuple[list[ArrowArray], Pages | None, dict[str, int]]:
        """Encode texts with the options of `EncodingOptions`, a number of `threads`, and `layouts:
        Sequence[Options]` of rows of one text and of two: the ids of the tokens `before`, `between`
        and `after` texts, each with its token type; the `types` of both texts, and the
        `overflow_types` of rows that do not show a text from its beginning. Record
        batches of `input_ids`, the columns and, with a stride, `source_rows: int64`; and the counts
        of `EncodedTable`, by name. With `pages`, `least_ids` ids and more
        become pages, and there is no batch; OptionError with columns, a stride, or more than one
        thread."""

class Measurer:
    """Accumulator of the measures of a vocabulary on text, which comes as rows of a word table.
    `unk_id`: id of the unknown token, if there is one. `wordpiece_core.measures.Measures` describes
    the sums; one above 2^63 - 1 is an InputError."""

    def __init__(self, *, vocab_size: int, unk_id: int | None) -> None: ...
    def add(self, words: ArrowArray, encoder: Encoder) -> None:
        """Adds words, tokenized by an encoder of this vocabulary."""

    def add_tokens(
        self,
        words: ArrowArray,
        counts: ArrowArray,
        ids: ArrowArray,
        offsets: ArrowArray,
        before: int,
    ) -> None:
        """Add words with the tokens of another tokenizer, which splits each word after `before`
        characters and a space. All arrays are of uint32: the number of tokens of each word; of all
        tokens, the ids, and two offsets each. InputError for an id that is not below
        `vocab_size`."""

    def take(self) -> tuple[list[int], ArrowArray]:
        """Return the sums in the order of the fields of `Measures`, and the batch of `token:
        uint32`, `count: int64` of used tokens, and start new sums."""

class Packer:
    """Packer of documents into rows of `length` ids: [CLS] body [SEP], with one [SEP] between
    documents. Without a `cls_id` a row is a body, and each [SEP] is kept; without a `sep_id`
    documents follow each other, and `own` ids at the start and the end of each are special tokens.
    With a `window` of ids, documents stay complete and are packed by best fit.
    Returns batches of `input_ids`, `columns`, `document_starts: list<int32>`, `document_rows:
    list<int64>`."""

    def __init__(
        self,
        *,
        window: int | None,
        length: int,
        cls_id: int | None,
        sep_id: int | None,
        own: Sequence[int],
        pad_id: int | None,
        vocab_size: int,
        id_type: str,
        columns: Sequence[str],
    ) -> None: ...
    @property
    def dropped(self) -> int:
        """Ids of documents in sequences that were not full at the end."""

    @property
    def padding(self) -> int:
        """Ids of all sequences so far that are padding."""

    def add(self, ids: ArrowArray, first_row: int) -> ArrowArray:
        """The sequences that are full, after more documents: lists of `id_type`."""

    def finish(self) -> ArrowArray:
        """The last sequence, padded; without a `pad_id` none. With a `window`, the sequences of all
        documents in it."""

class Pages:
    """Compressed data pages of ids. `rows`: number of lists; `nulls`: number of null lists; `ids`:
    number of ids."""

    rows: int
    nulls: int
    ids: int

class IdPages:
    """Makes Parquet's data pages of lists of ids below `tokens`: indices of 16 bits into a
    dictionary of the whole vocabulary, or, beyond 65,536 tokens, plain. `compression`: "zstd",
    "lz4", "snappy" or "none"."""

    def __init__(self, *, tokens: int, compression: str) -> None: ...
    def pages(self, lists: Sequence[ArrowArray]) -> Pages:
        """The pages of arrays of lists of int32 or uint16, one array after the other. InputError
        for an id that is null or not below `tokens`."""

class Chunks:
    """Column chunks of a row group, unchanged. `names`: the complete columns."""

    rows: int
    names: list[str]

class ChunkSource:
    """A Parquet file whose column chunks may be copied. `footer`: its metadata from
    `pyarrow.parquet.FileMetaData.write_metadata_file`; `wanted`: a Parquet file that stores its
    columns like the new file; `compression`: name of the compression in the options of `encode`.
    Raises InputError if the metadata cannot be read."""

    def __init__(self, footer: bytes, wanted: bytes, *, compression: str) -> None: ...
    def ranges(self, group: int) -> list[tuple[int, int]]:
        """Offset and length of the chunks of a row group that can be copied."""

    def chunks(self, group: int, data: Sequence[bytes]) -> Chunks:
        """These chunks, from their bytes; without columns whose pages do not add up to them."""

class ShardFile:
    """A Parquet file put together from row groups. `empty`: a Parquet file without rows, whose
    schema and metadata the file has; `ids`: the name of the column of ids; `maker`: what makes
    their pages."""

    def __init__(self, empty: bytes, ids: str, maker: IdPages | None) -> None: ...
    def add_row_group(
        self, others: bytes | None, copied: Chunks | None, pages: Sequence[Pages]
    ) -> bytes:
        """Adds a row group: `others` is a Parquet file of one row group with the columns that are
        neither `copied` nor, if there are pages, the ids. Returns the bytes up to its end that were
        not returned before. InputError if columns or rows are not as they must be."""

    def finish(self, metadata: Sequence[tuple[str, str]]) -> bytes:
        """End the file, and return the bytes that were not returned before. `metadata`: keys and
        values to add to the footer."""

def symbol_counts(
    words: ArrowArray,
    *,
    first_rank: int,
    min_word_count: int,
    max_word_length: int,
    word_marks: str | None = None,
) -> ArrowArray:
    """`character`, `marked`, `count`, `first_rank`, `first_offset` of part of a word table.
    `word_marks`: see `TrainingOptions.word_marks`."""

class LongestMatch:
    """Tokenizes the words of a table by greedy longest match of `tokens` that are not `dropped`."""

    def __init__(
        self,
        tokens: Sequence[str],
        dropped: Sequence[int] = (),
        *,
        continuing_prefix: str,
        min_word_count: int,
        max_word_length: int,
    ) -> None: ...
    def missing_symbols(self, words: ArrowArray, first_rank: int) -> tuple[ArrowArray, int]:
        """The symbols that no token fits, as `symbol_counts` has them; and how many symbols the
        words are divided into, each word once."""

    def uses(self, words: ArrowArray, old: int) -> ArrowArray:
        """A row for each token: `uses`, and `is_harmful` (used in a word that the first `old`
        tokens can tokenize, and all cannot)."""

    def losses(self, words: ArrowArray) -> ArrowArray:
        """A row for each token: `uses`, `losses` (how many tokens more without it), `is_needed` (a
        word cannot be tokenized without it), `is_missed` (a word that cannot be could be, if this
        one and others were not dropped)."""

class Splitter:
    """Splits of words after merges. `alphabet`: symbols and their ids; `merges` has the columns
    `left`, `right`, `token` (ids), in order. `tokens`: words begin as greedy longest match
    tokenizes them, or as `model` does; `hidden`: the ids of tokens that no word becomes."""

    def __init__(
        self,
        alphabet: Sequence[tuple[str, int]],
        merges: ArrowArray | None,
        *,
        continuing_prefix: str,
        min_word_count: int,
        max_word_length: int,
        tokens: Sequence[str] | None = None,
        model: Bpe | None = None,
        hidden: Sequence[int] = (),
        word_marks: str | None = None,
    ) -> None: ...
    def split(self, words: ArrowArray, first_rank: int) -> ArrowArray:
        """`rank`, `offset`, `count`, `symbols: list<uint32>` of a part of a word table."""

    def merge(self, splits: ArrowArray) -> ArrowArray:
        """Splits after the merges, from splits before them."""

class PairCounter:
    """Counts of tokens (`token`, `count`) and of pairs (`left`, `right`, `count`,
    `first_rank`, `first_offset`) over splits."""

    def __init__(self) -> None: ...
    @property
    def symbols(self) -> int:
        """Tokens in all splits, each split's once."""

    @property
    def memory(self) -> int:
        """Bytes that the table of pairs takes, and taking it out."""

    def add_splits(self, splits: ArrowArray) -> None: ...
    def unigrams(self) -> ArrowArray: ...
    def take_pairs(self, partitions: int) -> list[tuple[int, ArrowArray]]:
        """Empties the table of pairs: batches by partition, each ordered by pair."""

def add_unigrams(batches: Sequence[ArrowArray]) -> ArrowArray: ...
def add_pairs(batches: Sequence[ArrowArray]) -> ArrowArray: ...

class PairLevels:
    """The levels of the pairs that a round may leave whole: of a batch of `Trainer.candidates`."""

    def __init__(self, candidates: ArrowArray) -> None: ...

class RunSizes:
    """Estimates of the number of tokens of distinct fragments, if pairs up to a level are kept
    together, for each level up to `max_level`. They come from a sample that does not depend on the
    order of segmentations."""

    def __init__(self, budget: int, max_level: int) -> None: ...
    @property
    def max_level(self) -> int:
        """The highest level for which the runs are within the budget; 0 if there is none."""

    def add_splits(self, splits: ArrowArray, levels: PairLevels) -> None: ...
    def add_sample(self, sample: ArrowArray) -> None: ...
    def sample(self) -> ArrowArray:
        """`hash`, `length`, `first_max_level`, `last_max_level`: what `add_sample` adds."""

class Runs:
    """The distinct pieces of splits, divided at all pairs of a higher level than `max_level`, with
    the sums of their counts."""

    def __init__(self) -> None: ...
    def add_splits(self, splits: ArrowArray, levels: PairLevels, max_level: int) -> None: ...
    def add_runs(self, runs: ArrowArray) -> None: ...
    @property
    def memory(self) -> int:
        """Bytes that the table takes, and taking it out."""

    def take_partitions(self, partitions: int, most: int) -> list[tuple[int, ArrowArray]]:
        """Empties the table: partitions and their splits, `most` in a batch, in no order."""

    def take(self, most: int) -> list[ArrowArray]:
        """Empties the table: splits, in the order of their places, `most` in a batch."""

class Trainer:
    """Merges in rounds: `add_splits`, then `start_round`, then `run` until it is over. `sealed`: no
    pair may make one of the tokens that are there. `max_words`: maximum number of words of a token
    that a pair makes; then ties go to the smaller ids, otherwise to the first pair."""

    def __init__(
        self,
        tokens: Sequence[str],
        *,
        vocab_size: int,
        criterion: str,
        min_pair_count: int | None,
        max_token_length: int,
        continuing_prefix: str,
        sealed: bool = False,
        word_marks: str | None = None,
        max_words: int | None = None,
    ) -> None: ...
    @property
    def support(self) -> int: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def vocab_size(self) -> int: ...
    def aim_at(self, vocab_size: int) -> None:
        """Set the number of tokens to train, even after the last number was reached."""

    def restore(self, merges: ArrowArray, support: int) -> None:
        """Takes over a round of another trainer of the same training: its merges, and the support
        after it."""

    def add_splits(self, splits: ArrowArray) -> None:
        """Adds splits or runs to the next round, in the order of their places."""

    def start_whole_round(self) -> None: ...
    def start_round(
        self,
        unigrams: ArrowArray,
        *,
        largest: int,
        max_level: int,
        candidates: ArrowArray,
    ) -> None: ...
    def run(self, most: int) -> str:
        """Makes up to `most` merges: "running", "round over" or "done"."""

    def largest(self, pairs: ArrowArray) -> int:
        """The largest count of a pair that may be merged."""

    def candidates(
        self,
        unigrams: ArrowArray,
        pairs: Sequence[ArrowArray],
        *,
        largest: int,
        most: int,
        max_level: int | None = None,
    ) -> tuple[ArrowArray, int]:
        """Pairs, and `level: uint16`, that a round may leave whole, about `most`; and the level up
        to which all pairs are among them. `max_level`: for pairs chosen from parts, the lowest of
        the levels given with them."""

    def merges(self, first: int = 0) -> ArrowArray:
        """`left`, `right`, `token` (ids), `score`, `pair_count`, `left_count`, `right_count`, from
        step `first` (counted from 0) on."""

class RunSplitter:
    """Splitter of words into the segments that pieces of unigram do not cross: `▁` is put before a
    word unless it is there; a segment ends where the script changes, and at characters outside the
    alphabet (None: all are in it), which are in no segment. Segments with more characters are left
    out."""

    def __init__(
        self, alphabet: str | None, *, min_word_count: int, max_run_length: int
    ) -> None: ...
    def characters(self, words: ArrowArray) -> tuple[ArrowArray, int]:
        """Return the characters of segments, `word: string, count: int64`, ordered by character,
        and the number of characters of all segments, with each word counted once."""

    def runs(self, words: ArrowArray) -> ArrowArray:
        """The runs, `word: string, count: int64`, in any order."""

def add_characters(batches: Sequence[ArrowArray]) -> ArrowArray:
    """Adds up the counts of equal characters. All characters must be fewer than 2^63."""

class SuffixCounter:
    """Counts the suffixes of runs, truncated to `max_length` characters, in partitions that depend
    on the first two characters alone."""

    memory: int
    def __init__(self, splitter: RunSplitter, *, max_length: int, partitions: int) -> None: ...
    def add(self, words: ArrowArray) -> None: ...
    def take(self) -> list[tuple[int, ArrowArray]]:
        """Forgets the runs. For each partition with suffixes its number, and
        `word: string, count: int64`."""

def find_seeds(suffixes: Sequence[ArrowArray], most: int) -> ArrowArray:
    """Return the substrings of the suffixes of a partition that cover most characters, the best
    first: `word: string, count: int64`. They have two characters or more, occur twice or more, and
    not always with the same character after them."""

def best_seeds(batches: Sequence[ArrowArray], most: int) -> ArrowArray:
    """The best of the seeds of partitions, the best first."""

class UnigramModel:
    """Pieces in the order of their strings, and their scores: `piece: string, score: double`."""

    def __init__(self, pieces: ArrowArray) -> None: ...
    @staticmethod
    def first(characters: ArrowArray, seeds: ArrowArray) -> UnigramModel:
        """The model that training begins with. Both: `word: string, count: int64`."""

    def __len__(self) -> int: ...
    def pieces(self) -> ArrowArray: ...
    def maximized(self, sums: ArrowArray) -> UnigramModel:
        """Return the model after the M step, from the sums of "expected". Pieces with an expected
        count below one half are dropped, except single characters."""

    def pruned(self, sums: ArrowArray, size: int, threads: int) -> UnigramModel:
        """Return the model without the pieces that the likelihood needs least, from the sums of
        "best". Single characters are kept."""

class RunSums:
    """Sums over the runs of words. `what`: "expected", the expected counts of the pieces, in units
    of 2^-52; or "best", how often they occur in the best segmentations of runs."""

    def __init__(self, splitter: RunSplitter, model: UnigramModel, what: str) -> None: ...
    def add(self, words: ArrowArray) -> None: ...
    def sums(self) -> tuple[ArrowArray, int]:
        """By piece, numbers of 128 bits: `high, low: int64`; and of "expected" the logarithm of the
        likelihood, in units of 2^-40."""

def add_run_sums(batches: Sequence[ArrowArray]) -> ArrowArray:
    """Adds up sums by piece."""

class RunCorpus:
    """The runs of all words in memory. `most_bytes`: of lattices that are kept from one sum to the
    next."""

    def __init__(self, *, most_bytes: int, threads: int) -> None: ...
    def add(self, runs: ArrowArray) -> None:
        """Adds runs, `word: string, count: int64`."""

    def seeds(self, max_length: int, most: int) -> ArrowArray:
        """See `best_seeds`."""

    def sums(self, model: UnigramModel, what: str) -> tuple[ArrowArray, int]:
        """See `RunSums`."""
