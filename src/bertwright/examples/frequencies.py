"""Token frequencies of the vocabulary entries, and the loss of a unigram model based on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.examples.store import Store, map_file

AT_ONCE = 1 << 22
COUNTS = "token_counts"
"""Token counts by entry, uint64: a file of an examples artifact that has no training store."""


def token_counts(tokens: NDArray[Any], vocabulary_size: int) -> NDArray[np.int64]:
    """Count each entry in a (memory-mapped) array of ids, read 4 Mi ids at a time; returns [vocabulary_size]."""
    counts = np.zeros(vocabulary_size, np.int64)
    # A store may be larger than memory, and bincount converts each id to 8 bytes.
    for start in range(0, len(tokens), AT_ONCE):
        counts += np.bincount(tokens[start : start + AT_ONCE], minlength=vocabulary_size)
    return counts


def log_probabilities(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """[V] log p of each entry, with 1 added to its count [V], so that unseen entries have a nonzero probability."""
    logs: NDArray[np.float64] = np.log(counts + 1.0) - np.log(counts.sum() + len(counts))
    return logs


def training_counts(examples: Artifact) -> NDArray[np.int64]:
    """How often each entry occurs in the training text of an examples artifact, from a corpus or imported;
    returns [vocabulary_size]."""
    if COUNTS in examples.names():
        return map_file(examples.file(COUNTS), "<u8").astype(np.int64)
    store = Store.open(examples)
    return token_counts(store.tokens, store.vocabulary.size)


def unigram_loss(store: Path, vocabulary_size: int) -> float:
    """Mean of -log p over all held-out tokens, in nats, with p from token frequencies in training; 0.0 without tokens.

    A model that ignores the context scores about this loss, apart from the choice of masked tokens.
    """
    return unigram_loss_of(token_counts(_tokens(store, "train"), vocabulary_size), store)


def unigram_loss_of(train: NDArray[np.int64], store: Path) -> float:
    """As `unigram_loss`, from the counts of each entry in the training text, [vocabulary_size]."""
    heldout = token_counts(_tokens(store, "heldout"), len(train))
    return round(-float(log_probabilities(train) @ heldout) / max(1, int(heldout.sum())), 4)


def _tokens(store: Path, split: str) -> NDArray[Any]:
    return map_file(store / f"{split}.tokens", json.loads((store / f"{split}.json").read_text())["dtype"])
