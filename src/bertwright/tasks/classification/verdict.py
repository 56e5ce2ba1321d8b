"""How good a classifier is, in a sentence, by the rules stated here; decision 0060 has the measurements behind their
thresholds.

One answer to every text has learned nothing. Scores on fewer than 50 texts decide nothing else. A correlation of
answers and labels (Matthews', Pearson's) of less than 2 / sqrt(texts) is explained by chance. Otherwise the share of
the baseline's errors that the model avoids decides: none, below 25 % little, above it good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.core.numbers import percent
from bertwright.examples.information import FEW_TEXTS

CLASSIFIER_SCORES = {
    "accuracy": "accuracy",
    "f1": "F1",
    "f1_weighted": "F1, weighted",
    "f1_micro": "F1 of all labels (micro)",
    "f1_macro": "F1, mean of the labels (macro)",
    "matthews": "Matthews' correlation",
    "pearson": "Pearson's correlation",
    "spearman": "Spearman's correlation",
}
"""The scores of a classifier, for classes and for numbers, by name; higher is better."""

BASELINES = {
    "accuracy": "majority",
    "f1": "majority_f1",
    "f1_weighted": "majority_f1_weighted",
    "f1_micro": "majority_f1_micro",
    "f1_macro": "majority_f1_macro",
    "labels_loss": "frequency_loss",
    "classification_loss": "frequency_loss",
    "regression_loss": "constant_loss",
}
"""The score of an answer that ignores the text, by the score of a classifier; correlations have the baseline 0."""
LITTLE = 0.25
MOST_LABELS = 4
_TOO_FEW = "The held-out texts are too few to judge the model"


def one_answer(scores: Mapping[str, Any]) -> bool:
    """Whether a classifier with these scores gives the same answer to every text; numbers count as the same if they
    differ by less than 5 % of the deviation of the labels."""
    if "answers" in scores:
        return bool(scores["answers"] == 1)
    if answered := scores.get("answered"):
        return len([label for label, count in answered.items() if count]) == 1
    numbers = [scores.get(name) for name in ("lowest", "highest", "constant_loss")]
    low, high, constant = (float("nan") if number is None else float(number) for number in numbers)
    return bool(high - low < 0.05 * math.sqrt(constant))


def by_chance(scores: Mapping[str, Any]) -> bool:
    """Whether chance explains the answers of a classifier with these scores: their correlation with the labels is less
    than two standard errors, or not defined. False if the correlation was not taken."""
    taken = [scores[name] for name in ("matthews", "pearson") if name in scores]
    return bool(taken) and (taken[0] is None or taken[0] < 2 / max(scores["sequences"], 1) ** 0.5)


def verdict_on_classes(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences on a model that tells classes apart."""
    accuracy, answered = scores.get("accuracy"), scores.get("answered", {})
    if accuracy is None:
        yield "Not usable: its answers are not numbers (NaN)."
        return
    texts, majority = scores["sequences"], scores.get("majority")
    always = f"always answering “{short(scores.get('majority_label', ''))}” would be right for"
    beside = "" if majority is None else f", where {always} {percent(majority)}"
    right = f"right for {percent(accuracy)} of {texts:,} held-out texts{beside}"
    if one_answer(scores):
        given = next(label for label, count in answered.items() if count)
        yield (
            f"The model has learned nothing: it answers “{short(given)}” to every text, and no second class is "
            f"predicted. It is {right}."
        )
    elif texts < FEW_TEXTS:
        yield f"{_TOO_FEW}: it is {right}."
    elif by_chance(scores):
        yield f"Chance explains the answers of the model, so it has learned nothing that can be shown: it is {right}."
    elif majority is None:
        yield f"The model is {right}."
    elif accuracy <= majority:
        yield f"The model has learned something, but is no more often right than a constant answer: it is {right}."
    else:
        yield f"{_better((accuracy - majority) / (1 - majority))}: it is {right}."
    never = [label for label, count in answered.items() if not count]
    if never and len(never) < len(answered) - 1:
        yield f"It never answers {listed(never, 'or')}."
    yield from _repeated(scores)


def verdict_on_labels(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences on a model that gives each text any number of labels."""
    f1, texts, constant = scores.get("f1_micro"), scores["sequences"], scores.get("majority_f1_micro")
    if scores.get("labels_loss") is None or f1 is None:
        yield "Not usable: its answers are not numbers (NaN)."
        return
    beside = "" if constant is None else f"; always answering “{short(scores['frequent'])}” has {percent(constant)}"
    found = f"its F1 over the labels of {texts:,} held-out texts is {percent(f1)}{beside}"
    if one_answer(scores):
        yield f"The model has learned nothing: it gives every text the same labels; {found}."
    elif texts < FEW_TEXTS:
        yield f"{_TOO_FEW}: {found}."
    elif by_chance(scores):
        yield f"Chance explains the answers of the model, so it has learned nothing that can be shown: {found}."
    elif constant is None:
        yield f"{found[0].upper()}{found[1:]}."
    elif f1 <= constant:
        yield f"The model has learned something, but is no better than a constant answer: {found}."
    else:
        yield f"{_better((f1 - constant) / (1 - constant))}: {found}."
    never = [label for label, count in scores.get("answered", {}).items() if not count]
    if never and len(never) < len(scores["answered"]):
        yield f"It never gives {listed(never, 'or')}."
    yield from _repeated(scores)


def verdict_on_numbers(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences on a model that predicts numbers."""
    loss, constant = scores["regression_loss"], scores.get("constant_loss")
    if loss is None:
        yield "Not usable: its answers are not numbers (NaN)."
        return
    beside = "" if constant is None else f", that of always answering the mean of the training texts {constant:.3f}"
    error = f"its mean squared error on {scores['sequences']:,} held-out texts is {loss:.3f}{beside}"
    if one_answer(scores):
        yield f"The model has learned nothing: it answers {scores['highest']:.3g} to every text; {error}."
    elif scores["sequences"] < FEW_TEXTS:
        yield f"{_TOO_FEW}: {error}."
    elif by_chance(scores):
        yield f"Chance explains the answers of the model, so it has learned nothing that can be shown: {error}."
    elif constant is None:
        yield f"{error[0].upper()}{error[1:]}."
    elif loss >= constant:
        yield f"The model has learned something, but is no better than a constant answer: {error}."
    else:
        yield f"{_better(1 - loss / constant)}: {error}."
    yield from _repeated(scores)


def _better(avoided: float) -> str:
    """How clearly a model beats a constant answer, of whose errors it avoids a share."""
    return f"The model {'is a little better than' if avoided < LITTLE else 'clearly beats'} a constant answer"


def _repeated(scores: Mapping[str, Any]) -> Iterator[str]:
    if scores.get("repeated"):
        yield f"{scores['repeated']:,} of the held-out texts also occur in the training texts, word for word."


def listed(labels: Sequence[str], last: str = "and") -> str:
    """Classes in a row, of many only the first ones."""
    named = [f"“{short(label)}”" for label in labels[:MOST_LABELS]]
    if len(labels) > MOST_LABELS:
        named.append(f"{len(labels) - MOST_LABELS:,} more classes")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} {last} {named[-1]}"


def short(label: str) -> str:
    """The label, cut to 40 characters."""
    return label if len(label) <= 40 else f"{label[:39]}…"
