"""The jobs `compare` and `check`.

options.py       the options of both
compare.py       the job `compare`: a row for each tokenizer and group
table.py         these rows as a table for people
measuring.py     the pipeline that measures tokenizers on texts or on a word table
vocab_sizes.py   tokenizers at smaller vocabulary sizes
check.py         the job `check`: ids and speed next to the original library
"""
