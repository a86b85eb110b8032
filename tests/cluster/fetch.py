"""Fetches the servers of the suite with Maven, once: they stay in the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

LIBRARIES = Path(__file__).parent / "libraries"
OLDEST_JAVA = 17


class MissingToolError(Exception):
    """A program that the suite needs is not there."""


def check_tools() -> None:
    """Raises MissingToolError without Java 17 and Maven."""
    java = shutil.which("java")
    said = subprocess.run([java, "-version"], capture_output=True, text=True) if java else None
    version = re.search(r'version "(\d+)', said.stderr) if said else None
    if version is None or int(version[1]) < OLDEST_JAVA:
        found = f"this one is {version[1]}" if version else "there is no java"
        raise MissingToolError(
            f"needs Java {OLDEST_JAVA} or later, but {found}; install it (Debian, Ubuntu:"
            " openjdk-17-jre-headless; macOS: brew install openjdk@17)"
        )
    if shutil.which("mvn") is None:
        raise MissingToolError(
            "needs Maven, but there is no mvn; install it (Debian, Ubuntu: maven; macOS: brew"
            " install maven)"
        )


def fetch_all() -> None:
    """Fetches what is not there."""
    for pom in sorted(LIBRARIES.glob("*/pom.xml")):
        classpath(pom.parent.name)


def classpath(name: str) -> str:
    """The class path of what `libraries/NAME/pom.xml` lists. It is fetched if that has not been
    done for this list."""
    pom = LIBRARIES / name / "pom.xml"
    directory = _cache() / f"{name}-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}"
    if not directory.exists():
        print(f"fetching {name} to {directory}", flush=True)
        part = directory.with_suffix(f".{os.getpid()}")
        try:
            command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
            subprocess.run([*command, f"-DoutputDirectory={part}"], check=True)
            part.rename(directory)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return f"{directory}/*"


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "wordpiece-beam" / "cluster"
