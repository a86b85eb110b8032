"""`encode --follow`: the job, again and again. Each run of it encodes new files, and its commit is
a line of `.commits.jsonl`.

A line is what the manifest has more than all lines before it. So the lines add up to the manifest:
what was committed just before a kill, or without `--follow`, is in the next line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from datetime import UTC, datetime
from typing import Any

from pipelines.encoding.directory.bad_shards import ShardsError
from pipelines.encoding.directory.state import read_contents
from pipelines.encoding.directory.status import CHANGED
from pipelines.encoding.result import Encoded
from pipelines.encoding.run import EncodeRun
from pipelines.files import outputs
from pipelines.files.input_files import covers
from pipelines.files.inputs import InputFile
from pipelines.files.lease import one_run
from pipelines.running.following import FollowLog, Version, follow, version
from wordpiece_core import storage
from wordpiece_core.storage import MissingError
from wordpiece_core.uri import join

COMMITS = ".commits.jsonl"
SUMS = ("rows", "bytes", "tokens", "unknown_tokens", "words", "word_tokens")


def follow_inputs(run: EncodeRun, log: FollowLog) -> Encoded:
    """Encodes files as they come, until it is stopped or idle. Raises what `encode` raises."""
    dataset = _Followed(run, log)
    with one_run(run.call.output):
        follow(run.call.following, lambda: run.files(may_be_empty=True), dataset.process)
        return dataset.encoded or run.encode_files([])


class _Followed:
    """What is known between runs. `skipped`: the versions of files that could not be encoded."""

    def __init__(self, run: EncodeRun, log: FollowLog) -> None:
        self.run, self.log = run, log
        self.encoded: Encoded | None = None
        self.skipped: dict[str, Version] = {}

    def process(self, files: Sequence[InputFile], present: Set[str]) -> None:
        """Encodes files, and commits. Files that change meanwhile are left for the next listing."""
        if self.run.call.delete_removed:
            self._delete_removed(present)
        files = [file for file in files if self.skipped.get(file.path) != version(file)]
        try:
            done = self.encoded = self.run.encode_files(files)
        except ShardsError as error:
            if any(bad.error.cause != CHANGED for bad in error.errors):
                raise
            self.log.warn(f"{error}; they are read again")
            return
        for bad in done.errors:
            self.log.warn(f"skipped: {bad.message}")
            self.skipped[bad.file.path] = version(bad.file)
        self._record(done.manifest)

    def _delete_removed(self, present: Set[str]) -> None:
        """Deletes the shards of files that are gone. What was in an input that lists no file stays:
        that may be a disk which is not mounted. The commit that follows lists them no more."""
        directory = self.run.directory()
        contents = read_contents(directory)
        inputs = [p for p in self.run.call.inputs if any(covers(p, path) for path in present)]
        gone = [
            name
            for name, path in ((name, contents.source(name)) for name in contents.finished)
            if path not in present and any(covers(pattern, path) for pattern in inputs)
        ]
        storage.delete_files(map(directory.place, gone))

    def _record(self, manifest: dict[str, Any]) -> None:
        """Adds a line to `.commits.jsonl`, if the manifest has more, or less, than the lines."""
        path = join(self.run.call.output, COMMITS)
        try:
            lines = storage.read_bytes(path).decode().splitlines()
            rows = [json.loads(line) for line in lines]
            known = {name: sum(row[name] for row in rows) for name in ("files", *SUMS)}
        except MissingError:
            lines, known = [], dict.fromkeys(("files", *SUMS), 0)
        except (ValueError, TypeError, KeyError) as error:
            raise outputs.damaged(path) from error
        now = {name: manifest[name] for name in SUMS} | {"files": len(manifest["shards"])}
        more = {name: now[name] - known[name] for name in known}
        if not any(more.values()):
            return
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        words = more["words"]
        row = {"commit": len(lines) + 1, "time": time, **more}
        row["tokens_per_word"] = more["word_tokens"] / words if words else None
        data = "".join(f"{line}\n" for line in [*lines, json.dumps(row)])
        work = self.run.directory().work
        work.claim()
        outputs.write_bytes(path, data.encode(), work.path)
        work.delete()
        self.log.commit(row)
