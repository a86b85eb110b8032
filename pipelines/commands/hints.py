"""Hints for people who use the option names of other programs."""

from __future__ import annotations

import click

from pipelines.commands.options import ConfigOption

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
"""From option names of `datasets`, `transformers` and `tokenizers` to what to use here."""


def hinted(error: click.NoSuchOption, command: click.Command) -> click.UsageError:
    """The error for an unknown option, with a hint if there is one."""
    name = error.option_name.replace("_", "-")
    hint = ELSEWHERE.get(name)
    wanted = hint.split()[0] if hint is not None and hint.startswith("--") else name
    parameter = next((p for p in command.params if _key(wanted) in map(_key, p.opts)), None)
    if isinstance(parameter, ConfigOption):
        hint = f"set {parameter.name} in a config file, by --config"
    elif wanted != name and parameter is None:
        hint = None
    if hint is None and parameter is None and _is_beams(error.option_name):
        hint = f"options for Beam go after --, as in: -- {error.option_name}=..."
    if hint is None:
        return error
    return click.UsageError(f"No such option: {error.option_name} ({hint})", ctx=error.ctx)


def _key(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def _is_beams(name: str) -> bool:
    """Whether a name looks like that of an option of Beam. (Most have underscores, which no option
    here has. Importing Beam to look them up would take longer than all else.)"""
    return name == "--runner" or "_" in name
