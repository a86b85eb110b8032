"""Laying a dataset out: `encode` with `--shard-size`, `--pack`, `--shuffle`, `--splits` or
`--format`. Shards are then made from the rows of all inputs, not one from each.

    inputs ─ encode ─▶ _layout/encoded ─ deal out ──────────────────▶ shards ─▶ manifest
                           └─ shuffle ─▶ _layout/runs-… ─ deal out ──────┘

Each file imports only from those below it in this list:

    lay_out.py    the job: what is done already, and its steps
    pipeline.py   its pipelines
    assemble.py   the step that writes a shard
    scatter.py    the step that brings rows into a random order, and the files it writes
    rows.py       the rows of a shard, in their order
    formats.py    the files of a shard: Parquet, Megatron's, or plain ids
    packed.py     rows of one length, filled across inputs
    deal.py       which rows go to which shard: arithmetic alone
    work.py       the work directory `_layout`
"""
