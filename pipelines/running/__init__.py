"""Running pipelines: the runner and what is mended in Beam for local runs (`runner`), progress and
metrics (`progress`), threads (`threads`). Nothing here knows a job."""
