"""The output directory of `encode`: what it holds, how a run begins, and how it commits.

Each file imports only from those below it in this list:

    state.py               begin a run; commit the state of the directory: its manifest
    card.py                the dataset card
    quarantine.py          inputs that could not be encoded
    new_shards.py          how workers write shards and record their status
    contents.py            read what a directory holds
    plans.py               the shards to encode, in files
    journals.py            files in which workers record the status of shards
    status.py              the status of a shard: finished, or an error
    encoded_directory.py   which files there are, and what they are for
"""
