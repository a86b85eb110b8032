"""Jobs on a Flink cluster, which are cancelled by its REST API.

Beam's job server for Flink only stops waiting for a job that it is asked to cancel, up to the
newest (`JobInvocation.cancel` in Beam's Java). The address of Flink is known if `--flink_master`
names it, and then a job is found by a name that no other job has.
"""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
)

from pipelines.files.owned import new_id

APPEARS_SECONDS = 10.0  # in which a job that was submitted is known to Flink
ANSWER_SECONDS = 5.0
LOOK_SECONDS = 0.2
OVER = {"FINISHED", "CANCELED", "FAILED", "CANCELLING"}


@dataclass(frozen=True)
class FlinkJob:
    """A job. `address`: of Flink's REST API."""

    address: str
    name: str

    @classmethod
    def named(cls, options: PipelineOptions) -> FlinkJob | None:
        """The job of a pipeline that has not been submitted yet, which gets a name. None if the
        options do not say where Flink is, or if they give a name, which other jobs may have too."""
        master = options.view_as(FlinkRunnerOptions).flink_master.strip()
        cloud = options.view_as(GoogleCloudOptions)  # where Beam has the name of any job
        if not master or master.startswith("[") or cloud.job_name:
            return None
        cloud.job_name = f"wordpiece-{new_id()}"
        address = master if "://" in master else f"http://{master}"
        return cls(address.rstrip("/"), cloud.job_name)

    def cancel(self) -> None:
        """Cancels the job, unless it is over. It may not have reached Flink yet, so this waits for
        it. OSError or ValueError if Flink does not answer as it should."""
        end = time.monotonic() + APPEARS_SECONDS
        while time.monotonic() < end:
            jobs = [job for job in self._ask("jobs/overview")["jobs"] if job["name"] == self.name]
            for job in jobs:
                if job["state"] not in OVER:
                    self._ask(f"jobs/{job['jid']}?mode=cancel", "PATCH")
            if jobs:
                return
            time.sleep(LOOK_SECONDS)

    def _ask(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(f"{self.address}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)
