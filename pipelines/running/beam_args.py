"""What messages call the arguments for Beam, and show of them: their names, never their values."""

from __future__ import annotations

from collections.abc import Sequence

from wordpiece_core.declaration import called


def beam_args_name() -> str:
    """What messages call the arguments for Beam."""
    return called("arguments after --", "beam_args")


def names_of(beam_args: Sequence[str]) -> str:
    """The names of arguments.

    >>> names_of(["--runner=FlinkRunner", "--parallelism", "2"])
    '--runner --parallelism'
    """
    return " ".join(arg.partition("=")[0] for arg in beam_args if arg.startswith("--"))
