"""The job `count` (`count`), its steps (`steps`, `parts`), sums of what it reads (`totals`), its
options (`options`), the word table that it writes and that training reads (`word_table`), and
`--follow` (`follow`)."""
