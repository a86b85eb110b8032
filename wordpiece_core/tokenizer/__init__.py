"""Tokenizers: encoding texts (`tokenizer`, `packing`), writing and reading tokenizers (`files`,
`vocabulary`, and `reading` for those that other programs wrote), showing why a word is cut as it
is (`inspection`), and those of other kinds (`foreign`)."""
