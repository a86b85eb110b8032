"""What is said to people who give an option by the name that it has elsewhere."""

from __future__ import annotations

import click

PROCESSES = "every core is used; for fewer: -- --direct_num_workers=N"
ELSEWHERE = {
    "--num-proc": PROCESSES,
    "--num-workers": PROCESSES,
    "--threads": PROCESSES,
    "--batch-size": "batches are chosen by the job; leave it out",
    "--model-max-length": "--max-length",
    "--vocab": "--tokenizer",
    "--vocab-file": "--tokenizer",
    "--tokenizer-name": "--tokenizer",
    "--output-dir": "--output",
    "--input": "inputs are given without an option",
    "--files": "inputs are given without an option",
    "--column": "--text-column",
    "--wordpieces-prefix": "--continuing-prefix",
    "--do-lower-case": "--lowercase",
    "--min-frequency": "--min-pair-count for pairs, --min-word-count for words",
}
"""By the names of `datasets`, `transformers` and `tokenizers`: what it is here."""


def hinted(error: click.NoSuchOption, command: click.Command) -> click.UsageError:
    """The error for an option that is not known, with what it is called here."""
    name = error.option_name.replace("_", "-")
    hint = ELSEWHERE.get(name)
    own = {option for parameter in command.params for option in parameter.opts}
    if hint is not None and hint.startswith("--") and hint.split()[0] not in own:
        hint = None
    if hint is None and _is_beams(error.option_name):
        hint = f"options of Beam go behind --, as in: -- {error.option_name}=..."
    if hint is None:
        return error
    return click.UsageError(f"No such option: {error.option_name} ({hint})", ctx=error.ctx)


def _is_beams(name: str) -> bool:
    from pipelines.running.runner import beam_option_names

    return name in beam_option_names()
