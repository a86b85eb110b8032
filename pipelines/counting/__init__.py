"""The job `count` (`count`), its options (`options`), and the word table that it writes and that
training reads (`word_table`)."""
