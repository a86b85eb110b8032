"""Namespaces of Linux for a program: a network of its own, with no interface but loopback, and
processes of its own, which end with it."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys

NAMESPACES = ("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child")
PROC = ("--mount-proc",)
INSIDE = "WORDPIECE_SUITE_INSIDE"


class NoNamespacesError(Exception):
    """Namespaces cannot be made here."""


def enter(module: str) -> None:
    """Begins again, as `python -m MODULE` with the same arguments, in namespaces of its own. If
    that has been done, it brings up the loopback interface, and returns."""
    if INSIDE in os.environ:
        _bring_loopback_up()
        return
    namespaces = [*NAMESPACES, *PROC]
    try:
        tried = subprocess.run([*namespaces, "true"], capture_output=True, text=True, check=False)
        why = tried.stderr.strip() if tried.returncode else None
    except FileNotFoundError:
        why = "there is no unshare"
    if why is not None:
        raise NoNamespacesError(f"cannot make a network of its own here ({why})")
    command = [*namespaces, sys.executable, "-m", module, *sys.argv[1:]]
    os.execvpe(command[0], command, os.environ | {INSIDE: "1"})


def are_entered() -> bool:
    """Return True if this process is in its own namespaces."""
    return INSIDE in os.environ


def _bring_loopback_up() -> None:
    """Brings up the loopback interface of a new network namespace, as `ip link set lo up` does."""
    set_flags, is_up = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", is_up))
