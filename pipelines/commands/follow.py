"""The log of `encode --follow`: a line on standard error for each commit, or with --json one JSON
object per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipelines.commands.options import spelled_here
from pipelines.commands.summary import say
from pipelines.encoding.follow import commit_line
from pipelines.progress import write_line


class CommandLog:
    """The log of a command."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json

    def commit(self, row: Mapping[str, Any]) -> None:
        """Print a commit."""
        if self.as_json:
            self._print_json(row)
        elif not self.quiet:
            write_line(commit_line(row))

    def warn(self, message: str) -> None:
        """Print a warning."""
        if self.as_json:
            self._print_json({"warning": spelled_here(message)})
        else:
            say(f"warning: {message}")

    def _print_json(self, value: Mapping[str, Any]) -> None:
        write_line(json.dumps(dict(value), ensure_ascii=False))
