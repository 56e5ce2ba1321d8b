"""Counts which vocabulary entries stand next to each other in the text that a phase trains on. Does not import torch.

Names carry shapes: T tokens, V vocabulary, C contexts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import unmasked
from bertwright.examples.loader import Loader

WINDOW = 5
"""Tokens on either side that count as neighbours; one at distance d counts 1/d (Pennington et al. 2014 §4.2)."""
CONTEXTS = 2048
"""Most frequent entries that are counted as neighbours of all others. They make up most of a text, and the counts of
rare ones say little; a complete table would have V² cells."""
_BLOCK = 1 << 20
"""Tokens whose neighbours are counted at a time: enough to hide numpy's call overhead, few enough for little memory."""


@dataclass(frozen=True)
class Text:
    """The tokens of complete sequences, without masks."""

    ids_T: NDArray[np.int32]
    """[T] vocabulary entries."""
    sequence_T: NDArray[np.int32]
    """[T] number of the sequence that each token belongs to, not decreasing."""


def read_text(loader: Loader, most: int) -> Text:
    """Return the text of the first steps of a phase, about `most` tokens or one epoch: as many whole steps as that
    needs, with their masks undone."""
    examples = min(loader.examples.sizes[0], math.ceil(most / loader.examples.mean_tokens))
    ids, lengths = [], []
    for step in range(loader.settings.batches.step_of(examples - 1) + 1):
        for batch in loader.step(step):
            ids.append(unmasked(batch).astype(np.int32))
            lengths.append(np.diff(batch.cu_seqlens))
    sequences = np.concatenate(lengths)
    return Text(np.concatenate(ids), np.repeat(np.arange(len(sequences), dtype=np.int32), sequences))


def cooccurrences(text: Text, entries: int, contexts: int = CONTEXTS) -> NDArray[np.float32]:
    """Return [V, 2·C] for V `entries`: their neighbours among the C `contexts`, after them and then before them, each
    weighted by 1/distance."""
    frequency_V = np.bincount(text.ids_T, minlength=entries)
    # Stable, so that entries of the same frequency are chosen alike everywhere.
    frequent_C = np.argsort(-frequency_V, kind="stable")[:contexts]
    column_V = np.full(entries, -1, np.int32)
    column_V[frequent_C] = np.arange(len(frequent_C))
    counts = np.zeros((entries, 2, len(frequent_C)), np.float32)
    for start in range(0, len(text.ids_T), _BLOCK):
        for distance in range(1, WINDOW + 1):
            before, after = _pairs(text, start, distance)
            for side, (entry, neighbour) in enumerate(((before, after), (after, before))):
                column = column_V[neighbour]
                counted = column >= 0
                # As indices of the flat table, for which numpy adds much faster.
                cells = (entry[counted].astype(np.int64) * 2 + side) * len(frequent_C) + column[counted]
                np.add.at(counts.reshape(-1), cells, np.float32(1 / distance))
    return counts.reshape(entries, -1)


def _pairs(text: Text, start: int, distance: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the entries [N] of a block of tokens, and those [N] `distance` tokens later in the same sequence."""
    later = slice(start + distance, start + distance + _BLOCK)
    after, its_sequence = text.ids_T[later], text.sequence_T[later]
    block = slice(start, start + len(after))
    together = text.sequence_T[block] == its_sequence
    return text.ids_T[block][together], after[together]
