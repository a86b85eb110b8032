"""Fixtures and settings of all tests."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Jobs wait for the disk after every file they write. So the files of tests are in memory, on Linux
# if there is room; `PYTEST_DEBUG_TEMPROOT`, or `--basetemp`, names another directory.
MEMORY, NEEDED_BYTES = Path("/dev/shm"), 2 << 30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > NEEDED_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Numbers of examples of Hypothesis; `make soak` uses the profile "soak". There is no deadline,
# because machines may be busy.
for name, examples in (("quick", 40), ("soak", 600)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("quick")

# Tests send these signals. A background job of a shell script ignores them, and so does `nohup`.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Create temporary files in the directory of the tests, which pytest deletes. Processes that
    are killed leave theirs."""
    before, folder = os.environ.get("TMPDIR"), str(tmp_path_factory.mktemp("temporary"))
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    yield
    tempfile.tempdir = None
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before
