"""The job `encode`: what is to be done (`encode`), the step for a shard (`encode_shard`,
`shard_encoder`, `pieces`), and the directory with its states (`encoded_directory`)."""
