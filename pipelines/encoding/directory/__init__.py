"""The output directory of `encode`: what it holds, how a run begins, and how it commits.

Each file imports only from those below it in this list:

    state.py               read a directory, begin a run, commit
    card.py                the dataset card
    bad_shards.py          inputs that could not be encoded
    shards.py              how workers write shards, and record their status in journals
    status.py              the status of a shard: finished, or an error
    encoded_directory.py   which files there are, and what they are for
"""
