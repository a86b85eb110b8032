"""The job `encode`: its plan and its run (`encode`), its options (`options`), the step for one
shard (`encode_shard`, `shard_encoder`, `pieces`), what follows its inputs (`follow`, `stream`,
`drift`), and the output directory (`directory`, a folder).
"""
