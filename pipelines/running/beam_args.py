"""Show the names of the arguments for Beam, never their values."""

from __future__ import annotations

from collections.abc import Sequence


def names_of(beam_args: Sequence[str]) -> str:
    """The names of arguments.

    >>> names_of(["--runner=FlinkRunner", "--parallelism", "2"])
    '--runner --parallelism'
    """
    return " ".join(arg.partition("=")[0] for arg in beam_args if arg.startswith("--"))
