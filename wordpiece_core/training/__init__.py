"""Training in rounds: what a round is, and its loop in memory (`rounds`); the merging of
WordPiece and BPE as such rounds (`merging`), with the first vocabulary (`alphabet`) and the memory
of a round (`budget`); that of Unigram (`unigram`); what each begins with (`starting`); training on
words in memory (`train`); weights for groups of text (`smoothing`)."""
