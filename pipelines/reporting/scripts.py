"""The scripts of characters, as Unicode names them: Latin, Cyrillic, Han, ...

RE2, which Arrow has built in, knows the script of each character. Python does not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

_NAMES = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali
    Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian
    Chakma Cham Cherokee Chorasmian Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret
    Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian
    Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul Hanifi_Rohingya
    Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian
    Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki
    Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam
    Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive
    Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari
    New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic
    Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur
    Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi
    Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian
    Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet
    Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi
    Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""
NAMES = _NAMES.split()
"""The scripts that RE2 knows, but for Common and Inherited."""

CATEGORIES = {
    "L": "letters of several scripts",
    "N": "digits and numbers",
    "P": "punctuation",
    "S": "symbols",
    "M": "marks",
}
"""What characters of no script are called, by the first letter of their category."""
OTHERS = "other characters"

# Scripts that are written together are no mixture: Han with kana or Hangul (Unicode Technical
# Standard 39, "augmented script sets").
EAST_ASIAN = frozenset({"Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"})

_known: dict[str, str] = {}


def scripts_of(characters: Iterable[str]) -> dict[str, str]:
    """The script of each character; for those of no script, such as digits and punctuation, what
    they are. Keys are in code point order."""
    characters = sorted(set(characters))
    unknown = pa.array([c for c in characters if c not in _known], pa.string())
    for name in NAMES if len(unknown) else ():
        is_of = pc.match_substring_regex(unknown, rf"\p{{{name}}}")
        shown = name.replace("_", " ")
        _known.update((c.as_py(), shown) for c in unknown.filter(is_of))
        unknown = unknown.filter(pc.invert(is_of))
    for c in unknown.to_pylist():
        _known[c] = CATEGORIES.get(unicodedata.category(c)[0], OTHERS)
    return {c: _known[c] for c in characters}


_LETTERS = {name.replace("_", " "): chr(0xE000 + i) for i, name in enumerate(NAMES)}
_LETTERS |= dict.fromkeys(EAST_ASIAN, _LETTERS["Han"])
_ONE_SCRIPT = "^(?:{})$".format("|".join(f"{letter}*" for letter in sorted(set(_LETTERS.values()))))


def are_mixed(words: pa.Array) -> pa.Array:
    """Whether each word has characters of two scripts or more."""
    ascii_only = pc.string_is_ascii(words)
    others = words.filter(pc.invert(ascii_only)).to_pylist()
    # Each character becomes a letter that stands for its script, or nothing.
    found = scripts_of(set("").union(*others))
    table = {ord(c): _LETTERS.get(script, "") for c, script in found.items()}
    letters = pa.array([word.translate(table) for word in others], pa.string())
    mixed = pc.invert(pc.match_substring_regex(letters, _ONE_SCRIPT))
    return pc.replace_with_mask(pa.repeat(False, len(words)), pc.invert(ascii_only), mixed)


def have_digits(words: pa.Array) -> pa.Array:
    """Whether each word has a decimal digit, of any script."""
    return pc.match_substring_regex(words, r"\p{Nd}")
