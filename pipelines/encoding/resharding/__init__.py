"""Resharding: `encode` with `--shard-size`, `--pack`, `--shuffle`, `--splits` or `--format`. Shards
are then made from the rows of all inputs, not one from each.

    inputs ─ encode ─▶ _layout/encoded ─ assign ─────────────────────▶ _layout/made-… ─▶ shards
                           └─ shuffle ─▶ _layout/buckets-… ─ assign ─────┘

Each file imports only from those below it in this list:

    reshard.py       the job: its steps, and what earlier runs have done
    pipeline.py      its pipelines
    make_shards.py   the step that makes shards
    made_shards.py   what that step has made, and the names of the shards
    shuffle.py       the step that brings rows into a random order, and the files it writes
    rows.py          the rows of a task, in order
    formats.py       the files of a shard: Parquet, Megatron's, or plain ids
    packed_rows.py   rows of one length, filled across inputs
    assign.py        which rows go to which task and shard: arithmetic alone
    work.py          the work directory `_layout`
"""
