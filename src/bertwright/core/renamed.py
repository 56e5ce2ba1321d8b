"""Renamed recipe keys: an old key is refused with an error that names the new one, never accepted as an alias."""

from __future__ import annotations

from collections.abc import Sequence

RENAMED = {
    "corpus.downloads": "corpus.cache_dir",
    "train.init": "train.init_from",
    "train.keep": "train.keep_checkpoints",
    "train.phases.0.documents": "train.phases.0.document_range",
    "train.phases.0.masking.frozen": "train.phases.0.masking.static",
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


def _without_numbers(dotted: str) -> str:
    return ".".join(part for part in dotted.split(".") if not part.isdigit())
