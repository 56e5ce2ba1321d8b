"""Renamed recipe keys: an old key is refused with an error that names the new one, never accepted as an alias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

RENAMED = {
    "corpus.downloads": "corpus.cache_dir",
    "train.init": "train.init_from",
    "train.keep": "train.keep_checkpoints",
    "train.phases.0.documents": "train.phases.0.document_range",
    "train.phases.0.masking.frozen": "train.phases.0.masking.static",
    "vocab.alphabet": "vocab.alphabet_coverage",
}
"""Old keys and their new names."""


def renamed(dotted: str, known: Sequence[str] = ()) -> str:
    """The new name of an old key, else ""; one without its section (`init`) counts if its new name is in `known`."""
    bare = _without_numbers(dotted)
    for old, new in RENAMED.items():
        last = new.rpartition(".")[2]
        if bare == _without_numbers(old) or (last in known and _without_numbers(old).endswith(f".{bare}")):
            return ".".join([*dotted.split(".")[:-1], last])
    return ""


def with_new_names(value: Any, prefix: str = "") -> Any:
    """A JSON value with the settings below the dotted key `prefix`, in which old keys have their new names."""
    if isinstance(value, list):
        return [with_new_names(item, prefix) for item in value]
    if not isinstance(value, dict):
        return value
    keys = {key: f"{prefix}.{key}" if prefix else key for key in value}
    new_names = {key: (renamed(dotted) or key).rpartition(".")[2] for key, dotted in keys.items()}
    return {new_names[key]: with_new_names(item, keys[key]) for key, item in value.items()}


def _without_numbers(dotted: str) -> str:
    return ".".join(part for part in dotted.split(".") if not part.isdigit())
