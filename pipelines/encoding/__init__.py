"""The job `encode`: its plan and what it comes to (`encode`), its options (`options`), its pipeline
(`encode_shards`), the step for one shard (`encode_shard`, `shard_encoder`, `pieces`), what follows
its inputs (`follow`, `stream`, `drift`), and the output directory (`directory`, a folder).
"""
