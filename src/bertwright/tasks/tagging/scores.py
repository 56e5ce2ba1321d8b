"""The scores of a tagger on the held-out sentences, with those of a constant answer, and its worst errors.

Names carry shapes: W tagged words, C tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core.json_values import json_number
from bertwright.examples.batch import MicroBatch
from bertwright.examples.columns import FOLDER
from bertwright.examples.loader import Heldout
from bertwright.model.model import Model
from bertwright.tasks import confusions
from bertwright.tasks.classification.class_scores import cross_entropies
from bertwright.tasks.objective import outputs
from bertwright.tasks.tagging.config import TaggedFiles
from bertwright.tasks.tagging.examples import TaggedExamples
from bertwright.tasks.tagging.word_scores import score_words
from bertwright.tasks.task import ERRORS, Evaluation, HeldOut, Scoring
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

BEST = 5
"""Tags shown for each word."""
CONTEXT = 12
"""Tokens shown on each side of a word."""


def evaluate(model: Model, heldout: HeldOut, files: TaggedFiles, settings: Scoring) -> Evaluation:
    """Score a tagger on the held-out sentences; see `Task.evaluate`."""
    examples = TaggedExamples.open(heldout.verified(f"{FOLDER}/"), "heldout", heldout.length, heldout.vocab)
    chosen = Heldout.evenly(examples, settings.max_sequences or None).rows
    # With all parts of a sentence that was too long: an entity may stand in two of them.
    sentences = examples.parts[:, 0]
    rows = np.flatnonzero(np.isin(sentences, sentences[chosen]))
    scored = Heldout(examples, rows)
    batches = list(scored.batches(settings.batch))
    logits_WC = np.concatenate(list(outputs(model, batches, heldout.log)))
    labels_W, guessed_W = np.concatenate([batch.labels for batch in batches]), logits_WC.argmax(1)
    counts, names = heldout.examples.counts["heldout"], files.labels
    scores: dict[str, Any] = {
        "tagging_loss": float(cross_entropies(logits_WC, labels_W).mean()),
        **score_words(logits_WC, batches, scored, files),
        "majority": counts["majority"],
        "majority_label": counts["majority_label"],
        "predictions": len(labels_W),
        "sequences": len(np.unique(sentences[rows])),
        "repeated": counts["repeated"],
    }
    if files.scheme is None and scores["accuracy"] is not None:
        scores |= confusions.of_classes(confusions.confusion_matrix(guessed_W, labels_W, len(names)), names)
    scores = {name: json_number(value) if isinstance(value, float) else value for name, value in scores.items()}
    # A tagger that learned nothing gives every word the same tag.
    scores["untrained"] = len(np.unique(guessed_W)) == 1
    most = ERRORS if settings.samples else 0
    worst = list(_worst(logits_WC, batches, files.labels, most, load_tokenizer(heldout.vocab)))
    return Evaluation(scores, worst[: settings.samples], _summary(scores), worst)


def _summary(scores: dict[str, Any]) -> str:
    accuracy = scores["accuracy"]
    shown = "undefined" if accuracy is None else f"{accuracy:.4f}"
    entities = "" if "f1" not in scores else f"F1 of entities {scores['f1']:.4f} (constant answer 0), "
    words = f"{scores['predictions']:,} held-out words"
    return f"{entities}accuracy {shown} (constant answer {scores['majority']:.4f}) on {words}"


def _worst(
    logits_WC: NDArray[np.float64],
    batches: Sequence[MicroBatch],
    tags: Sequence[str],
    most: int,
    tokenizer: Tokenizer,
) -> Iterator[dict[str, Any]]:
    """The wrongly tagged words of which the model is surest, each in its context, with the likeliest tags."""
    labels_W = np.concatenate([batch.labels for batch in batches])
    wrong = np.flatnonzero(logits_WC.argmax(1) != labels_W)
    losses = cross_entropies(logits_WC[wrong], labels_W[wrong])
    order = np.argsort(-losses, kind="stable")[:most]
    places = [(batch, place) for batch in batches for place in batch.prediction_positions.tolist()]
    for word, loss in zip(wrong[order].tolist(), losses[order].tolist(), strict=True):
        batch, place = places[word]
        best = torch.from_numpy(logits_WC[word]).softmax(-1).topk(min(BEST, len(tags)))
        yield {
            "source": "held-out",
            "text": _in_context(batch, place, tokenizer),
            "gold": tags[labels_W[word]],
            "answer": tags[int(logits_WC[word].argmax())],
            "loss": loss,
            "top": [
                {"token": tags[number], "probability": p}
                for p, number in zip(best.values.tolist(), best.indices.tolist(), strict=True)
            ],
        }


def _in_context(batch: MicroBatch, place: int, tokenizer: Tokenizer) -> str:
    """The text around a word, which stands between » and «."""
    sequence = int(np.searchsorted(batch.cu_seqlens, place, side="right")) - 1
    # Without [CLS] and [SEP].
    first, last = int(batch.cu_seqlens[sequence]) + 1, int(batch.cu_seqlens[sequence + 1]) - 1
    end = place + 1
    while end < last and tokenizer.continuation[batch.token_ids[end]]:
        end += 1
    begin = max(first, place - CONTEXT)
    while begin > first and tokenizer.continuation[batch.token_ids[begin]]:
        begin -= 1
    parts = ((begin, place), (place, end), (end, min(last, end + CONTEXT)))
    before, word, after = (tokenizer.decode(batch.token_ids[a:b]) for a, b in parts)
    return f"{before} »{word}« {after}".strip()
