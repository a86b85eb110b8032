"""Importing Beam: without its warning for users who do not use Google Cloud, and in the process of
the command only what a run on this machine needs.

Beam imports its connectors to databases and stores, and what those need. It can do without most of
them: it then takes them as not installed (`CONNECTORS`). What else it imports, but does not use in
the jobs here, is loaded when it is first used (`_Later`). In other processes all of Beam is loaded,
as programs may use it for themselves.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from pipelines.running import interrupts

CONNECTORS = frozenset(
    {
        "apache_beam.io.aws.s3filesystem",
        "apache_beam.io.azure.blobstoragefilesystem",
        "apache_beam.io.gcp.bigquery",
        "apache_beam.io.gcp.gcsfilesystem",
        "apache_beam.io.hadoopfilesystem",
        "apitools",  # for Google Cloud, as the next two
        "google.api_core",
        "google.cloud",
        "bson",  # for MongoDB
    }
)
LATER = ("httplib2", "yaml")

_own_process = _only_local = False


def in_own_process(*, only_local: bool) -> None:
    """Says that this process is the command's own. `only_local`: that its job runs on this machine.

    pandas is not loaded in it then. Nothing here uses it, but Arrow would load it, where it is
    installed, to see whether a list is one of its series.
    """
    global _own_process, _only_local
    _own_process, _only_local = True, only_local
    sys.meta_path.insert(0, _Without({"pandas"}))


def load_beam() -> None:
    """Imports Beam, unless somebody has. The logging of the program is not changed: Beam's warning
    that "apitools" is missing would configure it as a side effect."""
    if "apache_beam" in sys.modules:
        return
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    root.addFilter(_is_of_use)
    try:
        with without_collections():
            if _only_local:
                _load_in_part()
            else:
                import apache_beam  # noqa: F401
    finally:
        root.removeFilter(_is_of_use)
        root.removeHandler(handler)


def _is_of_use(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("apitools not found")


@contextmanager
def without_collections() -> Iterator[None]:
    """Imports modules without looking for garbage: all that they make is there to stay, and Python
    would go through it again and again, for a tenth of the time. Signals wait meanwhile."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with interrupts.held():
            yield
    finally:
        if _own_process:
            gc.freeze()
        if was_enabled:
            gc.enable()


class _Without:
    """Makes modules be as if they were not installed."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self.names:
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def _load_in_part() -> None:
    """Imports Beam without connectors. Afterwards any module can be imported as always."""
    stand_ins = {name: _Later(name) for name in LATER} | _beartype()
    stand_ins = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    finder = _Without(CONNECTORS)
    sys.meta_path.insert(0, finder)
    sys.modules.update(stand_ins)
    try:
        import apache_beam  # noqa: F401
    finally:
        sys.meta_path.remove(finder)
        _take_away(stand_ins)


def _take_away(stand_ins: Mapping[str, ModuleType]) -> None:
    for name, module in stand_ins.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


class _Later(ModuleType):
    """Stands for a module until something in it is used. Then the module is imported."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks for these
            raise AttributeError(name)
        _take_away({self.__name__: self})
        return getattr(import_module(self.__name__), name)


def _beartype() -> dict[str, _Later]:
    """What Beam takes from beartype, which has 300 modules: it compares type hints that Beam cannot
    compare by itself. The jobs here have none."""
    door, roar = _Later("beartype.door"), _Later("beartype.roar")

    class BeartypeDoorException(Exception):  # noqa: N818
        pass

    def is_subhint(*hints: object) -> bool:
        _take_away({"beartype.door": door, "beartype.roar": roar})
        beartype, errors = map(import_module, ("beartype.door", "beartype.roar"))
        try:
            return bool(beartype.is_subhint(*hints))
        except errors.BeartypeDoorException as error:
            raise BeartypeDoorException(str(error)) from error

    vars(door).update(is_subhint=is_subhint)
    vars(roar).update(BeartypeDoorException=BeartypeDoorException)
    return {"beartype.door": door, "beartype.roar": roar}
