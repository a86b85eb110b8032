"""The job `encode`: its entry (`encode`), its options (`options`) and result (`result`), the plan
and the run of all its forms (`plan`, `run`), the step for one shard (`encode_step`,
`shard_encoder`, `pieces`, `row_weights`, `shard_writer`), the loop of `--follow` (`follow`), the
output directory (`directory`, a folder), and `resharding`, a folder.
"""
