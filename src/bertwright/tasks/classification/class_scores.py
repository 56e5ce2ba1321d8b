"""The scores of answers against the right ones: of classes, of several labels at once, and of numbers; in float64.

Those of GLUE (Wang et al. 2019 table 1): accuracy, F1 and Matthews' correlation for classes, Pearson's and Spearman's
correlation for numbers. Undefined scores (a constant has no correlation) are None. A label is given if its probability
is above 0.5.

Names carry shapes: N texts, C classes or labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.tasks.confusions import Classes, Marks, confusion_matrix

Numbers = NDArray[np.float64]


def score_logits(logits_NC: Numbers, right: NDArray[Any]) -> dict[str, float | None]:
    """The scores of logits against the right classes or numbers, [N], or the marks [N, C] of several labels; None if a
    logit is not finite."""
    if right.ndim == 2:
        found = of_labels(logits_NC > 0, right > 0)
    elif logits_NC.shape[1] == 1:
        found = of_numbers(logits_NC[:, 0], right.astype(np.float64))
    else:
        found = of_classes(logits_NC.argmax(1), right.astype(np.int64), logits_NC.shape[1])
    # The argmax of NaN logits is the first class, which is sometimes correct.
    return found if np.isfinite(logits_NC).all() else dict.fromkeys(found)


def of_classes(guessed: Classes, right: Classes, classes: int) -> dict[str, float | None]:
    """`accuracy`, `f1` and `matthews` of guesses [N] against correct classes [N].

    With two classes `f1` is that of class 1, as in GLUE; with more it is the mean over the classes (macro), beside
    `f1_weighted`, the mean weighted by the number of texts, and `matthews` is Gorodkin's R_K.
    """
    table = confusion_matrix(guessed, right, classes).astype(np.float64)
    hits, of_right, of_guessed = np.diag(table), table.sum(1), table.sum(0)
    both = of_right + of_guessed
    # Classes that were neither guessed nor present are left out of the mean.
    f1 = 2 * hits[both > 0] / both[both > 0] if classes > 2 else 2 * hits[1:] / np.maximum(both[1:], 1)
    total = table.sum()
    spread = np.sqrt(total**2 - of_guessed @ of_guessed) * np.sqrt(total**2 - of_right @ of_right)
    matthews = float((hits.sum() * total - of_right @ of_guessed) / spread) if spread else None
    weighted = {"f1_weighted": float(f1 @ of_right[both > 0] / total)} if classes > 2 else {}
    return {"accuracy": float(hits.sum() / total), "f1": float(f1.mean()), **weighted, "matthews": matthews}


def of_labels(guessed_NC: Marks, right_NC: Marks) -> dict[str, float | None]:
    """Scores of labels of which a text may have several: `f1_micro`, over all labels of all texts; `f1_macro`, the mean
    over the labels, 0 for one that nobody gave; `accuracy`, the share of the texts whose labels are all right; and
    `matthews`, whose covariances are summed over the labels, as in Gorodkin's R_K."""
    hits_C = (guessed_NC & right_NC).sum(0)
    both_C = guessed_NC.sum(0) + right_NC.sum(0)
    guessed, right = (marks - marks.mean(0) for marks in (guessed_NC.astype(np.float64), right_NC.astype(np.float64)))
    spread = float(np.sqrt(np.square(guessed).sum()) * np.sqrt(np.square(right).sum()))
    # Not by the spread: the mean of a constant is rounded.
    varies = [bool((marks != marks[0]).any()) for marks in (guessed_NC, right_NC)]
    return {
        "f1_micro": float(2 * hits_C.sum() / max(both_C.sum(), 1)),
        "f1_macro": float((2 * hits_C / np.maximum(both_C, 1)).mean()),
        "accuracy": float((guessed_NC == right_NC).all(1).mean()),
        "matthews": float((guessed * right).sum() / spread) if all(varies) else None,
    }


def of_numbers(answered: Numbers, right: Numbers) -> dict[str, float | None]:
    """`pearson` and `spearman` of answers [N] against correct numbers [N]."""
    return {"pearson": _correlation(answered, right), "spearman": _correlation(_ranks(answered), _ranks(right))}


def frequent_labels(right_NC: Marks) -> Marks:
    """[C] the constant answer with the highest `f1_micro` on these texts: their most frequent labels, as many as that
    takes."""
    counts = right_NC.sum(0)
    order = np.argsort(-counts, kind="stable")
    number = np.arange(1, len(counts) + 1)
    f1 = 2 * np.cumsum(counts[order]) / (number * len(right_NC) + counts.sum())
    chosen = np.zeros(len(counts), np.bool_)
    chosen[order[: int(f1.argmax()) + 1]] = True
    return chosen


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


def cross_entropies(logits_NC: NDArray[np.float64], labels_N: NDArray[Any]) -> NDArray[np.float64]:
    """[N] the negative logarithm of the probability of each right class, in nats."""
    shifted_NC = logits_NC - logits_NC.max(1, keepdims=True)
    right_N = shifted_NC[np.arange(len(labels_N)), labels_N.astype(np.int64)]
    losses_N: NDArray[np.float64] = np.log(np.exp(shifted_NC).sum(1)) - right_N
    return losses_N
