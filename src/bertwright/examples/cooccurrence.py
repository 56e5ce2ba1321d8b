"""Counts which vocabulary entries stand next to each other in the text that a phase trains on. Does not import torch.

Names carry shapes: T tokens, V vocabulary, C contexts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Loader

WINDOW = 5
"""Tokens on either side that count as neighbours; one at distance d counts 1/d (Pennington et al. 2014 §3.1)."""
CONTEXTS = 2048
"""Most frequent entries that are counted as neighbours of all others. They make up most of a text, and the counts of
rare ones say little; a complete table would have V² cells."""


@dataclass(frozen=True)
class Text:
    """The tokens of complete sequences, without masks."""

    ids_T: NDArray[np.int32]
    """[T] vocabulary entries."""
    sequence_T: NDArray[np.int32]
    """[T] number of the sequence that each token belongs to, not decreasing."""


def read_text(loader: Loader, most: int) -> Text:
    """Return the text of a phase's first steps: about `most` tokens, but no more than its first epoch."""
    steps = loader.settings.batches.step_of(min(loader.epoch_sizes[0], round(most / loader.mean_tokens) + 1) - 1) + 1
    batches = [batch for step in range(steps) for batch in loader.step(step)]
    lengths = np.concatenate([np.diff(batch.cu_seqlens) for batch in batches])
    sequence_T = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    return Text(np.concatenate([_unmasked(batch) for batch in batches]), sequence_T)


def cooccurrences(text: Text, entries: int, contexts: int = CONTEXTS) -> NDArray[np.float32]:
    """Return [V, 2·C]: the neighbours of each of `entries` entries after it, then before it, weighted by 1/distance."""
    frequency_V = np.bincount(text.ids_T, minlength=entries)
    # Stable, so that entries of the same frequency are chosen alike everywhere.
    frequent_C = np.argsort(-frequency_V, kind="stable")[:contexts]
    column_V = np.full(entries, -1)
    column_V[frequent_C] = np.arange(len(frequent_C))
    counts = np.zeros((entries, 2, len(frequent_C)), np.float32)
    for distance in range(1, WINDOW + 1):
        together = text.sequence_T[:-distance] == text.sequence_T[distance:]
        before, after = text.ids_T[:-distance][together], text.ids_T[distance:][together]
        for side, (entry, neighbour) in enumerate(((before, after), (after, before))):
            column = column_V[neighbour]
            counted = column >= 0
            cells = (entry[counted].astype(np.int64) * 2 + side) * len(frequent_C) + column[counted]
            np.add.at(counts.reshape(-1), cells, np.float32(1 / distance))
    return counts.reshape(entries, -1)


def _unmasked(batch: MicroBatch) -> NDArray[np.int32]:
    ids_T = batch.token_ids.astype(np.int32)
    ids_T[batch.prediction_positions] = batch.labels
    return ids_T
