"""The pipeline of `configs/beam`, run by Beam YAML."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from apache_beam.yaml import main

from .corpora import train_tokenizer, write_shard

EXAMPLE = Path(__file__).parents[2] / "configs" / "beam" / "encode.yaml"


def test_the_example_encodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a b", "b a b", None]
    write_shard(tmp_path / "in" / "a.jsonl", texts)
    tokenizer = train_tokenizer(tmp_path, ["a b", "b c"], "--vocab-size", "20")
    places = {"input": "in/*.jsonl", "tokenizer": tokenizer, "output": "ids"}
    monkeypatch.chdir(tmp_path)

    main.run([f"--yaml_pipeline_file={EXAMPLE}", f"--jinja_variables={json.dumps(places)}"])
    (written,) = tmp_path.glob("ids-0*")
    rows = {row["text"]: row for row in pq.read_table(written).to_pylist()}
    assert {*rows} == {*texts}
    assert rows[None]["input_ids"] is None
    assert len(rows["b a b"]["attention_mask"]) == len(rows["b a b"]["input_ids"]) == 5
    assert not list(tmp_path.glob("ids-bad*"))


BAD = """
pipeline:
  transforms:
    - {type: Create, config: {elements: [{q: a, p: b}, {q: a, p: b b b b b b b}]}}
    - type: EncodeTexts
      input: Create
      config:
        tokenizer: TOKENIZER
        text_column: q
        text_pair_column: p
        max_length: 6
        truncation: only_first
        error_handling: {output: wrong}
    - {type: WriteToJson, input: EncodeTexts.wrong, config: {path: wrong}}
providers:
  - include: PROVIDERS
"""


def test_rows_that_cannot_be_encoded_are_an_output_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = train_tokenizer(tmp_path, ["a b", "b c"], "--vocab-size", "20")
    providers = str(EXAMPLE.with_name("providers.yaml"))
    pipeline = BAD.replace("TOKENIZER", tokenizer).replace("PROVIDERS", providers)
    monkeypatch.chdir(tmp_path)
    main.run([f"--yaml_pipeline={pipeline}"])
    (line,) = [line for path in tmp_path.glob("wrong*") for line in path.open()]
    row = json.loads(line)
    assert "b b b b b b b" in row["element"]
    assert "pair 0: one text of 1 tokens cannot" in row["msg"]
