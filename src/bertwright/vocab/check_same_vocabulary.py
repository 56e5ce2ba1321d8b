"""Whether two artifacts speak of the same entries and text settings."""

from __future__ import annotations

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError


def check_same_vocabulary(made: Artifact, vocab: Artifact) -> None:
    """Raise `ArtifactError` when `made` carries the hash of another vocabulary than `vocab`; it names both.

    Every artifact that is made of token ids has the count `vocabulary`: SHA-256 over the entries and text settings.
    """
    theirs, ours = str(made.counts["vocabulary"]), str(vocab.counts["vocabulary"])
    if theirs != ours:
        raise ArtifactError(
            f"{made.path} was made with another vocabulary than {vocab.path} ({theirs[:12]} instead of {ours[:12]}): "
            f"its ids stand for other words. Give the vocabulary it was made with, or run the stage "
            f"{made.manifest['stage']} again."
        )
