"""WordPiece, BPE and Unigram as a textbook, in plain Python.

Read each module from top to bottom. It trains a vocabulary on words with their counts, encodes a
text into ids, and decodes ids into a text. The results are equal to the defaults of
`wordpiece_core.train` and `Tokenizer`. The code is slow on purpose: training counts everything
again for each merge.

    text.py        words of a text, by BERT's rules
    wordpiece.py   WordPiece: merge the pair whose tokens belong together most
    bpe.py         byte-pair encoding: merge the most frequent pair
    unigram.py     a unigram language model: remove the pieces that contribute least

>>> from wordpiece_core.reference import bpe, text, wordpiece
>>> words = text.count_words(["hug hugs", "pug pugs", "hug pun"])
>>> vocab = wordpiece.train(words, vocab_size=18)
>>> wordpiece.decode(wordpiece.encode("hugs pun", vocab), vocab)
'hugs pun'
"""
