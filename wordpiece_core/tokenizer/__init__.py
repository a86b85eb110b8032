"""Tokenizers: what encodes (`tokenizer`, `packing`), how one is written and read (`files`,
`vocabulary`; `reading` for those that others wrote), and why a word is cut as it is
(`inspection`)."""
