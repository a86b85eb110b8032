"""The jobs that make tokenizers.

train.py, extend.py, prune.py   the jobs: words to a tokenizer directory
words.py                        the words of a job, counted if necessary, and its directories
rounds.py                       the rounds of a training, on the driver
passes.py                       the passes of a round over the words, as Beam pipelines
work_directory.py               what a killed training resumes from
tokenizer_directory.py          the output
coverage.py                     how a tokenizer segments words
result.py                       the fields that the results of the jobs share
"""
