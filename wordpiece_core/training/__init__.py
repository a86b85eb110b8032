"""Training.

train.py      training on words in memory
rounds.py     rounds of a training, and their loop in memory
starting.py   the start of a training, for any model
alphabet.py   characters and the initial vocabulary
merging.py    merging, for WordPiece and BPE
unigram.py    the unigram language model
budget.py     the memory of a round
extension.py  more tokens for a vocabulary
pruning.py    fewer tokens
vocab_sizes.py  a trained vocabulary at smaller sizes
smoothing.py  weights for groups of text
exact_sums.py sums of counts without overflow
"""
