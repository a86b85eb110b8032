"""Resharding: `encode` with `--shard-size`, `--pack`, `--shuffle`, `--mix`, `--splits`, `--format`.
Shards are made from the rows of all inputs, not one from each.

    inputs ─ encode ─▶ .shards/encoded ─ assign ─────────────────────▶ make ─▶ shards
                           └─ shuffle ─▶ .shards/buckets-… ─ assign ────┘

The number and the names of the shards are decided before they are made, so a rerun knows which
shards are missing. In addition to the files of `encode`, the work directory `.shards` has:

    encoded/               the encoded inputs, a dataset of its own without a manifest
    buckets-DIGEST/N.runs  with --shuffle, rows by bucket of a random order. DIGEST identifies the
                           inputs and the options
    made-DIGEST/N.json     records of the shards of task N, in formats without footers

Imports go down this list only:

    reshard.py       the job: its steps, and what earlier runs have finished
    pipeline.py      its pipelines
    make_shards.py   the step that makes the shards of a task
    drawing.py       which rows of a mix are drawn, and how often
    rows.py          the rows of a task, in order
    shuffle.py       a random order of the rows, and the files that bring rows into it
    formats.py       the files of a shard of ids: Megatron's, datatrove's, OLMo-core's
    packed_rows.py   rows of one length, filled across inputs
    assign.py        which rows go to which task: only arithmetic
"""
