"""What a command prints while it follows its inputs: a line on standard error for each commit, or
a JSON object a line with --json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipelines.commands.job_command import How
from pipelines.commands.summary import say
from pipelines.encoding.follow import commit_line
from pipelines.running.messages import write_line


class CommandLog:
    """The log of a command."""

    def __init__(self, how: How) -> None:
        self.how = how

    def commit(self, row: Mapping[str, Any]) -> None:
        """Prints a commit."""
        if self.how.json:
            self._print_json(row)
        elif not self.how.quiet:
            write_line(commit_line(row))

    def warn(self, message: str) -> None:
        """Prints a warning."""
        if self.how.json:
            self._print_json({"warning": message})
        else:
            say(f"warning: {message}")

    def _print_json(self, value: Mapping[str, Any]) -> None:
        write_line(json.dumps(dict(value), ensure_ascii=False))
