"""Checks that take minutes or longer: jobs that are stopped, killed, or run on a failing store.

    python -m tests.soak.stops     every state that stopping a job can leave
    python -m tests.soak.faults    every call to the file system fails

`make soak` runs the first two, the random checks of `tests/parity`, and the tests marked `soak`.
"""

import os
import tempfile
from pathlib import Path


def keep_temporary_files(folder: Path) -> None:
    """Puts the temporary files of this process, and of those it starts from now on, into a folder,
    because processes that are killed leave some."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
