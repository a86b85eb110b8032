"""The job `count`: texts to a word table.

count.py        the job and its pipeline
steps.py        counting ranges of the input, and merging partial tables
parts.py        the parts of a word table, from sorted partitions
spill.py        partial tables on their way from step to step
totals.py       sums over the input, and the weights of groups
word_table.py   word tables on disk
"""
