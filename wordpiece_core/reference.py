"""WordPiece in plain Python: the specification.

Read this to learn the algorithm, and the kernel to see it fast: the tests hold the two equal.
It is slow on purpose; training counts everything anew for every merge.

Training starts from words with their counts. Every word is split into characters, and each
character but the first carries a prefix that says "inside a word": ``hugs`` is ``h ##u ##g ##s``.
Then, again and again, the best pair of neighbours is merged into one token everywhere (``##g ##s``
becomes ``##gs``), and the token joins the vocabulary. The best pair is the one whose tokens meet
most often for how often they occur: count(pair) / (count(left) * count(right)). By count(pair)
alone it would be BPE.

Tokenizing forgets the merges. A word is cut by taking the longest token of the vocabulary that
begins it, then the longest that begins the rest, and so on; a word that cannot be cut to its end
is ``[UNK]``.

What a word is, ``normalize`` and ``pre_tokenize`` say, by BERT's rules. They ask this Python about
characters (``unicodedata``, ``str.lower``). `tokenizers`, and so the kernel, has other tables: old
ones of categories (unicode_categories 0.1.1) and decompositions (Unicode 9), and Rust's own of
lower case. The two can differ for characters assigned or reclassified between those versions of
Unicode, and there `tokenizers` is right by definition.

A split is a list of tokens. None in it stands for a character outside the alphabet: it is counted
nowhere, and nothing merges across it. ``counts`` are the words' counts, in the order of the splits.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from wordpiece_core.errors import OptionError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

Pair = tuple[str, str]
Split = list[str | None]

# --- Text to words --------------------------------------------------------------------------------

# Unicode's property White_Space. (str.isspace would add U+001C to U+001F.)
WHITE_SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)
CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


def normalize(
    text: str,
    *,
    clean_text: bool = True,
    handle_chinese_chars: bool = True,
    strip_accents: bool | None = None,
    lowercase: bool = True,
) -> str:
    """BERT's normalization, in this order. ``strip_accents=None`` means: as ``lowercase``."""
    if clean_text:
        text = "".join(" " if c in WHITE_SPACE else c for c in text if not _is_control(c))
    if handle_chinese_chars:
        text = "".join(f" {c} " if _is_chinese(c) else c for c in text)
    if lowercase if strip_accents is None else strip_accents:
        decomposed = unicodedata.normalize("NFD", text)
        text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
    if lowercase:
        text = "".join(c.lower() for c in text)  # each alone: a final sigma is no special case
    return text


def pre_tokenize(text: str, pre_tokenizer: str = "bert") -> list[str]:
    """Cut at white space; with ``bert`` every punctuation character is a word of its own too."""
    words: list[str] = []
    inside = False  # does the next character belong to the last word?
    for c in text:
        alone = pre_tokenizer == "bert" and _is_punctuation(c)
        if c in WHITE_SPACE:
            inside = False
        elif inside and not alone:
            words[-1] += c
        else:
            words.append(c)
            inside = not alone
    return words


def words(text: str, *, pre_tokenizer: str = "bert", **options: Any) -> list[str]:
    """Words of raw text; ``options`` are those of ``normalize``."""
    return pre_tokenize(normalize(text, **options), pre_tokenizer)


def count_words(texts: Iterable[str | None], **options: Any) -> Counter[str]:
    """The word table of texts (None is skipped): the commonest word first, then by code point."""
    counts = Counter(word for text in texts if text is not None for word in words(text, **options))
    return Counter(dict(sorted(counts.items(), key=lambda row: (-row[1], row[0]))))


def _is_control(c: str) -> bool:
    if c in "\t\n\r":
        return False
    return c in "\0\ufffd" or unicodedata.category(c) in ("Cc", "Cf", "Co")  # Cn stays


def _is_chinese(c: str) -> bool:
    return any(first <= ord(c) <= last for first, last in CHINESE)


def _is_punctuation(c: str) -> bool:
    return c in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" or unicodedata.category(c).startswith("P")


# --- Words to a vocabulary ------------------------------------------------------------------------


class Merge(NamedTuple):
    """A row of the training log; the counts are those before the merge."""

    step: int
    left: str
    right: str
    token: str
    score: float
    pair_count: int
    left_count: int
    right_count: int


class Training(NamedTuple):
    """The vocabulary in id order, and the merges in the order they were made."""

    vocab: list[str]
    merges: list[Merge]


def train(
    word_counts: Mapping[str, int] | Iterable[tuple[str, int]],
    vocab_size: int,
    *,
    criterion: str = "pmi",
    min_pair_count: int | str = "auto",
    min_word_count: int = 1,
    limit_alphabet: int | None = None,
    initial_alphabet: str = "",
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    max_token_length: int | None = None,
    max_word_length: int = 100,
    continuing_prefix: str = "##",
    alphabet_order: str = "sorted",
) -> Training:
    """Merge until the vocabulary is full or no pair is eligible. Lengths are in characters.

    Raises OptionError if ``vocab_size`` cannot hold the special tokens and the alphabet.
    """
    if isinstance(special_tokens, str):
        raise OptionError(f"special_tokens: a list is wanted here, not {special_tokens!r}")
    table = word_counts.items() if isinstance(word_counts, Mapping) else word_counts
    rows = [(w, n) for w, n in table if n >= min_word_count and 1 <= len(w) <= max_word_length]
    counts = [n for _, n in rows]
    kept = kept_characters(rows, limit_alphabet, initial_alphabet)
    splits = [split_word(w, kept, continuing_prefix) for w, _ in rows]
    symbols = alphabet(splits, initial_alphabet, continuing_prefix, alphabet_order)
    vocab = dict.fromkeys([*special_tokens, *symbols])  # a dict: each token once, in order
    if vocab_size < len(vocab):
        raise OptionError(f"vocab_size {vocab_size}: special tokens + alphabet are {len(vocab)}")
    merges: list[Merge] = []
    support = None if min_pair_count == "auto" else int(min_pair_count)
    while len(vocab) < vocab_size:
        pairs = pair_counts(splits, counts, max_token_length, continuing_prefix)
        if min_pair_count == "auto":
            support = fall(support, max(pairs.values(), default=1))
        eligible = {pair: n for pair, n in pairs.items() if n >= (support or 1)}
        if not eligible:
            break
        merge = best_merge(splits, counts, eligible, criterion, continuing_prefix)
        splits = [merge_word(s, merge.left, merge.right, continuing_prefix) for s in splits]
        merges.append(merge._replace(step=len(merges) + 1))
        vocab[merge.token] = None  # no change if another pair built the same string before
    return Training(list(vocab), merges)


def kept_characters(
    rows: Iterable[tuple[str, int]], limit_alphabet: int | None, initial_alphabet: str
) -> set[str]:
    """The initial characters, then the commonest up to the limit (ties: lower code point)."""
    counts: Counter[str] = Counter()
    for word, count in rows:
        for c in word:
            counts[c] += count
    initial = set(initial_alphabet)
    others = sorted(counts.keys() - initial, key=lambda c: (-counts[c], c))
    room = None if limit_alphabet is None else max(0, limit_alphabet - len(initial))
    return initial | set(others[:room])


def split_word(word: str, kept: Container[str], continuing_prefix: str = "##") -> Split:
    """``hug`` is ``h ##u ##g``; None for a character that is not kept."""
    symbols = [word[0], *(continuing_prefix + c for c in word[1:])]
    return [symbol if c in kept else None for c, symbol in zip(word, symbols, strict=True)]


def alphabet(
    splits: Iterable[Split], initial_alphabet: str, continuing_prefix: str, alphabet_order: str
) -> list[str]:
    """The symbols of the first splits, and of each initial character both forms.

    ``sorted``: as strings, by code point. ``first_seen``: from the top, then the unseen, sorted.
    """
    seen = dict.fromkeys(token for split in splits for token in split if token is not None)
    initial = {form for c in initial_alphabet for form in (c, continuing_prefix + c)}
    if alphabet_order == "first_seen":
        return [*seen, *sorted(initial - seen.keys())]
    return sorted(initial | seen.keys())


def unigram_counts(splits: Iterable[Split], counts: Iterable[int]) -> Counter[str]:
    """How often each token occurs."""
    totals: Counter[str] = Counter()
    for split, count in zip(splits, counts, strict=True):
        for token in split:
            if token is not None:
                totals[token] += count
    return totals


def pair_counts(
    splits: Iterable[Split],
    counts: Iterable[int],
    max_token_length: int | None = None,
    continuing_prefix: str = "##",
) -> dict[Pair, int]:
    """How often each two tokens are neighbours, in the order in which they first occur.

    ``a a a`` holds the pair ``a a`` twice. Pairs that would make too long a token are left out.
    """
    totals: dict[Pair, int] = {}
    for split, count in zip(splits, counts, strict=True):
        for left, right in pairwise(split):
            if left is not None and right is not None:
                totals[left, right] = totals.get((left, right), 0) + count
    if max_token_length is None:
        return totals

    def length(token: str) -> int:
        return len(token.removeprefix(continuing_prefix))

    return {(a, b): n for (a, b), n in totals.items() if length(a) + length(b) <= max_token_length}


def fall(support: int | None, largest: int) -> int:
    """``min_pair_count="auto"``: start at the largest pair count; lower if nothing is eligible."""
    if support is None:
        return largest
    while support > largest:
        support = lower_support(support)
    return support


def lower_support(support: int) -> int:
    """The next support to try, at least 1: fifteen sixteenths of the last, rounded down.

    The step weighs the score against the count: pairs compete by score within a step. On held-out
    text of seven languages this gives as few tokens as merging by count does, but for vocabularies
    that hold nearly all that is in the text; halving gives up to 1.6 % more.
    docs/min-pair-count.md has the figures.
    """
    return max(1, support * 15 // 16)


def best_merge(
    splits: Sequence[Split],
    counts: Sequence[int],
    eligible: Mapping[Pair, int],
    criterion: str,
    continuing_prefix: str = "##",
) -> Merge:
    """The merge (its step still 0) with the best score; of equal ones the first to occur."""
    unigrams = unigram_counts(splits, counts)
    total = unigrams.total()

    def pair_score(pair: Pair) -> Fraction | float:
        left, right = pair
        token_count = unigrams[merge_tokens(left, right, continuing_prefix)]
        own_merges = merges_made(splits, counts, pair) if left == right else None
        known = (eligible[pair], unigrams[left], unigrams[right])
        return score(criterion, *known, token_count=token_count, total=total, own_merges=own_merges)

    scores = {pair: pair_score(pair) for pair in eligible}
    left, right = best = max(scores, key=lambda pair: scores[pair])  # max: the first of equals
    token = merge_tokens(left, right, continuing_prefix)
    known = (eligible[best], unigrams[left], unigrams[right])
    return Merge(0, left, right, token, float(scores[best]), *known)


def score(
    criterion: str,
    pair_count: int,
    left_count: int,
    right_count: int,
    *,
    token_count: int = 0,
    total: int = 0,
    own_merges: int | None = None,
) -> Fraction | float:
    """What merging a pair is worth: exact for ``pmi`` and ``frequency``, else a double.

    ``likelihood`` is the gain in the corpus's unigram log-likelihood, the sum of h(U[t]) over the
    tokens less h(T), where h(x) = x ln x, U[t] is a token's count and T their total. Merging a and
    b m times takes m from U[a], U[b] and T, and adds m to U[ab] (``token_count``). Only for a token
    beside itself is m given, as ``own_merges``: ``a a a`` holds two pairs, merges once and loses
    two a.
    """
    if criterion == "frequency":
        return pair_count
    if criterion == "pmi":
        return Fraction(pair_count, left_count * right_count)
    # In doubles and in this order, for the kernel must get the same bits.
    if own_merges is None:
        m = pair_count
        lost = (h(left_count) - h(left_count - m)) + (h(right_count) - h(right_count - m))
    else:
        m = own_merges
        lost = h(left_count) - h(left_count - 2 * m)
    return (h(token_count + m) - h(token_count)) - lost + (h(total) - h(total - m))


def h(x: int) -> float:
    """x ln x, and 0 for 0."""
    return float(x) * natural_log(float(x)) if x else 0.0


def natural_log(x: float) -> float:
    """ln x for x > 0, with the same bits everywhere; ``math.log`` may differ in the last one.

    Only frexp, + - * and /, which IEEE 754 rounds in one way. x = m * 2**e, where m lies between
    sqrt(1/2) and sqrt(2). With s = (m - 1) / (m + 1), ln m = 2 (s + s**3/3 + s**5/5 + ...), up to
    s**25/25, summed from the last term to the first.
    """
    m, e = math.frexp(x)  # 0.5 <= m < 1
    if m < 0.7071067811865476:
        m, e = m * 2.0, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    r = 1.0 / 25.0
    for d in (23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        r = r * z + 1.0 / d
    return e * 0.6931471805599453 + 2.0 * s * r


def merges_made(splits: Iterable[Split], counts: Iterable[int], pair: Pair) -> int:
    """How often ``merge_word`` would merge the pair: not its count where it overlaps itself."""
    pairs = zip(splits, counts, strict=True)
    return sum(n * (len(split) - len(merge_word(split, *pair))) for split, n in pairs)


def merge_tokens(left: str, right: str, continuing_prefix: str = "##") -> str:
    """``##g`` and ``##s`` make ``##gs``."""
    return left + right.removeprefix(continuing_prefix)


def merge_word(split: Split, left: str, right: str, continuing_prefix: str = "##") -> Split:
    """The split with the pair merged, from left to right without overlap."""
    merged: Split = []
    i = 0
    while i < len(split):
        if split[i : i + 2] == [left, right]:
            merged.append(merge_tokens(left, right, continuing_prefix))
            i += 2
        else:
            merged.append(split[i])
            i += 1
    return merged


# --- Words to tokens ------------------------------------------------------------------------------


def tokenize(
    text: str,
    vocab: Collection[str],
    *,
    unk_token: str = "[UNK]",
    unk_scope: str = "word",
    max_word_length: int = 100,
    continuing_prefix: str = "##",
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    **options: Any,
) -> list[str]:
    """Tokens of raw text; ``options`` are those of ``words``.

    Special tokens are cut out of the raw text first: the leftmost, and of those the longest.
    """
    known = set(vocab)
    rules = (unk_token, unk_scope, max_word_length, continuing_prefix)
    special = sorted(known.intersection(special_tokens), key=len, reverse=True)
    pattern = "|".join(map(re.escape, special)) or "(?!)"  # (?!) matches nothing
    tokens: list[str] = []
    for i, part in enumerate(re.split(f"({pattern})", text)):
        if i % 2:  # re.split gives text, match, text, match, ..., text
            tokens.append(part)
        else:
            for word in words(part, **options):
                tokens += tokenize_word(word, known, *rules)
    return tokens


def tokenize_word(
    word: str,
    vocab: Container[str],
    unk_token: str = "[UNK]",
    unk_scope: str = "word",
    max_word_length: int = 100,
    continuing_prefix: str = "##",
) -> list[str]:
    """Greedy longest match. A word beyond ``max_word_length`` is ``unk_token``.

    Where no token fits, the whole word is ``unk_token`` (``unk_scope="word"``), or one character is
    (``"character"``), and what follows it is still inside the word.
    """
    if len(word) > max_word_length:
        return [unk_token]
    tokens: list[str] = []
    start = 0
    while start < len(word):
        prefix = continuing_prefix if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocab), None)
        if end is not None:
            tokens.append(prefix + word[start:end])
            start = end
        elif unk_scope == "word":
            return [unk_token]
        else:
            tokens.append(unk_token)
            start += 1
    return tokens


def encode(
    text: str, vocab: Sequence[str], *, add_special_tokens: bool = True, **options: Any
) -> list[int]:
    """Ids of raw text, a token's id being its place in ``vocab``; ``options``: as ``tokenize``."""
    tokens = tokenize(text, vocab, **options)
    if add_special_tokens:
        tokens = ["[CLS]", *tokens, "[SEP]"]
    ids = {token: i for i, token in enumerate(vocab)}
    return [ids[token] for token in tokens]


def decode(
    ids: Iterable[int],
    vocab: Sequence[str],
    *,
    skip_special_tokens: bool = True,
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    continuing_prefix: str = "##",
) -> str:
    """Text of ids: a space before every token that does not continue a word.

    What `tokenizers` does for English then, taking spaces before punctuation out, is left out here.
    """
    text = ""
    for token in (vocab[i] for i in ids):
        if skip_special_tokens and token in special_tokens:
            continue
        if text and token.startswith(continuing_prefix):
            text += token.removeprefix(continuing_prefix)
        else:
            text += " " * bool(text) + token
    return text


# --- The two simpler ways, for comparison ---------------------------------------------------------


def word_tokenize(text: str, **options: Any) -> list[str]:
    """Every word a token: few tokens, but no vocabulary holds every word."""
    return words(text, **options)


def char_tokenize(text: str, **options: Any) -> list[str]:
    """Every character of every word a token: a small vocabulary, but many tokens."""
    return [c for word in words(text, **options) for c in word]


# --- Documents to sequences of one length ---------------------------------------------------------


class PackedSequence(NamedTuple):
    """A sequence of ids; for each document in it, where its ids begin there, and its row."""

    input_ids: list[int]
    num_tokens: int
    special_tokens_mask: list[int]
    document_starts: list[int]
    document_rows: list[int]


def pack(
    documents: Iterable[Sequence[int] | None],
    max_length: int,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int | None = None,
) -> list[PackedSequence]:
    """Fill sequences [CLS] body [SEP] of ``max_length`` from the ids of documents.

    The stream of all ids, with one [SEP] between two documents, is cut every ``max_length - 2``
    ids; a [SEP] that would begin a body is left out. The last sequence is filled up with
    ``pad_id``; without one it is dropped, unless it is full.
    """
    stream: list[tuple[int, int | None]] = []  # ids and their rows; None for [SEP]
    for row, ids in enumerate(documents):
        if ids:
            stream += [(sep_id, None)] * bool(stream)
            stream += [(token_id, row) for token_id in ids]
    sequences: list[PackedSequence] = []
    at = 0
    while at < len(stream):
        at += stream[at][1] is None
        body = stream[at : at + max_length - 2]
        at += len(body)
        padding = max_length - 2 - len(body)
        if not padding or pad_id is not None:
            sequences.append(_sequence([(cls_id, None), *body, (sep_id, None)], padding, pad_id))
    return sequences


def _sequence(
    tokens: list[tuple[int, int | None]], padding: int, pad_id: int | None
) -> PackedSequence:
    rows = [row for _, row in tokens]
    starts = [i for i in range(1, len(rows)) if rows[i] is not None and rows[i] != rows[i - 1]]
    return PackedSequence(
        [token_id for token_id, _ in tokens] + [pad_id or 0] * padding,
        len(tokens),
        [int(row is None) for row in rows] + [1] * padding,
        starts,
        [row for row in (rows[i] for i in starts) if row is not None],
    )
