"""The job `compare` (`compare`), its options (`options`), the pipeline that measures tokenizers on
texts or on a word table (`measuring`), and its steps (`steps`). It knows counting; it does not know
training or encoding."""
