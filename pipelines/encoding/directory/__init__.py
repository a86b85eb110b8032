"""The output directory of `encode`, and what becomes of it. Each file imports only from those below
it in this list:

    following.py           with --follow: a run that begins, and its commits
    lifecycle.py           a run that begins and ends; the manifest
    card.py                the dataset card
    bad_shards.py          the inputs that could not be encoded, and their quarantine
    new_shards.py          what workers do: shards and their notes are written
    contents.py            what a directory holds: it is read
    plans.py               what is to be encoded, in files
    logs.py                the files of notes
    notes.py               a note of a shard: it is finished, or it could not be encoded
    encoded_directory.py   which files there are, and what they are for
"""
