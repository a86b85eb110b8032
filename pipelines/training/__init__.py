"""The job `train`: from inputs to a tokenizer (`train`), the driver of its rounds (`driver`), their
passes as pipelines (`rounds`), what a killed training goes on from (`work_directory`), what comes
out (`tokenizer_directory`). It knows counting; it does not know encoding or the command line."""
