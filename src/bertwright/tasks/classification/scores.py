"""The scores of a classifier on the held-out texts, with constant-answer baselines, its answers to some texts, and its
worst errors.

Names carry shapes: N texts, C classes or labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core import rng
from bertwright.core.artifact import Artifact
from bertwright.core.json_values import json_number
from bertwright.examples.columns import FOLDER
from bertwright.examples.labelled.data import NO_LABELS, Labelled, LabelledExamples, commonest_labels
from bertwright.examples.loader import Heldout
from bertwright.examples.shuffle import Permutation
from bertwright.model.classifier import Classifier
from bertwright.model.model import Model
from bertwright.tasks import confusions
from bertwright.tasks.classification.class_scores import (
    Numbers,
    cross_entropies,
    frequent_labels,
    of_classes,
    of_labels,
    score_logits,
)
from bertwright.tasks.classification.verdict import BASELINES, CLASSIFIER_SCORES, by_chance
from bertwright.tasks.objective import outputs
from bertwright.tasks.pretraining.questions import readable
from bertwright.tasks.task import ERRORS, Evaluation, HeldOut, Scoring
from bertwright.vocab.tokenizer import Tokenizer, load_tokenizer

BEST = 5


def evaluate(model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
    """Score a classifier on the held-out texts; see `Task.evaluate`."""
    assert isinstance(model, Classifier)
    examples = heldout.verified(f"{FOLDER}/")
    texts = LabelledExamples.open(examples, "heldout", heldout.length, heldout.vocab)
    chosen = Heldout.evenly(texts, settings.max_sequences or None)
    batches = list(chosen.batches(settings.batch))
    right = np.concatenate([batch.sequence_labels for batch in batches])
    logits_NC = np.concatenate(list(outputs(model, batches, heldout.log)))
    scores = scores_of(logits_NC, right, examples)
    scores = {name: json_number(value) if isinstance(value, float) else value for name, value in scores.items()}
    scores["untrained"] = by_chance(scores)
    answers = Answers(logits_NC, right, chosen.rows, texts, model.config.labels, load_tokenizer(heldout.vocab))
    summary = f"{', '.join(_beside_baselines(scores))} on {scores['sequences']:,} held-out texts"
    errors = list(answers.worst(ERRORS if settings.samples else 0))
    return Evaluation(scores, list(answers.some(settings.samples)), summary, errors)


def _beside_baselines(scores: Mapping[str, Any]) -> Iterator[str]:
    """Each score of a classifier, with that of a constant answer."""
    for name, title in {**CLASSIFIER_SCORES, "regression_loss": "squared error"}.items():
        if name in scores:
            value, baseline = scores[name], scores.get(BASELINES.get(name, ""), 0.0)
            yield f"{title} {'undefined' if value is None else f'{value:.4f}'} (constant answer {baseline:.4f})"


def scores_of(logits_NC: Numbers, right: NDArray[Any], examples: Artifact) -> dict[str, Any]:
    """The scores of logits against the labels `right` ([N], or [N, C] if a text may have several), with baselines from
    the training labels.

    Also how often each class was answered, or the lowest and highest number. Accuracies and correlations are None, and
    answers to classes missing, if any logit is not finite.
    """
    counted: dict[str, Any] = {"sequences": len(right), "repeated": examples.counts["heldout"]["repeated"]}
    found = score_logits(logits_NC, right)
    if right.ndim == 2:
        return {**_of_several(logits_NC, right > 0, examples), **found, **counted}
    if logits_NC.shape[1] == 1:
        numbers, wanted = logits_NC[:, 0], right.astype(np.float64)
        seen = Labelled.open(examples, "train").labels.mean(dtype=np.float64)
        constant = float(np.square(wanted - seen).mean())
        losses = {"regression_loss": float(np.square(numbers - wanted).mean()), "constant_loss": constant}
        losses |= {"lowest": float(numbers.min()), "highest": float(numbers.max())}
        return {**losses, **found, **counted}
    return {**_of_classes(logits_NC, right.astype(np.int64), examples), **found, **counted}


def _of_classes(logits_NC: Numbers, right: NDArray[np.int64], examples: Artifact) -> dict[str, Any]:
    """The loss, the baselines, and what was answered in place of what."""
    # From the training labels: a guesser does not know the most common held-out class.
    labels, trained = examples.counts["labels"], np.array(examples.counts["train"]["classes"])
    commonest, frequencies = int(trained.argmax()), (trained + 1) / (trained + 1).sum()
    always = of_classes(np.full_like(right, commonest), right, len(labels))
    found: dict[str, Any] = {
        "classification_loss": float(losses_of(logits_NC, right).mean()),
        "majority": always["accuracy"],
        "majority_label": labels[commonest],
        **{f"majority_{name}": always[name] for name in ("f1", "f1_weighted") if name in always},
        # One is added to every count, so that a class without training texts has a probability.
        "frequency_loss": -float(np.log(frequencies)[right].mean()),
    }
    if np.isfinite(logits_NC).all():
        table_CC = confusions.confusion_matrix(logits_NC.argmax(1), right, len(labels))
        found |= confusions.of_classes(table_CC, labels)
    return found


def _of_several(logits_NC: Numbers, right_NC: NDArray[np.bool_], examples: Artifact) -> dict[str, Any]:
    """The same of several labels; the constant answers are the set of labels that most training texts have, for the
    accuracy, and the most frequent labels, for F1."""
    labels, train = examples.counts["labels"], Labelled.open(examples, "train")
    trained_NC = train.label_rows > 0
    commonest, _ = commonest_labels(train, train)
    frequent = frequent_labels(trained_NC)
    always = of_labels(np.broadcast_to(frequent, right_NC.shape), right_NC)
    # As for classes, but each label is counted by itself.
    frequencies = (trained_NC.sum(0) + 1) / (len(train) + 2)
    found: dict[str, Any] = {
        "labels_loss": float(losses_of(logits_NC, right_NC.astype(np.float32)).mean()),
        "majority": float((right_NC == (commonest > 0)).all(1).mean()),
        "majority_label": names_of(commonest, labels),
        "majority_f1_micro": always["f1_micro"],
        "majority_f1_macro": always["f1_macro"],
        "frequent": names_of(frequent, labels),
        "frequency_loss": -float(np.where(right_NC, np.log(frequencies), np.log1p(-frequencies)).mean()),
    }
    if np.isfinite(logits_NC).all():
        guessed_NC = logits_NC > 0
        found |= confusions.of_several(guessed_NC, right_NC, labels)
        found["answers"] = len(np.unique(guessed_NC, axis=0))
    return found


def losses_of(logits_NC: Numbers, right: NDArray[Any]) -> Numbers:
    """[N] the loss of each text: of its class [N], of its labels [N, C], or the squared error of its number."""
    losses: Numbers
    if right.ndim == 2:
        losses = (np.logaddexp(0.0, logits_NC) - logits_NC * right).mean(1)
    elif logits_NC.shape[1] == 1:
        losses = np.square(logits_NC[:, 0] - right)
    else:
        losses = cross_entropies(logits_NC, right)
    return losses


def names_of(marks: Sequence[Any] | NDArray[Any], labels: Sequence[str]) -> str:
    """The names of the labels that a text has, from its marks [C]."""
    return ", ".join(name for name, has in zip(labels, marks, strict=True) if has) or NO_LABELS


@dataclass(frozen=True)
class Answers:
    """The answers to the held-out texts, to be shown."""

    logits_NC: Numbers
    """[N, C]"""
    right: NDArray[Any]
    """[N], or [N, C] if a text may have several labels."""
    rows: NDArray[np.int64]
    """[N] index of each text in `texts`."""
    texts: LabelledExamples
    labels: Sequence[str]
    tokenizer: Tokenizer

    def some(self, most: int) -> Iterator[dict[str, Any]]:
        """Up to `most` texts in a fixed random order, each with what is right and the model's probabilities of the
        classes or labels, best first; none if labels are numbers."""
        if not most or len(self.labels) == 1 or not np.isfinite(self.logits_NC).all():
            return
        total = len(self.texts.labelled)
        order = Permutation(rng.key("evaluate", "texts"), total)(np.arange(total))
        place = {row: number for number, row in enumerate(self.rows.tolist())}
        scored = [place[row] for row in order.tolist() if row in place]
        yield from (self._shown(number) for number in scored[:most])

    def worst(self, most: int) -> Iterator[dict[str, Any]]:
        """Up to `most` of the wrong answers, those with the highest loss first; of numbers, those farthest off."""
        if not np.isfinite(self.logits_NC).all():
            return
        losses = losses_of(self.logits_NC, self.right)
        wrong = np.flatnonzero(self._wrong())
        for number in wrong[np.argsort(-losses[wrong], kind="stable")][:most].tolist():
            answer = {"answer": self._answer(number), "loss": float(losses[number])}
            yield {**self._shown(number), **answer}

    def _wrong(self) -> NDArray[np.bool_]:
        if self.right.ndim == 2:
            wrong: NDArray[np.bool_] = ((self.logits_NC > 0) != (self.right > 0)).any(1)
        elif len(self.labels) == 1:
            wrong = np.ones(len(self.right), np.bool_)
        else:
            wrong = self.logits_NC.argmax(1) != self.right
        return wrong

    def _answer(self, number: int) -> str:
        if self.right.ndim == 2:
            return names_of(self.logits_NC[number] > 0, self.labels)
        if len(self.labels) == 1:
            return f"{self.logits_NC[number, 0]:.4g}"
        return self.labels[int(self.logits_NC[number].argmax())]

    def _shown(self, number: int) -> dict[str, Any]:
        right = self.right[number]
        if self.right.ndim == 2:
            gold = names_of(right, self.labels)
        else:
            gold = f"{right:.4g}" if len(self.labels) == 1 else self.labels[int(right)]
        return {
            "source": "held-out",
            "text": self._text(int(self.rows[number])),
            "gold": gold,
            "top": self._top(number),
        }

    def _top(self, number: int) -> list[dict[str, Any]]:
        logits_C = self.logits_NC[number]
        if len(self.labels) == 1:
            return []
        if self.right.ndim == 2:
            chances = np.exp(-np.logaddexp(0.0, -logits_C))
        else:
            chances = np.exp(logits_C - logits_C.max())
            chances /= chances.sum()
        best = np.argsort(-chances, kind="stable")[:BEST].tolist()
        return [{"token": self.labels[label], "probability": float(chances[label])} for label in best]

    def _text(self, row: int) -> str:
        text = self.texts.labelled.take(np.array([row]))
        middle = int(text.first[0])
        parts = [text.tokens[:middle], *([text.tokens[middle:]] if self.texts.pairs else [])]
        return " | ".join(readable(self.tokenizer.decode(part)) for part in parts)
