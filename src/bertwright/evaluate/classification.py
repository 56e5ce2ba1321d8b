"""The scores of a classifier on the held-out texts, with constant-answer baselines, and its answers to some texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core import rng
from bertwright.core.artifact import Artifact
from bertwright.core.log import SILENT, Log
from bertwright.evaluate.metrics import of_classes, of_numbers
from bertwright.evaluate.predictions import readable
from bertwright.examples.batch import MicroBatch
from bertwright.examples.labelled.data import LabelledSet
from bertwright.examples.shuffle import Permutation
from bertwright.model.batch import packed
from bertwright.model.classifier import SequenceClassifier
from bertwright.vocab.tokenizer import Tokenizer

BEST = 5


@torch.inference_mode()
def answers(model: SequenceClassifier, batches: Sequence[MicroBatch], log: Log) -> NDArray[np.float64]:
    """[N, C] logits of all sequences; the model's training mode is restored."""
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    try:
        parts = []
        for number, batch in enumerate(batches, start=1):
            parts.append(model(packed(batch, device)).double().cpu().numpy())
            log.progress("evaluate", number, len(batches), "batches")
    finally:
        model.train(was_training)
    return np.concatenate(parts)


def scores_of(logits: NDArray[np.float64], right: NDArray[Any], examples: Artifact) -> dict[str, Any]:
    """The scores of logits [N, C] against the labels `right` [N], with baselines from the training labels.

    Also how often each class was answered, or the lowest and highest number. Accuracies and correlations are None, and
    answers to classes missing, if any logit is not finite.
    """
    counted: dict[str, Any] = {"sequences": len(right), "repeated": examples.counts["heldout"]["repeated"]}
    finite = np.isfinite(logits).all()
    if logits.shape[1] == 1:
        numbers, wanted = logits[:, 0], right.astype(np.float64)
        seen = LabelledSet.open(examples, "train").arrays.labels.mean(dtype=np.float64)
        constant = float(np.square(wanted - seen).mean())
        losses = {"regression_loss": float(np.square(numbers - wanted).mean()), "constant_loss": constant}
        losses |= {"lowest": float(numbers.min()), "highest": float(numbers.max())}
        scores = of_numbers(numbers, wanted)
        return {**losses, **(scores if finite else dict.fromkeys(scores)), **counted}
    classes = right.astype(np.int64)
    shifted = logits - logits.max(1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    loss = -float(log_p[np.arange(len(classes)), classes].mean())
    # From the training labels: a guesser does not know the most common held-out class.
    labels, trained = examples.counts["labels"], np.array(examples.counts["train"]["classes"])
    commonest, frequencies = int(trained.argmax()), (trained + 1) / (trained + 1).sum()
    always = of_classes(np.full_like(classes, commonest), classes, len(labels))
    baseline = {
        "majority": always["accuracy"],
        "majority_label": labels[commonest],
        "majority_f1": always["f1"],
        # One is added to every count, so that a class without training texts has a probability.
        "frequency_loss": -float(np.log(frequencies)[classes].mean()),
    }
    found = of_classes(logits.argmax(1), classes, len(labels))
    if finite:
        answered = np.bincount(logits.argmax(1), minlength=len(labels)).tolist()
        counted["answered"] = dict(zip(labels, answered, strict=True))
    # The argmax of NaN logits is the first class, which is sometimes correct.
    found = found if finite else dict.fromkeys(found)
    return {"classification_loss": loss, **found, **baseline, **counted}


def shown(
    model: SequenceClassifier, heldout: LabelledSet, length: int, most: int, tokenizer: Tokenizer
) -> Iterator[dict[str, Any]]:
    """Up to `most` held-out texts in a fixed random order, each with its class and the model's probabilities of the
    classes, best first; none if labels are numbers."""
    labels, total = model.config.labels, len(heldout.arrays)
    if not most or len(labels) == 1:
        return
    rows = Permutation(rng.key("evaluate", "texts"), total)(np.arange(min(total, most)))
    logits_BC = torch.from_numpy(answers(model, [heldout.batch(rows, length)], SILENT))
    best = logits_BC.softmax(-1).topk(min(BEST, len(labels)))
    texts = heldout.arrays.take(rows)
    starts = np.cumsum(texts.first.astype(np.int64) + texts.second) - texts.first - texts.second
    for i, start in enumerate(starts.tolist()):
        middle, end = start + int(texts.first[i]), start + int(texts.first[i]) + int(texts.second[i])
        parts = [readable(tokenizer.decode(texts.tokens[a:b])) for a, b in ((start, middle), (middle, end))]
        yield {
            "source": "held-out",
            "text": " | ".join(parts if heldout.pairs else parts[:1]),
            "gold": labels[int(texts.labels[i])],
            "top": [
                {"token": labels[number], "probability": p}
                for p, number in zip(best.values[i].tolist(), best.indices[i].tolist(), strict=True)
            ],
        }
