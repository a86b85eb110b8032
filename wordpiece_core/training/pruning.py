"""Pruning a vocabulary: removing the tokens that the words of a table need least.

`tests/oracle/extension.py` and `bpe_training.py` are the specification. The cost of a WordPiece
token is measured: each word that uses it is tokenized without it. The cost of a token of BPE or
Unigram is the number of its uses, because a use becomes two tokens or more. Only tokens of BPE that
are in no merge of other tokens are removed, so the remaining merges build the same tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.declared import check_option
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.option_types import Tokens
from wordpiece_core.summary import Summarized
from wordpiece_core.symbols import WORD_END, byte_tokens
from wordpiece_core.tokenizer.composing import text_options
from wordpiece_core.tokenizer.models import Bpe, Unigram, WordPiece, in_model
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.tokenizer.tokenizer import Tokenizer
from wordpiece_core.training.exact_sums import EXACT, TOO_LARGE
from wordpiece_core.training.extension import Each, check_is_wordpiece
from wordpiece_core.training.rounds import Batch
from wordpiece_core.training.train import parts_of, word_batch

PART_DROPPED = 2  # a pass removes half of the excess; smaller passes change costs by 1 %


@dataclass(frozen=True, repr=False)
class PruningResult(Summarized):
    """A pruned vocabulary.

    Attributes:
        base: Specification of the old tokenizer.
        kept: Old ids of the kept tokens, in the order of the new ids.

    >>> tok = Tokenizer(["[UNK]", "a", "##b", "ab", "abb"])
    >>> result = prune(tok, {"ab": 2, "abb": 1}, vocab_size=4)
    >>> result.vocab, result.ids.to_pylist()[-1]
    (['[UNK]', 'a', '##b', 'ab'], {'old_id': 4, 'token': 'abb', 'new_id': None})
    """

    base: TokenizerSpec
    kept: list[int]

    def summary(self) -> dict[str, int]:
        """Return the numbers of kept and removed tokens."""
        dropped = len(self.base.vocab) - len(self.kept)
        return {"vocab_size": len(self.kept), "dropped_tokens": dropped}

    @property
    def vocab(self) -> list[str]:
        """Kept tokens in id order."""
        return [self.base.vocab[i] for i in self.kept]

    @property
    def spec(self) -> TokenizerSpec:
        """The pruned tokenizer."""
        return _with_tokens(self.base, self.kept)

    def tokenizer(self) -> Tokenizer:
        """Return the pruned tokenizer."""
        return Tokenizer.from_spec(self.spec)

    @property
    def ids(self) -> pa.Table:
        """A row for each old token in id order: `old_id`, `token`, and `new_id`, null if it was
        removed. Keep the rows of a model's embeddings that have a `new_id`."""
        new = {old: i for i, old in enumerate(self.kept)}
        old_ids = range(len(self.base.vocab))
        return pa.table(
            {
                "old_id": pa.array(old_ids, pa.int32()),
                "token": pa.array(list(self.base.vocab), pa.string()),
                "new_id": pa.array([new.get(old) for old in old_ids], pa.int32()),
            }
        )


def prune(
    tokenizer: Tokenizer,
    word_counts: Mapping[str, int] | Iterable[tuple[str, int]] | pa.Table,
    *,
    vocab_size: int,
) -> PruningResult:
    """Remove the tokens that the words need least, until `vocab_size` are left. The other ids keep
    their order.

    Special tokens stay, and tokens of single characters; with WordPiece only characters of the
    words. No word becomes [UNK], so more tokens than requested may be left.

    Args:
        tokenizer: The tokenizer to prune.
        word_counts: Words, as the tokenizer splits text, with their counts: as for `train`.
        vocab_size: Number of tokens to keep.

    Raises:
        OptionError: If the vocabulary is not larger, or has more special tokens.
        InputError: For a table without words and counts.
    """
    check_option("vocab_size", Tokens, vocab_size)
    words = word_batch(word_counts)
    each = partial(_each, words)
    return pruned(tokenizer.spec, vocab_size, each)


def _each(words: pa.RecordBatch, work: Callable[[Batch], Batch]) -> Iterable[Batch]:
    return map(work, parts_of(words))


def pruned(base: TokenizerSpec, vocab_size: int, each: Each) -> PruningResult:
    """Prune by the words of a table. Raises OptionError as `prune`."""
    check_size(base, vocab_size)
    if not isinstance(base.model, WordPiece):
        return _pruned_by_uses(base, vocab_size, each)
    size = len(base.vocab)
    kept = _kept_always(base, each)
    dropped: set[int] = set()
    while True:
        lost = _losses(base, dropped, each)
        if lost.missed:
            kept |= lost.missed
            dropped -= lost.missed
            continue
        excess = size - len(dropped) - vocab_size
        free = [i for i in range(size) if not (i in dropped or i in kept or i in lost.needed)]
        if excess <= 0 or not free:
            return PruningResult(base, [i for i in range(size) if i not in dropped])
        free.sort(key=lambda token: (lost.more_tokens[token], -token))
        dropped.update(free[: -(-excess // PART_DROPPED)])


def check_size(base: TokenizerSpec, vocab_size: int) -> None:
    """Raise OptionError if a vocabulary cannot be pruned to this number of tokens."""
    if isinstance(base.model, WordPiece):
        check_is_wordpiece(base, "pruned")
    elif base.library is not None:
        raise OptionError(
            f"{opt.tokenizer}: tokenizers that the kernel cannot run cannot be pruned"
        )
    text_options(base)
    size, special = len(base.vocab), len(base.special_tokens)
    if vocab_size >= size:
        raise OptionError(
            f"{opt.vocab_size}: {vocab_size:,}, but the tokenizer has only {size:,} tokens"
        )
    if vocab_size < special:
        raise OptionError(
            f"{opt.vocab_size}: {vocab_size:,} is too small for {special:,} special tokens"
        )


def _kept_always(base: TokenizerSpec, each: Each) -> set[int]:
    """Return the ids of the special tokens, and of the single characters of words."""
    characters: set[str] = set()
    for batch in each(lambda words: _characters(words, base.max_word_length)):
        characters.update(batch["character"].to_pylist())
    prefix = base.continuing_prefix
    tokens = {*base.special_tokens, *(form for c in characters for form in (c, prefix + c))}
    return {i for i, token in enumerate(base.vocab) if token in tokens}


def _characters(words: Batch, max_word_length: int) -> Batch:
    symbols = _kernel.symbol_counts(
        words, first_rank=0, min_word_count=1, max_word_length=max_word_length
    )
    return pa.record_batch(symbols)


@dataclass(frozen=True)
class _Losses:
    """Costs of removing tokens, by id.

    Attributes:
        more_tokens: Number of tokens by which the text grows without a token.
        needed: Tokens without which a word could not be segmented.
        missed: Removed tokens that a word needs.
    """

    more_tokens: Sequence[int]
    needed: set[int]
    missed: set[int]


def _losses(base: TokenizerSpec, dropped: set[int], each: Each) -> _Losses:
    longest = _kernel.LongestMatch(
        list(base.vocab),
        sorted(dropped),
        continuing_prefix=base.continuing_prefix,
        min_word_count=1,
        max_word_length=base.max_word_length,
    )
    size = len(base.vocab)
    more = pa.array([0] * size, pa.int64())
    needed = missed = pa.array([False] * size, pa.bool_())
    for batch in each(lambda words: pa.record_batch(longest.losses(words))):
        try:
            more = pc.add_checked(more, batch["losses"])
        except pa.ArrowInvalid as error:
            raise InputError(TOO_LARGE) from error
        needed = pc.or_(needed, batch["is_needed"])
        missed = pc.or_(missed, batch["is_missed"])
    return _Losses(more.to_pylist(), _places(needed), _places(missed))


# --- BPE and Unigram ------------------------------------------------------------------------------


def _pruned_by_uses(base: TokenizerSpec, vocab_size: int, each: Each) -> PruningResult:
    kept = list(range(len(base.vocab)))
    while True:
        spec, excess = _with_tokens(base, kept), len(kept) - vocab_size
        free = _free(spec)
        if excess <= 0 or not free:
            return PruningResult(base, kept)
        uses = _uses(spec, each)
        free.sort(key=lambda token: (uses[token], -token))
        dropped = {*free[: -(-excess // PART_DROPPED)]}
        kept = [old for new, old in enumerate(kept) if new not in dropped]


def _free(spec: TokenizerSpec) -> list[int]:
    """Return the ids of tokens that can be removed: no special tokens, no single characters or
    bytes, and no parts of other tokens."""
    assert isinstance(spec.model, Bpe | Unigram)
    parts = set(chain.from_iterable(spec.model.merges)) if isinstance(spec.model, Bpe) else set()
    stays = {*spec.special_tokens, *spec.roles.values(), *byte_tokens(True)}
    single = {token for token in spec.vocab if len(token.removesuffix(WORD_END)) <= 1}
    stays |= single
    return [i for i, token in enumerate(spec.vocab) if i not in parts and token not in stays]


def _uses(spec: TokenizerSpec, each: Each) -> list[int]:
    """Return the number of uses of each token in the words."""
    tokenizer = Tokenizer.from_spec(spec)

    def counted(words: Batch) -> Batch:
        ids = tokenizer.encode_batch(words["word"], add_special_tokens=False)
        counts = words["count"].cast(EXACT).take(pc.list_parent_indices(ids))
        uses = pa.table([ids.flatten(), counts], ["token", "count"])
        summed = uses.group_by("token", use_threads=False).aggregate([("count", "sum")])
        return pa.record_batch([c.combine_chunks() for c in summed.columns], ["token", "count"])

    sums = [0] * len(spec.vocab)
    for batch in each(counted):
        for token, count in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            sums[token] += int(count)
    return sums


def _with_tokens(base: TokenizerSpec, kept: Sequence[int]) -> TokenizerSpec:
    """Return the tokenizer with only these tokens, and the remaining merges or scores."""
    spec = replace(base, vocab=[base.vocab[i] for i in kept])
    new = {old: i for i, old in enumerate(kept)}
    if isinstance(base.model, Unigram):
        scores = [base.model.scores[i] for i in kept]
        symbols = [new[i] for i in base.model.user_defined]
        return replace(spec, model=replace(base.model, scores=scores, user_defined=symbols))
    if isinstance(base.model, Bpe):
        ids, tied = {*spec.vocab}, {*base.model.tied}
        merges: list[tuple[int, int]] = []
        ties, rank, last = [], -1, -1
        for at, (left, right) in enumerate(base.model.merges):
            rank += at not in tied
            is_left = left in new and right in new and base.vocab[left] + base.vocab[right] in ids
            if is_left:
                if rank == last:
                    ties.append(len(merges))
                last = rank
                merges.append((new[left], new[right]))
        model = replace(base.model, merges=merges, tied=ties)
        return replace(spec, model=model, added_tokens=in_model(spec.added_tokens))
    return spec


def _places(flags: pa.Array) -> set[int]:
    return set(pc.indices_nonzero(flags).to_pylist())
