"""Tokenizers: encoding texts (`tokenizer`, `packing`), what a tokenizer is
(`files`, `models`), writing and reading it (`writing`, `reading`, `vocabulary`, and a file for each
format in `formats`), showing why a word is segmented as it
is (`inspection`), and those that the library `tokenizers` encodes with (`library`)."""
