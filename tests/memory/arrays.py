"""Arrays of every kind through the kernel and back: `make memcheck` runs this under valgrind."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from wordpiece_core import Tokenizer
from wordpiece_core.options import ENCODING_COLUMNS, EncodingOptions

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdé中", "##a", "##b", "abc", "##\u0301"]
KINDS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view())
WAYS = (
    EncodingOptions(columns=ENCODING_COLUMNS),
    EncodingOptions(max_length=9, stride=2, padding=True, columns=ENCODING_COLUMNS),
    EncodingOptions(id_type="uint16"),
)


def main() -> None:
    rng = Random(1)
    for n in range(20):
        tok = Tokenizer(VOCAB, lowercase=n % 2 == 0, strip_accents=(None, True, False)[n % 3])
        lengths = [rng.randint(0, 80) for _ in range(30)]
        texts = ["".join(rng.choices("abcdé中ÉA \t.\u0301\u200d[]", k=k)).encode() for k in lengths]
        cut = [None if rng.random() < 0.1 else text[:-1] for text in texts]  # often not UTF-8
        for kind in KINDS:
            whole = pa.types.is_binary(kind) or pa.types.is_binary_view(kind)
            array = pa.array(cut if whole else texts, pa.binary()).cast(kind)
            for given in (array, array[3:17], array[:0]):
                for way in WAYS:
                    pairs = given if n % 2 else None
                    batch = tok.encode_table(given, pairs, options=way, threads=n % 3 + 1)
                    batch.table.validate(full=True)


if __name__ == "__main__":
    main()
