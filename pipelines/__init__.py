"""The jobs of wordpiece-beam: count, train and encode, as Beam pipelines.

A folder is a room, and a room imports from those behind it only:

    commands    the command line: what is asked, what is said
    encoding    texts to ids, shard by shard
    training    a word table to a tokenizer, in exact rounds
    counting    text to a word table
    running     Beam's runner, progress, threads
    files       where data is, how it is read, and how it is written whole or not at all

The algorithms are in `wordpiece_core`, which knows neither Beam nor files but a tokenizer's.
"""
