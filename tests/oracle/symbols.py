"""Symbols that vocabularies share: special tokens, marks of words, and the characters of bytes.

BPE and Unigram mark in their symbols where words begin or end. The option `word_boundary` names
three ways; Unigram has the second:

`</w>`   ends the last symbol of a word: `the` is `t h e</w>`.
`▁`      is put before a word, as a symbol: `▁ t h e`.
`bytes`  A word is its bytes in UTF-8, each written as GPT-2 writes it, after a space: `Ġ t h e`.
         The 256 bytes are the alphabet, so nothing is unknown. GPT-2's own pre-tokenizer keeps
         spaces (``add_space=False``).
"""

from __future__ import annotations

WORD_END, SPACE_MARK, BYTES = "</w>", "▁", "bytes"  # ▁ is U+2581
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = {f"{token.strip('[]').lower()}_token": token for token in SPECIAL_TOKENS}
WHITE_SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)


def byte_characters() -> list[str]:
    """Return the character that GPT-2 writes for each byte: the same character if it is printable
    in Latin-1, otherwise the next one from U+0100 on."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


BYTE_CHARACTERS = byte_characters()
ALWAYS = {BYTES: BYTE_CHARACTERS, SPACE_MARK: [SPACE_MARK]}
"""Symbols that are always in the alphabet, by word boundary."""


def symbols(word: str, word_boundary: str = WORD_END, add_space: bool = True) -> list[str]:
    """Return the symbols of a word before any merge.

    >>> symbols("the"), symbols("é", BYTES)
    (['t', 'h', 'e</w>'], ['Ġ', 'Ã', '©'])
    """
    if word_boundary == WORD_END:
        return [*word[:-1], word[-1] + WORD_END]
    if word_boundary == SPACE_MARK:
        return list(marked(word))
    spaced = f" {word}" if add_space and not word.startswith(" ") else word
    return [BYTE_CHARACTERS[byte] for byte in spaced.encode()]


def marked(word: str) -> str:
    """Return the word with ``▁`` before it, unless it begins with one."""
    return word if word.startswith(SPACE_MARK) else SPACE_MARK + word


def bare(token: str, word_boundary: str) -> str:
    """Return a token without its mark."""
    if word_boundary == WORD_END:
        return token.removesuffix(WORD_END)
    return token.removeprefix(SPACE_MARK) if word_boundary == SPACE_MARK else token


# --- Text without a token -------------------------------------------------------------------------


def byte_tokens(byte_fallback: bool) -> list[str]:
    """Return the tokens for the bytes of unknown characters; none without `byte_fallback`."""
    return [f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else []


def unknown_tokens(text: str, unk_token: str, byte_fallback: bool) -> list[str]:
    """Return the tokens of unknown text: one ``unk_token``, or the tokens of its bytes.

    >>> unknown_tokens("é", "[UNK]", byte_fallback=True)
    ['<0xC3>', '<0xA9>']
    """
    return [f"<0x{byte:02X}>" for byte in text.encode()] if byte_fallback else [unk_token]
