"""The job `count` (`count`), and the word table that it writes and training reads
(`word_table`)."""
