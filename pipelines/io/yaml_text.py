"""YAML whose values are texts, as on a command line, or None. So `on` is a key, and a column can be
named `2000-01-01`."""

from __future__ import annotations

from typing import Any

import yaml

from wordpiece_core.errors import OptionError, one_line


class _Loader(yaml.BaseLoader):
    """A loader that refuses a key that is given twice."""

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        is_null = node.style is None and node.value in ("", "~", "null", "Null", "NULL")
        return None if is_null else super().construct_scalar(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for number, (key, _) in enumerate(node.value):
            if key.value in keys[:number]:
                fault = f"{key.value!r} is given twice; remove one"
                raise yaml.constructor.ConstructorError(None, None, fault, key.start_mark)
        return super().construct_mapping(node, deep)


def parse_mapping(path: str, data: bytes) -> dict[str, Any]:
    """Parse a file of options. Raises OptionError for anything else than a mapping."""
    try:
        value = yaml.load(data.decode(), _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" line {mark.line + 1}" if mark else ""
        raise OptionError(f"{path}{line}: not YAML ({error.problem or error.context})") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{path}: not YAML ({one_line(error)})") from error
    if not isinstance(value, dict | None):
        raise OptionError(f"{path}: not a mapping of options")
    return value or {}
