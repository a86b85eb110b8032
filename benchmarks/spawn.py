"""Run a command and print its resources as JSON.

Arguments: cores to run on, file for the command's output, command. This is a small process of its
own because Linux reports at least the memory of the parent as the peak memory of a process.
"""

from __future__ import annotations

import json
import os
import sys
import time


def main(cores: int, log: str, command: list[str]) -> None:
    """Print `status`, `seconds` from start to end, `cpu_seconds`, and `peak_bytes` of the largest
    process of the command."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    output = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    errors = (os.POSIX_SPAWN_DUP2, 1, 2)
    started = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[output, errors])
    _, status, usage = os.wait4(pid, 0)
    taken = {
        "seconds": time.perf_counter() - started,
        "status": os.waitstatus_to_exitcode(status),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    print(json.dumps(taken))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
