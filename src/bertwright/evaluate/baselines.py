"""What guessing without reading the context would score on the same masked tokens."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.frequencies import log_probabilities


def baselines(training: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float | int]:
    """Scores of the training tokens' distribution on held-out `labels` [N], given its counts [V].

    `unigram_loss` is the mean of -log p(label) in nats, p with one added to every count (so an entry that training
    never saw has a probability); `most_common_token_accuracy` is the share of labels that are the most common training
    token.
    """
    log_p = log_probabilities(training)
    # Of the training text: the commonest held-out token is not known to whoever guesses.
    commonest = int(training.argmax())
    return {
        "unigram_loss": -float(log_p[labels].mean()),
        "most_common_token_accuracy": float((labels == commonest).mean()),
        "most_common_id": commonest,
    }


def majority(labels: Iterable[int]) -> float:
    """The share of the commoner of two labels: what always guessing it would score."""
    share = float(np.mean(np.fromiter(labels, np.int64)))
    return max(share, 1 - share)
