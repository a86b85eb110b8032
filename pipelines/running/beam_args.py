"""Arguments for Beam as they are shown and recorded: values that may be secret are left out.

Runners have hundreds of options, some of which hold passwords, keys, or the whole environment of
workers. So a value is shown only if it is of an option that is known to hold nothing like that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from wordpiece_core.declaration import called
from wordpiece_core.uri import HIDDEN, without_secrets

HARMLESS = frozenset(
    (
        *("runner", "streaming", "no_auth", "job_name", "region", "zone", "update", "dry_run"),
        *("direct_running_mode", "direct_num_workers", "direct_runner_bundle_repeat"),
        *("direct_runner_use_stacked_bundle", "direct_test_splits", "job_endpoint", "job_port"),
        *("artifact_endpoint", "artifact_port", "expansion_port", "job_server_timeout"),
        *("environment_type", "environment_cache_millis", "sdk_worker_parallelism"),
        *("flink_master", "flink_version", "parallelism", "max_parallelism", "max_bundle_size"),
        *("max_bundle_time_mills", "checkpointing_interval", "checkpointing_mode"),
        *("min_pause_between_checkpoints", "state_backend", "object_reuse", "fasterCopy"),
        *("spark_master_url", "spark_version", "spark_history_dir", "prism_location"),
        *("prism_log_level", "prism_log_kind", "prism_beam_version_override"),
        *("num_workers", "max_num_workers", "autoscaling_algorithm", "worker_machine_type"),
        *("machine_type", "disk_size_gb", "worker_disk_type", "disk_type", "worker_region"),
        *("worker_zone", "number_of_worker_harness_threads", "max_cache_memory_usage_mb"),
        *(
            "temp_location",
            "staging_location",
            "resource_hint",
            "resource_hints",
            "default_sdk_harness_log_level",
        ),
        *("save_main_session", "pickle_library", "type_check_strictness", "auto_unique_labels"),
    )
)
"""The names of options whose values are no secrets."""
_NAME = re.compile(r"--[A-Za-z][\w.-]*")
_LEAST_HIDDEN = 4  # characters of a value that is looked for in messages


def beam_args_name() -> str:
    """What messages call the arguments for Beam."""
    return called("arguments after --", "beam_args")


def shown_args(beam_args: Sequence[str]) -> list[str]:
    """The arguments, without what may be secret.

    >>> shown_args(["--runner=FlinkRunner", "--s3_secret_access_key=key", "--parallelism", "2"])
    ['--runner=FlinkRunner', '--s3_secret_access_key=***', '--parallelism', '2']
    """
    parts = _parts(beam_args)
    return [name + (HIDDEN if is_hidden else value) for name, value, is_hidden in parts]


def without_values(text: str, beam_args: Sequence[str]) -> str:
    """A text, such as a message of Beam, without the values that may be secret."""
    hidden = [value for _, value, is_hidden in _parts(beam_args) if is_hidden]
    found = {piece for value in hidden for piece in _pieces(value)}
    for value in sorted((v for v in found if len(v) >= _LEAST_HIDDEN), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text


def _parts(beam_args: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Of each argument the name with its `=`, the value, and whether that is not shown."""
    last = ""
    for arg in beam_args:
        name = _NAME.match(arg)
        if name is None or arg[name.end() : name.end() + 1] not in ("", "="):
            yield "", arg, not _is_harmless(last, arg)
            continue
        last, equals, value = arg.partition("=")
        yield last + equals, value, bool(equals) and not _is_harmless(last, value)


def _is_harmless(name: str, value: str) -> bool:
    known = name.lstrip("-").replace("-", "_") in HARMLESS
    return known and "@" not in value and without_secrets(value) == value


def _pieces(value: str) -> Iterator[str]:
    """A value, and what messages may show of it: the texts in JSON, and the parts of a list."""
    yield value
    yield repr(value)[1:-1]
    try:
        yield from _texts(json.loads(value))
    except (ValueError, RecursionError):
        for part in re.split(r"[\s;,&]+", value):
            yield part.partition("=")[2] or part


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)
