"""Checks that two artifacts were made with the same entries and text settings."""

from __future__ import annotations

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError


def check_same_vocabulary(artifact: Artifact, vocab: Artifact) -> None:
    """Raise `ArtifactError`, naming both, if `artifact` has the hash of another vocabulary than `vocab`.

    Every artifact built from token ids has the count `vocabulary`: SHA-256 over the entries and text settings.
    """
    recorded, expected = str(artifact.counts["vocabulary"]), str(vocab.counts["vocabulary"])
    # Ids of another vocabulary are valid numbers: nothing would raise an error, but the model would be useless.
    if recorded != expected:
        raise ArtifactError(
            f"{artifact.path} was made with another vocabulary than {vocab.path} ({recorded[:12]} instead of "
            f"{expected[:12]}): its token ids belong to other words. Give the vocabulary it was made with, or run the "
            f"stage {artifact.manifest['stage']} again."
        )
