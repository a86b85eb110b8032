"""The files of tokenizers, a format in each: `tokenizer_json` (writing that of `tokenizers`;
`tokenizer_json_parts` and `tokenizer_json_reading`: reading it), `configs` (what `transformers` has
beside it), `merges_files` (GPT-2's `vocab.json` and `merges.txt`) and `sentencepiece_model`."""
