"""`encode --follow`: a loop around the job that lists the inputs, encodes the complete files,
commits, reports a line, and sleeps.

A file on a local disk is complete when two listings found it with the same size and modification
time. An object in a store appears complete.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pipelines.encoding.dataset import MANIFEST
from pipelines.encoding.encode import EncodeJob, FollowLog, encode_files
from pipelines.encoding.options import SKIP
from pipelines.encoding.result import Encoded
from pipelines.encoding.shards import CHANGED, ShardsError
from pipelines.io import outputs
from pipelines.io.inputs import InputFile
from wordpiece_core.errors import StorageError
from wordpiece_core.storage import appears_when_closed
from wordpiece_core.uri import join

SUMS = ("rows", "bytes", "tokens", "unknown_tokens")
Version = tuple[int, int | None]
"""The size and the modification time of a file."""


def follow_inputs(job: EncodeJob, log: FollowLog) -> Encoded:
    """Encode files as they appear, until stopped or until nothing has changed for `until_idle`
    seconds. A fault of storage is a warning, and the next poll tries again. Raises the errors of
    `encode_job`."""
    return _follow(job, log) or encode_files(job, [])


def _follow(job: EncodeJob, log: FollowLog) -> Encoded | None:
    """Return the last result; None if no file has appeared."""
    following = job.options
    before: dict[str, Version] = {}
    processed: dict[str, Version] = {}
    skipped: dict[str, Version] = {}
    commits = _Commits(job.output)
    encoded: Encoded | None = None
    until_idle = math.inf if following.until_idle is None else following.until_idle
    idle_since = time.monotonic()
    while True:
        began = time.monotonic()
        try:
            files = job.files(may_be_empty=True)
        except StorageError as error:
            if began - idle_since > until_idle:
                raise
            log.warn(f"{error}; the inputs will be listed again")
            _sleep_until(began + following.poll)
            continue
        complete = {
            file.path: file
            for file in files
            if appears_when_closed(file.path) or before.get(file.path) == _version(file)
        }
        before = {file.path: _version(file) for file in files}
        found = {path: _version(file) for path, file in complete.items()}
        if complete and found != processed:
            new = [file for path, file in complete.items() if skipped.get(path) != found[path]]
            try:
                encoded = encode_files(job, new)
            except ShardsError as error:
                changed = [bad.error.cause == CHANGED for bad in error.errors]
                skips = following.on_error == SKIP and any(changed)
                if not (skips or all(changed)):
                    raise
                log.warn(f"{error}; they will be read again")
            except StorageError as error:
                if error.lasting or began - idle_since > until_idle:
                    raise
                log.warn(f"{error}; the new files will be read again")
                _sleep_until(began + following.poll)
                continue
            else:
                for bad in encoded.errors:
                    log.warn(f"skipped: {bad.message}")
                    skipped[bad.file.path] = _version(bad.file)
                if row := commits.next(encoded.manifest):
                    log.commit(row)
            processed, idle_since = found, time.monotonic()
        elif len(complete) < len(files):
            idle_since = time.monotonic()
        elif time.monotonic() - idle_since >= until_idle:
            return encoded
        _sleep_until(began + following.poll)


def _sleep_until(end: float) -> None:
    time.sleep(max(end - time.monotonic(), 0))


def _version(file: InputFile) -> Version:
    return file.size, file.modified


class _Commits:
    """The commits of a run, numbered from 1. Each reports the increase since the commit before."""

    def __init__(self, output: str) -> None:
        manifest = outputs.read_json(join(output, MANIFEST))
        self.number = 0
        self.totals = dict.fromkeys(("files", *SUMS), 0) if manifest is None else _totals(manifest)

    def next(self, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the report of a commit; None if the manifest has not changed."""
        totals, before = _totals(manifest), self.totals
        if totals == before:
            return None
        self.number, self.totals = self.number + 1, totals
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        increase = {name: total - before[name] for name, total in totals.items()}
        return {"commit": self.number, "time": now, **increase}


def _totals(manifest: Mapping[str, Any]) -> dict[str, int]:
    return {"files": len(manifest["shards"])} | {name: manifest.get(name) or 0 for name in SUMS}
