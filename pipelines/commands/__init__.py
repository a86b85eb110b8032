"""The command line.

cli.py               the process: how it begins and ends
program.py           the commands, and how errors are shown
job_command.py       the command of a job: options, the job, its result
options.py           parameters of click from dataclasses of options
config.py            config files
inspect.py           `wordpiece inspect` for texts
inspect_dataset.py   `wordpiece inspect` for datasets
demo.py              `make demo`
"""
