"""Check a given vocabulary, which a run reads only after it has made the corpus."""

from __future__ import annotations

from collections.abc import Sequence

from bertwright.check.verdict import Verdict, ok, raised
from bertwright.core.errors import BertwrightError
from bertwright.vocab.config import VocabConfig


def given_vocabulary(config: VocabConfig, pending: Sequence[str]) -> tuple[list[str] | None, list[Verdict]]:
    """Return the entries of `vocab.file` (None: none is given, it is unusable, or no pending stage reads it), and the
    verdict on it."""
    if config.file is None or not {"vocab", "examples"} & {*pending}:
        return None, []
    # Imported here: it needs numpy and tokenizers, which recipes without a given vocabulary do not.
    from bertwright.vocab.load import check_reachable, read_vocabulary

    try:
        entries = read_vocabulary(config.file)
        check_reachable(entries, config)
    except BertwrightError as cause:
        return None, [raised("vocab.file", cause)]
    return entries, [ok("vocab.file", f"{config.file} has {len(entries):,} entries")]
