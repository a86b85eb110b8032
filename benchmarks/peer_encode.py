"""Encoding with `datasets` and `transformers`, as a script: Parquet files to one Parquet file.

Arguments: tokenizer directory, output file, cache directory, processes, files with the column
`text`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from datasets import load_dataset
from transformers import AutoTokenizer


def main(directory: str, output: str, cache: str, processes: int, paths: Sequence[str]) -> None:
    """Adds the column `input_ids` to what the files hold."""
    tokenizer = AutoTokenizer.from_pretrained(directory)

    def encode(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        encoded = tokenizer(batch["text"], return_attention_mask=False, return_token_type_ids=False)
        return {"input_ids": encoded["input_ids"]}

    dataset = load_dataset("parquet", data_files=list(paths), split="train", cache_dir=cache)
    dataset.map(encode, batched=True, num_proc=processes).to_parquet(output)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5:])
