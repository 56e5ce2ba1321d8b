"""Keys of the recipe that have another name now: an old one is refused with the new one's name, never taken for it."""

from __future__ import annotations

from collections.abc import Sequence

RENAMED = {
    "corpus.downloads": "corpus.cache_dir",
    "train.init": "train.init_from",
    "train.keep": "train.keep_checkpoints",
    "train.phases.0.documents": "train.phases.0.document_range",
    "train.phases.0.masking.frozen": "train.phases.0.masking.static",
}
"""What keys were called, and what they are called now: an old one is refused with the new one's name."""


def renamed(dotted: str, known: Sequence[str] = ()) -> str:
    """What an old key is called now, else ""; one without its section (`init`) is told by the new one among `known`."""
    bare = _without_numbers(dotted)
    for old, new in RENAMED.items():
        last = new.rpartition(".")[2]
        if bare == _without_numbers(old) or (last in known and _without_numbers(old).endswith(f".{bare}")):
            return ".".join([*dotted.split(".")[:-1], last])
    return ""


def _without_numbers(dotted: str) -> str:
    return ".".join(part for part in dotted.split(".") if not part.isdigit())
