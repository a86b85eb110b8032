"""The jobs `compare` and `check`.

compare.py       the job `compare`: a row for each tokenizer and group
measuring.py     the pipeline that measures tokenizers on texts or on a word table
vocab_sizes.py   tokenizers at smaller vocabulary sizes
check.py         the job `check`: ids and speed next to the original library
"""
