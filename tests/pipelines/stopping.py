"""The command in processes that stop at a state of the disk, not at a moment.

    python stopping.py KILL 3 PATTERN ARGUMENT...

runs `wordpiece ARGUMENT...`. Before it makes the third change of the disk that PATTERN is found in,
as in "written DIRECTORY/vocab.txt", the process is killed; with STOP it is stopped, until SIGCONT;
with INT it is interrupted, as by Ctrl-C, and changes nothing before that has reached it.

`killed_before` forks a process that has already loaded everything, which takes a tenth of the time.
"""

from __future__ import annotations

import itertools
import multiprocessing.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CHANGES = ("made", "written", "deleted")
HANGS = 300.0  # timeout of a process in seconds


# --- In the process -------------------------------------------------------------------------------


def stop_before(number: int, pattern: str, stop: Callable[[], None]) -> None:
    """Has `stop` called before the change of that number, from 1, which the pattern is found in."""
    from wordpiece_core import storage

    attempt, numbers = storage.attempt, itertools.count(1)

    def stopping(done: str, path: str, call: Callable[[], object]) -> object:
        if done in CHANGES and re.search(pattern, f"{done} {path}") and next(numbers) == number:
            stop()
        return attempt(done, path, call)

    storage.attempt = stopping  # type: ignore[assignment]


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _interrupting() -> Callable[[], None]:
    """Interrupt the main thread, and return when this is done. The process may have been started
    with SIGINT ignored, as a shell does for background jobs."""
    told = threading.Event()

    def tell(*_: object) -> None:
        told.set()
        raise KeyboardInterrupt

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        told.wait()

    signal.signal(signal.SIGINT, tell)
    return interrupt


def _main() -> None:
    how, number, pattern = sys.argv[1:4]
    del sys.argv[1:4]
    stop = {"KILL": lambda: kill, "STOP": lambda: _stop, "INT": _interrupting}[how]()
    stop_before(int(number), pattern, stop)
    from pipelines.commands.cli import main

    main()


# --- In tests -------------------------------------------------------------------------------------


def _command(how: str, number: int, pattern: str, *args: object) -> list[str]:
    # -P: modules next to this file are not libraries.
    return [sys.executable, "-P", __file__, how, str(number), pattern, *map(str, args)]


FORKS = multiprocessing.get_context("forkserver")
multiprocessing.util.get_temp_dir()  # not among the files of tests, which are deleted before
FORKS.set_forkserver_preload(
    [
        "pipelines.training.train",
        "pipelines.encoding.pipeline",
        "pipelines.encoding.follow",
        "pipelines.encoding.resharding.pipeline",
    ]
)


def killed_before(number: int, pattern: str, *args: object) -> None:
    """Runs the command until it is killed, which it must be."""
    status, said = run_killed(number, pattern, *args)
    assert status == -signal.SIGKILL, (status, said)


def run_killed(number: int, pattern: str, *args: object) -> tuple[int, str]:
    """Runs the command until it is killed, or to its end if it makes fewer changes. Returns the
    exit status, and what it wrote to standard output and error."""
    with tempfile.NamedTemporaryFile() as log:
        call = (number, pattern, [*map(str, args)], log.name, os.getcwd(), dict(os.environ))
        running = FORKS.Process(target=_kill_before, args=call)
        running.start()
        running.join(HANGS)
        status = running.exitcode
        running.kill()
        assert status is not None, "it does not end"
        return status, log.read().decode(errors="replace")


def _kill_before(
    number: int, pattern: str, args: list[str], log: str, folder: str, environment: dict[str, str]
) -> None:
    """In the process that is forked."""
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    stop_before(number, pattern, kill)
    from pipelines.commands.cli import main

    main(args)


def interrupted_before(
    number: int, pattern: str, *args: object
) -> subprocess.CompletedProcess[str]:
    """Runs the command, which is interrupted, to its end."""
    command = _command("INT", number, pattern, *args)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS)


@contextmanager
def stopped_before(
    number: int, pattern: str, *args: object
) -> Iterator[Callable[[], tuple[int, str]]]:
    """The command stopped in its middle while the block runs. What is given there lets it go on to
    its end, and returns its exit status and what it wrote to standard error."""
    with subprocess.Popen(
        _command("STOP", number, pattern, *args),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        guard = threading.Timer(HANGS, running.kill)
        guard.start()
        try:
            _, status = os.waitpid(running.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), "it has ended before it was to stop"

            def go_on() -> tuple[int, str]:
                running.send_signal(signal.SIGCONT)
                _, err = running.communicate()
                return running.returncode, err

            yield go_on
        finally:
            guard.cancel()
            with suppress(ProcessLookupError):
                running.kill()


if __name__ == "__main__":
    _main()
