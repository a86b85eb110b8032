"""The command `wordpiece` as a process: what begins it and what ends it.

The commands themselves are in `pipelines.commands.program`, which is imported when signals are
taken care of: a process can be interrupted at any moment, also while it imports its modules.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as that of `typing`, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command. Exit status: 0 done, 1 the job failed, 2 the call or config is wrong, 130
    interrupted. `argv`: the arguments, if this is not the command's own process."""
    from pipelines.running import interrupts

    is_own_process = argv is None
    if is_own_process:
        interrupts.begin()
    try:
        with interrupts.held():
            from pipelines.commands.program import prepare, run

            if is_own_process:
                prepare()
        status = run(sys.argv[1:] if argv is None else argv)
        interrupts.end(status)
    except KeyboardInterrupt:
        status = interrupts.STATUS
        interrupts.end(status)
        print("wordpiece: interrupted; run the same command again to go on", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
