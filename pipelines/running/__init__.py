"""Running pipelines: the runner (`runner`), changes of Beam for local runs (`local_beam`), the
common options of jobs (`call`), what is checked of them (`checks`), arguments for Beam as they are
shown (`beam_args`), elements that lie in files (`plan`, `from_plan`), progress (`progress`), what
it shows (`figures`), the loop of `--follow` (`following`), threads (`threads`), servers of others
(`job_server`). Nothing here knows a job. Begin with `runner`."""
