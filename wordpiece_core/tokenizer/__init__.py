"""Tokenizers: encoding texts (`tokenizer`, `packing`), writing and reading tokenizers (`files`,
`vocabulary`, and `reading` for those that other programs wrote), and showing why a word is cut as
it is (`inspection`)."""
