"""Strategies of hypothesis: word tables, training options, and text that is hard to split; and
small rounds for such tables."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from wordpiece_core.limits import Limits

# Few letters give ties and runs such as aaaa. Some are long in UTF-8. Where words hold the prefix,
# strings are built twice: "##" and "###".
SMALL = ("a", "ab", "abc", "abcdef", "aé", "añ漢😀", "a#", "#")

# Characters on which rules about text turn: white space of all kinds, controls, marks (whose order
# NFD changes), letters that lower case or NFD lengthens, Hangul, Chinese, punctuation, digits.
ODD = (
    "aZ09 \t\n\r\v\f\0\x1c\x7f\x85\xa0\xad\ufffd\u1680\u180e\u2003\u200b\u200d\u2028\u202f\u2060"
    "\u3000\ufeff\ue000\U000f0000\u0378\u0301\u0323\u0327\u0345\u034f\u0591\u093c\u0f71\u0f72\u3099\u20dd"
    "éÅİıßẞſΣςσǅŐồŉΐᾈK\u1e9b\u0958\u0b94각각가漢字一㐀\U00020000\U0002b740\U0002b820\U0002ceb0"
    "豈\U0002f800々〇ー、。「ァ?!'\"#$%^&*()_+`~|\\<>=¿§¶«»‘…–—‿⁀₿€°±×😀👩🏽\U0001f1e6\U000e0041"
)


OPTIONAL: dict[str, list[Any]] = {
    "min_word_count": [1, 2, 3],
    "limit_alphabet": [1, 2, 3, 5],
    "initial_alphabet": ["", "a", "zb", "é#"],
    "max_token_length": [1, 2, 3, 5],
    "max_word_length": [1, 5, 12],
    "continuing_prefix": ["", "", "@", "▁▁", "a"],
    "alphabet_order": ["sorted", "first_seen"],
}


@st.composite
def word_tables(draw: st.DrawFn, *alphabets: str) -> dict[str, int]:
    """Word tables in any order: equal or small counts, for ties, or large ones."""
    alphabet = draw(st.sampled_from(alphabets or SMALL))
    counts = draw(st.sampled_from([st.just(1), st.integers(1, 4), st.integers(1, 10**10)]))
    rows, length = draw(st.sampled_from([(0, 1), (1, 8), (2, 4), (5, 3), (10, 2)]))
    words = st.text(alphabet, min_size=length, max_size=length + 8)
    least = min(rows, len(alphabet))
    return draw(st.dictionaries(words, counts, min_size=least, max_size=rows + 5))


@st.composite
def training_options(draw: st.DrawFn) -> dict[str, Any]:
    """Draw keyword arguments of ``train`` except ``vocab_size``: the main ones and up to two
    others."""
    others = draw(st.lists(st.sampled_from(sorted(OPTIONAL)), max_size=2, unique=True))
    return {
        "criterion": draw(st.sampled_from(["pmi", "likelihood", "frequency"])),
        "min_pair_count": draw(st.sampled_from([1, 1, 2, "auto", "auto"])),
        **{name: draw(st.sampled_from(OPTIONAL[name])) for name in others},
    }


# Strategy for the number of tokens in addition to special tokens and alphabet.
rooms = st.sampled_from([100, 30, 10, 3, 1, 0])


def possible_budget(options: dict[str, Any], round_budget: float) -> float:
    """The budget, or 1 where a round takes all words."""
    fixed = options.get("min_pair_count", "auto") != "auto"
    criterion = options.get("criterion", "pmi")
    takes_all = criterion == "likelihood" or (criterion == "pmi" and fixed)
    return 1.0 if takes_all else round_budget


def small_rounds(candidates: int, partitions: int) -> Limits:
    """Let rounds of small tables have few candidates, and this number of partitions."""
    return Limits(
        least_candidates=candidates,
        tokens_per_candidate=2,
        least_pair_partitions=partitions,
        least_fragment_partitions=partitions,
    )


def odd_text(max_size: int = 40) -> st.SearchStrategy[str]:
    """Text of the odd characters above, of any other characters, and of mixtures."""
    any_character = st.characters(exclude_categories=["Cs"])
    return st.text(st.one_of(st.sampled_from(ODD), any_character), max_size=max_size)
