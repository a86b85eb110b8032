"""Resharding: `encode` with `--shard-size`, `--pack`, `--shuffle`, `--splits` or `--format`. Shards
are then made from the rows of all inputs, not one from each.

    inputs ─ encode ─▶ .shards/encoded ─ assign ─────────────────────▶ .shards/made-… ─▶ shards
                           └─ shuffle ─▶ .shards/buckets-… ─ assign ─────┘

The work directory `.shards` of the output has what it has for `encode`, and:

    encoded/               the encoded inputs, a directory of its own
                           (`pipelines.encoding.directory`) that is never complete
    buckets-DIGEST/N.runs  with --shuffle, rows by the bucket of a random order. DIGEST stands for
                           the inputs and the options
    made-DIGEST/N-M.*      shards, until their number is known, and so their names: the files of the
                           shard M of the task N
    made-DIGEST/N.json     the results of the shards of the task N, all of which are made
    publish.json           names of the files in the output (`pipelines.io.publishing`)

Each file imports only from those below it in this list:

    reshard.py       the job: its steps, and what earlier runs have done
    pipeline.py      its pipelines
    make_shards.py   the step that makes shards
    made_shards.py   what that step has made, and the names of the shards
    rows.py          the rows of a task, in order
    shuffle.py       a random order of the rows, and the files in which they are brought into it
    formats.py       the files of a shard: Parquet, Megatron's, datatrove's, or plain ids
    packed_rows.py   rows of one length, filled across inputs
    assign.py        which rows go to which task and shard: arithmetic alone
"""
