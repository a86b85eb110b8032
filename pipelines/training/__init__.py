"""The jobs that make tokenizers: `train`, from inputs to a tokenizer; what it continues
(`continuing`); `extend` and `prune`. What they share is in `words_run`: counting, and the
directories that a run holds. Further: the driver of rounds (`driver`), their passes as pipelines
(`rounds`), what a killed training continues from (`work_directory`), the output
(`tokenizer_directory`), and how it segments the words (`coverage`). It knows counting; it does not
know encoding or the command line."""
