"""Laying a dataset out: `encode` with `--shard-size`, `--pack`, `--shuffle`, `--splits` or
`--format`. Shards are then made from the rows of all inputs, not one from each.

    inputs ─ encode ─▶ _layout/encoded ─ deal out ──────────────────▶ _layout/made-… ─▶ shards
                           └─ shuffle ─▶ _layout/runs-… ─ deal out ──────┘

Each file imports only from those below it in this list:

    lay_out.py    the job: what is done already, and its steps
    pipeline.py   its pipelines
    assemble.py   the step that makes shards
    made.py       what is made: notes in the work directory, and names in the output
    scatter.py    the step that brings rows into a random order, and the files it writes
    rows.py       the rows of a task, in their order
    formats.py    the files of a shard: Parquet, Megatron's, or plain ids
    packed.py     rows of one length, filled across inputs
    deal.py       which rows go to which task and shard: arithmetic alone
    work.py       the work directory `_layout`
"""
