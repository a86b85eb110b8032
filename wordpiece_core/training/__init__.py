"""Training: what a round is, and its executor in memory (`rounds`); WordPiece's merging as one
(`merging`), with the alphabet it begins with (`alphabet`) and what a round may hold (`budget`);
training on words in memory (`train`); weights for groups of text (`smoothing`)."""
