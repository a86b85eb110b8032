"""The job `encode`: its plan and its run (`encode`), its options (`options`), the step for one
shard (`encode_shard`, `shard_encoder`, `pieces`), and the output directory (`encoded_directory`).
"""
