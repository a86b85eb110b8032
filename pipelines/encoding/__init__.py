"""The job `encode`: its entry (`encode`), its options (`options`) and result (`result`), the plan
and the run of all its forms (`plan`, `run`), the step for one shard (`encode_step`,
`shard_encoder`, `pieces`, `shard_writer`), what follows its inputs (`follow`, `stream`, `drift`),
the output directory (`directory`, a folder), and `resharding`, a folder.
"""
