"""Tokenizers.

tokenizer.py             Tokenizer: text to ids, and back
spec.py                  TokenizerSpec: the parts of a tokenizer.json, and roles of tokens
models.py                the model, added tokens, post-processor
parts.py                 normalizers, pre-tokenizers and decoders as JSON objects
words.py                 the plan of the kernel for normalizers and pre-tokenizers
families.py              BERT, GPT-2, and trained vocabularies as specifications
composing.py             text options with the words of a tokenizer
kernel_model.py          models as the kernel takes them
reading.py, writing.py   directories, files, and names on the Hub
formats/                 one module per file format
vocabulary.py            vocab.txt
by_class.py              directories whose class builds its own tokenizer
hub_names.py             names on the Hub
library.py               tokenizers that the library tokenizers runs
original_library.py      the library that a file belongs to, for `check`
packing.py               rows of one length
decoders.py, decoding.py tokens to text
inspection.py            reasons for the tokens of a word
segmentation_reasons.py  the merges and scores of a word
word_pieces.py           tokens of any model in the notation of WordPiece
bytes_as_text.py         byte tokens as text
"""
