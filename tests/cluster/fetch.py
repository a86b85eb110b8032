"""Fetches the servers of the suite with Maven, Go and npm, once: they stay in the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

LIBRARIES = Path(__file__).parent / "libraries"
OLDEST_JAVA = 17
GO_PROGRAMS = {
    "fake-gcs-server": "github.com/fsouza/fake-gcs-server@v1.56.1",
    "prism": "github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0",
}
"""Programs in Go, with their versions. Prism has the version of Beam in Python."""
AZURITE = "azurite@3.35.0"


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
    for name, package in (("mvn", "maven"), ("go", "golang"), ("npm", "npm")):
        if shutil.which(name) is None:
            raise MissingToolError(f"needs {name}, but there is none; install it ({package})")


def fetch_all() -> None:
    """Fetch missing programs."""
    for pom in sorted(LIBRARIES.glob("*/pom.xml")):
        classpath(pom.parent.name)
    for name in GO_PROGRAMS:
        go_program(name)
    azurite()


def go_program(name: str) -> Path:
    """The program of that name. It is built if that has not been done for this version."""
    source = GO_PROGRAMS[name]
    directory = _cache() / f"{name}-{source.rpartition('@')[2]}"

    def build(part: Path) -> None:
        subprocess.run(["go", "install", source], check=True, env=os.environ | {"GOBIN": str(part)})

    return _fetched(directory, build) / name


def azurite() -> Path:
    """The server of Azure Blob Storage."""

    def install(part: Path) -> None:
        quiet = ["--silent", "--no-audit", "--no-fund"]
        subprocess.run(["npm", "install", *quiet, "--prefix", str(part), AZURITE], check=True)

    directory = _fetched(_cache() / AZURITE.replace("@", "-"), install)
    return directory / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def classpath(name: str) -> str:
    """The class path of what `libraries/NAME/pom.xml` lists. It is fetched if that has not been
    done for this list."""
    pom = LIBRARIES / name / "pom.xml"

    def copy(part: Path) -> None:
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={part}"], check=True)

    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    return f"{_fetched(_cache() / f'{name}-{digest}', copy)}/*"


def _fetched(directory: Path, fetch: Callable[[Path], None]) -> Path:
    """A directory of the cache. `fetch` fills it, unless it is there."""
    if not directory.exists():
        print(f"fetching {directory.name} to {directory}", flush=True)
        part = directory.with_name(f"{directory.name}.{os.getpid()}")
        try:
            part.mkdir(parents=True)
            fetch(part)
            part.rename(directory)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return directory


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "wordpiece-beam" / "cluster"
