"""Checks of a job's options before any work."""

from __future__ import annotations

from typing import TypeVar

from pipelines.running.options import BeamOptions, InputOptions
from wordpiece_core.option_types import path
from wordpiece_core.storage import check_writable

AnyOptions = TypeVar("AnyOptions", bound=BeamOptions)


def checked_options(options: AnyOptions) -> AnyOptions:
    """Return the options as workers are to see them: with absolute paths, if workers may run on
    other machines. Without arguments for Beam the job runs here, and Beam is not imported.

    Raises OptionError for a wrong output, and for arguments that Beam cannot parse.
    """
    if isinstance(options, InputOptions):
        check_writable("output", path(options.output))
    if not options.beam_args:
        return options
    from pipelines.running.runner import check_beam_args

    return options if check_beam_args(options.beam_args) else options.absolute()
