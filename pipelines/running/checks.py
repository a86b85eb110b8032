"""What is checked of a call before any work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pipelines.running.call import Call, JobCall
from wordpiece_core.errors import OptionError
from wordpiece_core.storage import check_writable

AnyCall = TypeVar("AnyCall", bound=JobCall)


def checked_call(call: AnyCall, beam_args: Sequence[str]) -> AnyCall:
    """The call as workers are to see it: where they may be elsewhere, with absolute paths. Without
    arguments for Beam it runs on this machine, and Beam is not imported.

    Raises OptionError for a wrong output, and for arguments that Beam cannot parse.
    """
    if isinstance(beam_args, str) or not all(isinstance(arg, str) for arg in beam_args or ()):
        raise OptionError(
            "beam_args: expected a list of strings, for example ['--runner=FlinkRunner']"
        )
    if isinstance(call, Call):
        check_writable("output", call.output)
    if not beam_args:
        return call
    from pipelines.running.runner import check_beam_args

    return call if check_beam_args(beam_args) else call.absolute()
