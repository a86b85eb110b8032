"""`python -m pipelines` is the command `wordpiece`."""

from pipelines.commands.cli import main

main()
