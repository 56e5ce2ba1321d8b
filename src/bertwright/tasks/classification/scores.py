"""The scores of a classifier on the held-out texts, with constant-answer baselines, and its answers to some texts.

The scores of GLUE (Wang et al. 2019 table 1), in float64: accuracy, F1 and Matthews' correlation for classes,
Pearson's and Spearman's correlation for numbers. Undefined scores (a constant has no correlation) are None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core import rng
from bertwright.core.artifact import Artifact
from bertwright.core.json_values import json_number
from bertwright.core.log import SILENT
from bertwright.examples.columns import FOLDER
from bertwright.examples.example_set import Selection
from bertwright.examples.labelled.data import Labelled, LabelledExamples
from bertwright.examples.loader import Heldout
from bertwright.examples.shuffle import Permutation
from bertwright.model.classifier import Classifier
from bertwright.model.model import Model
from bertwright.tasks.classification.verdict import BASELINES, CLASSIFIER_SCORES, by_chance
from bertwright.tasks.objective import outputs
from bertwright.tasks.pretraining.scores import readable
from bertwright.tasks.task import Evaluation, HeldOut, Scoring
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

BEST = 5


def evaluate(model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
    """Score a classifier on the held-out texts; see `Task.evaluate`."""
    assert isinstance(model, Classifier)
    examples = heldout.verified(f"{FOLDER}/")
    texts = LabelledExamples.open(examples, "heldout", heldout.length, heldout.vocab)
    batches = list(Heldout.evenly(texts, settings.max_sequences or None).batches(settings.batch))
    right = np.concatenate([batch.sequence_labels for batch in batches])
    scores = scores_of(np.concatenate(list(outputs(model, batches, heldout.log))), right, examples)
    scores = {name: json_number(value) if isinstance(value, float) else value for name, value in scores.items()}
    scores["untrained"] = by_chance(scores)
    shown = list(some_answers(model, texts, settings.samples, load_tokenizer(heldout.vocab)))
    summary = f"{', '.join(_beside_baselines(scores))} on {scores['sequences']:,} held-out texts"
    return Evaluation(scores, shown, summary)


def _beside_baselines(scores: Mapping[str, Any]) -> Iterator[str]:
    """Each score of a classifier, with that of a constant answer."""
    for name, title in {**CLASSIFIER_SCORES, "regression_loss": "squared error"}.items():
        if name in scores:
            value, baseline = scores[name], scores.get(BASELINES.get(name, ""), 0.0)
            yield f"{title} {'undefined' if value is None else f'{value:.4f}'} (constant answer {baseline:.4f})"


def scores_of(logits: NDArray[np.float64], right: NDArray[Any], examples: Artifact) -> dict[str, Any]:
    """The scores of logits [N, C] against the labels `right` [N], with baselines from the training labels.

    Also how often each class was answered, or the lowest and highest number. Accuracies and correlations are None, and
    answers to classes missing, if any logit is not finite.
    """
    counted: dict[str, Any] = {"sequences": len(right), "repeated": examples.counts["heldout"]["repeated"]}
    finite = np.isfinite(logits).all()
    if logits.shape[1] == 1:
        numbers, wanted = logits[:, 0], right.astype(np.float64)
        seen = Labelled.open(examples, "train").labels.mean(dtype=np.float64)
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


def some_answers(
    model: Classifier, heldout: LabelledExamples, most: int, tokenizer: Tokenizer
) -> Iterator[dict[str, Any]]:
    """Up to `most` held-out texts in a fixed random order, each with its class and the model's probabilities of the
    classes, best first; none if labels are numbers."""
    labels, total = model.config.labels, len(heldout.labelled)
    if not most or len(labels) == 1:
        return
    rows = Permutation(rng.key("evaluate", "texts"), total)(np.arange(min(total, most)))
    logits_BC = torch.from_numpy(*outputs(model, [heldout.batch(Selection.of(rows))], SILENT))
    best = logits_BC.softmax(-1).topk(min(BEST, len(labels)))
    texts = heldout.labelled.take(rows)
    starts = np.cumsum(texts.lengths) - texts.lengths
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


Classes = NDArray[np.int64]
Numbers = NDArray[np.float64]


def of_classes(guessed: Classes, right: Classes, classes: int) -> dict[str, float | None]:
    """`accuracy`, `f1` and `matthews` of guesses [N] against correct classes [N].

    With two classes `f1` is that of class 1, as in GLUE; with more it is the mean over the classes, and `matthews` is
    Gorodkin's R_K.
    """
    table = np.zeros((classes, classes), np.float64)
    np.add.at(table, (right, guessed), 1)
    hits, of_right, of_guessed = np.diag(table), table.sum(1), table.sum(0)
    both = of_right + of_guessed
    # Classes that were neither guessed nor present are left out of the mean.
    f1 = 2 * hits[both > 0] / both[both > 0] if classes > 2 else 2 * hits[1:] / np.maximum(both[1:], 1)
    total = table.sum()
    spread = np.sqrt(total**2 - of_guessed @ of_guessed) * np.sqrt(total**2 - of_right @ of_right)
    matthews = float((hits.sum() * total - of_right @ of_guessed) / spread) if spread else None
    return {"accuracy": float(hits.sum() / total), "f1": float(f1.mean()), "matthews": matthews}


def of_numbers(answered: Numbers, right: Numbers) -> dict[str, float | None]:
    """`pearson` and `spearman` of answers [N] against correct numbers [N]."""
    return {"pearson": _correlation(answered, right), "spearman": _correlation(_ranks(answered), _ranks(right))}


def _correlation(x: Numbers, y: Numbers) -> float | None:
    # Not detected by the spread: the mean of a constant is rounded, so its deviations may differ from 0.
    if x.min() == x.max() or y.min() == y.max():
        return None
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread else None


def _ranks(values: Numbers) -> Numbers:
    """[N] ranks from 1; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Numbers = (ends - (counts - 1) / 2)[group]
    return ranks
