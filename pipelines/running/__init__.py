"""Run pipelines: the runner (`runner`), workarounds for Beam's local runner (`local_beam`), the
common options of jobs (`call`) and their checks (`checks`), the names of arguments for Beam
(`beam_args`), elements in files (`plan`, `from_plan`), progress (`progress`) and its figures
(`figures`), messages (`messages`), and threads (`threads`). Nothing here knows a job. Begin with
`runner`."""
