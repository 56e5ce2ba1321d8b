"""The scores of predicted tags of the words in held-out sentences: entities, if the tags mark any, and single words.

Names carry shapes: N examples, W tagged words, C tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.examples.batch import MicroBatch
from bertwright.examples.loader import Heldout
from bertwright.tasks.tagging.config import TaggedFiles
from bertwright.tasks.tagging.entity_scores import Found, Tags, score_entities, score_repaired, total
from bertwright.tasks.tagging.examples import TaggedExamples


def score_words(
    logits_WC: NDArray[np.float64], batches: Sequence[MicroBatch], heldout: Heldout, files: TaggedFiles
) -> dict[str, Any]:
    """The scores of the logits of all words in the batches of a held-out set: `accuracy` and, of entities,
    `precision`, `recall` and `f1`, strict, `f1_conlleval`, and `types`. None if a logit is not finite."""
    if not np.isfinite(logits_WC).all():  # the argmax of NaN logits is the first tag, which is often correct
        return {"accuracy": None}
    labels_W, guessed_W = np.concatenate([batch.labels for batch in batches]), logits_WC.argmax(1)
    scores: dict[str, Any] = {"accuracy": float((guessed_W == labels_W).mean())}
    if files.scheme is None:
        return scores
    assert isinstance(heldout.examples, TaggedExamples)
    sentences_N = heldout.examples.parts[heldout.rows, 0]
    predicted, actual = (_by_sentence(files.labels, tags, sentences_N, batches) for tags in (guessed_W, labels_W))
    strict = score_entities(predicted, actual, files.scheme)
    return {
        **scores,
        **_of_entities(total(strict.values())),
        "f1_conlleval": total(score_repaired(predicted, actual, files.scheme).values()).f1,
        "types": {kind: {**_of_entities(found), "entities": found.actual} for kind, found in strict.items()},
    }


def _of_entities(found: Found) -> dict[str, float]:
    return {"precision": found.precision, "recall": found.recall, "f1": found.f1}


def _by_sentence(
    tags: Sequence[str], numbers_W: NDArray[np.int64], sentences_N: NDArray[np.int64], batches: Sequence[MicroBatch]
) -> Tags:
    """The names of the tags `numbers_W` [W], by sentence; `sentences_N` [N] is the sentence of each example."""
    counts = [np.diff(np.searchsorted(batch.prediction_positions, batch.cu_seqlens)) for batch in batches]
    sentence_W = np.repeat(sentences_N, np.concatenate(counts))
    names = np.array(tags)[numbers_W]
    # Examples are in the order of their sentences.
    return [part.tolist() for part in np.split(names, np.flatnonzero(np.diff(sentence_W)) + 1)]
