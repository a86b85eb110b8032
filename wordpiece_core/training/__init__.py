"""Training in rounds: what a round is, and its loop in memory (`rounds`); WordPiece's merging as
such rounds (`merging`), with the first vocabulary (`alphabet`) and the memory of a round
(`budget`); training on words in memory (`train`); weights for groups of text (`smoothing`)."""
