"""The job `encode`: texts to shards of token ids.

options.py        the options
encode.py         the job: plan, one pipeline, one commit
plan.py           the shards to encode, and their schema
pipeline.py       the pipeline: each shard is read, encoded and written
shard_encoder.py  the rows of a shard: encoded and counted
pieces.py         how much is encoded at a time
shard_writer.py   the Parquet file of a shard
dataset.py        the output directory: its shards, its manifest, the commit
shards.py         the record of a shard, in its footer and in the manifest
shard_names.py    the names of shards, and their splits
columns.py        the columns of a shard
row_weights.py    the weights of rows that will be resharded
mix.py            the file of `--mix`
card.py           the dataset card
follow.py         the loop of `--follow`
count_ids.py      the pipeline that counts the ids of a dataset
result.py         the result of the job
resharding/       shards made from the rows of all inputs: joined, packed, shuffled, split
"""
