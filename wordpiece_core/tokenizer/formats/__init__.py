"""Files of tokenizers.

tokenizer_json.py          write tokenizer.json
tokenizer_json_reading.py  read it
stored_spec.py             specifications in datasets and work directories
configs.py                 tokenizer_config.json and special_tokens_map.json
configured_tokens.py       added tokens that configs name
merges_files.py            GPT-2's vocab.json and merges.txt
sentencepiece_model.py     models of sentencepiece; sentencepiece_proto.py has their messages
tiktoken_ranks.py          ranks of tiktoken
tekken.py                  Mistral's tekken.json
json_text.py               JSON of any origin
"""
