"""How often each entry of the vocabulary occurs, and what guessing by that alone would score."""

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
"""The file of an examples artifact without a training store that says how often each entry occurs: uint64."""


def token_counts(tokens: NDArray[Any], vocabulary_size: int) -> NDArray[np.int64]:
    """How often each entry occurs in a (memory-mapped) array of ids, read 4 Mi ids at a time: [vocabulary_size]."""
    counts = np.zeros(vocabulary_size, np.int64)
    # A store may be larger than memory, and bincount makes 8 bytes of each id that it reads.
    for start in range(0, len(tokens), AT_ONCE):
        counts += np.bincount(tokens[start : start + AT_ONCE], minlength=vocabulary_size)
    return counts


def log_probabilities(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """[V] log p of each entry, with one added to its count [V], so that one which was never seen has a probability."""
    logs: NDArray[np.float64] = np.log(counts + 1.0) - np.log(counts.sum() + len(counts))
    return logs


def training_counts(examples: Artifact) -> NDArray[np.int64]:
    """How often each entry occurs in the training text of an examples artifact, its own or that of data made elsewhere:
    [vocabulary_size]."""
    if COUNTS in examples.names():
        return map_file(examples.file(COUNTS), "<u8").astype(np.int64)
    store = Store.open(examples)
    return token_counts(store.tokens, store.vocabulary.size)


def unigram_loss(store: Path, vocabulary_size: int) -> float:
    """Mean of -log p of all held-out tokens in nats, p by their frequency in the training text; 0.0 without any.

    What a model without use for the context scores, give or take the choice of the masked tokens.
    """
    return unigram_loss_of(token_counts(_tokens(store, "train"), vocabulary_size), store)


def unigram_loss_of(train: NDArray[np.int64], store: Path) -> float:
    """The same, given how often each entry occurs in the training text: [vocabulary_size]."""
    heldout = token_counts(_tokens(store, "heldout"), len(train))
    return round(-float(log_probabilities(train) @ heldout) / max(1, int(heldout.sum())), 4)


def _tokens(store: Path, split: str) -> NDArray[Any]:
    return map_file(store / f"{split}.tokens", json.loads((store / f"{split}.json").read_text())["dtype"])
