"""From every state that stopping a job can leave, and after a fault of any call to the file system,
the job ends with the same bytes. (Here the quickest scenario; .ci/run has all of them, and
`tests.soak.faults` injects all faults.)"""

import json
import subprocess
import sys

import pytest

SWEEP = """
import dataclasses, json
from tests.soak.{module} import *
print(json.dumps(dataclasses.asdict({call})))
"""


def in_a_process(module: str, call: str) -> dict[str, object]:
    """What a sweep found. It forks, which a process with threads must not."""
    command = [sys.executable, "-c", SWEEP.format(module=module, call=call)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, object] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", ["count"])
def test_from_every_state_that_stopping_leaves_a_job_ends_with_the_same_bytes(name: str) -> None:
    found = in_a_process("stops", f'explore(SCENARIOS["{name}"])')
    assert found["faults"] == []
    assert int(str(found["states"])) > 20


@pytest.mark.parametrize("job", ["encode"])
def test_no_fault_of_a_call_to_the_file_system_costs_anything_but_time(job: str) -> None:
    found = in_a_process("faults", f'sweep("{job}", every=97)')
    assert found["wrong"] == []
    assert int(str(found["faults"])) > 5
