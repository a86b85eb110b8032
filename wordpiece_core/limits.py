"""Sizes at which jobs divide their work and empty their memory.

They are part of all options, so every worker has them, but no option sets them. Tests choose small
ones, so that little text is divided as a corpus is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, repr=False)
class Limits:
    """Sizes of a job. The bytes of files depend on the first group; no result depends on the rest.

    >>> Limits(block_bytes=100)
    Limits(block_bytes=100)
    """

    # Layout of files: the batches of the input decide where pieces and row groups end
    table_part_rows: int = 1_000_000  # of a word table, approximately
    table_group_rows: int = 65_536  # of a row group of a word table
    words_per_sample: int = 4096  # words per sampled word, where parts may begin
    row_group_bytes: int = 64 << 20  # maximum size of a row group of a shard in memory
    piece_bytes: int = 2 << 20  # of text, or ids if they may be more, for one thread at a time
    dictionary_ids: int = 1 << 18  # of a row group for which a dictionary of the vocabulary pays
    block_bytes: int = 4 << 20  # of lines or CSV that are parsed together
    batch_bytes: int = 8 << 20  # of rows of Parquet and Arrow that are processed together
    max_batch_rows: int = 1_024  # of Parquet, decoded together; dictionaries hide the size of pages
    batch_text_bytes: int = 1 << 30  # of text in a batch; leaves room for repaired UTF-8
    copied_bytes: int = 32 << 20  # maximum size of the chunks of a row group that are copied
    bucket_bytes: int = 12 << 20  # of a bucket of shuffled rows, by the weights of its rows
    large_buckets: int = 4  # buckets grow up to 4 × bucket_bytes for large datasets
    task_bytes: int = 8 << 20  # of the shards of a task, if shards are smaller
    packed_ids: int = 8 << 20  # of a window of best-fit packing: about 100 MiB with its rows

    # Reading
    range_bytes: int = 4 << 20  # minimum bytes of input in an element of a job
    max_block_bytes: int = (1 << 31) - 1  # Arrow's strings and its JSON reader have 32-bit sizes
    longest_csv_row: int = 64 << 20  # bytes; a longer row most likely has an unclosed quote
    counted_bytes: int = 8 << 20  # of text in a batch for counting
    opened_files: int = 1_000  # files smaller than a range that are opened for estimates

    # Counting
    max_partition_bytes: int = 1 << 30  # an Arrow array of strings holds 2 GiB
    partition_share_bytes: int = 128 << 10  # minimum memory of a worker for each partition
    min_table_piece_bytes: int = 32 << 10  # minimum size of a piece of a large partition
    merged_bytes: int = 8 << 20  # partial tables wait until they have this size
    in_memory_table_bytes: int = 256 << 20  # of a table of `count_words`; larger ones are merged
    windows: int = 16  # windows of a bundle whose counts are in memory

    # Training
    least_candidates: int = 1 << 16  # pairs
    tokens_per_candidate: int = 8
    least_pair_partitions: int = 16
    least_fragment_partitions: int = 1
    fragments_at_once: int = 1 << 18  # rows of a batch
    spilled_bytes: int = 64 << 10  # of partial sums that a local run writes to a file
    least_added_bytes: int = 8 << 20  # of waiting batches before they are added
    seed_bytes: int = 250  # memory of a seed of Unigram, measured (.github/notes/unigram.md)
    suffix_bytes: int = 64  # size of a suffix in a partition
    lattice_bytes: int = 1 << 62  # of a driver without a limit

    # Encoding
    waiting_shards: int = 1_000  # maximum number of finished shards in memory
    held_bytes: int = 4 << 20  # maximum size of a file that is in memory until it gets its name
    records_per_file: int = 1_000  # approximately
    read_bytes: int = 8 << 20  # of encoded rows that are read together to be shuffled or sorted
    run_share: int = 8  # a run has 1/8 of a worker's memory, and is copied once to be sorted
    sorted_copies: int = 2  # of the sorted rows in memory

    def __repr__(self) -> str:
        found = {known.name: getattr(self, known.name) for known in fields(self)}
        changed = (f"{n}={found[n]}" for n in found if found[n] != getattr(type(self), n))
        return f"Limits({', '.join(changed)})"


LIMITS = Limits()
