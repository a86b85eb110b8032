"""The job `encode`: texts to shards of token ids.

encode.py         the job: plan, one pipeline, one commit
plan.py           the shards to encode, and their schema
encode_shard.py   the step that encodes a shard: read, encode, write
pieces.py         how much is encoded at a time
shard_writer.py   the Parquet file of a shard
dataset.py        the output directory: its shards, its manifest, the commit
shards.py         the record of a shard, in its footer and in the manifest
card.py           the dataset card
follow.py         the loop of `--follow`
result.py         the result of the job
resharding/       shards made from the rows of all inputs: joined, packed, shuffled, split
"""
