"""YAML as people write it. The only module that writes YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml


class _Plain(yaml.SafeDumper):  # type: ignore[misc]
    """Block style; lists are indented below their keys, and multi-line strings are blocks."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        # PyYAML would write the items of a list in the same column as its key.
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        # Otherwise a value that occurs twice is written once, and referred to as *id001.
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Plain.add_representer(str, _text)


def yaml_text(values: Mapping[str, Any]) -> str:
    """Return `values` as a YAML document in block style, in their order, without aliases."""
    return str(yaml.dump(dict(values), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120))
