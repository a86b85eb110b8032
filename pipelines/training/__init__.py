"""The job `train`: a call from inputs to a tokenizer (`call`), the driver's side of the rounds
(`train`), a round as a pipeline (`rounds`), what a killed training goes on from
(`work_directory`), and what comes out (`tokenizer_directory`)."""
