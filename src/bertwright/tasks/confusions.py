"""What is answered in place of what: each class by itself, and the classes that are confused.

Names carry shapes: N answers, C classes, labels or tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 20
"""Classes of the largest confusion matrix, and pairs in a list of the most confused ones."""
Classes = NDArray[np.int64]
Marks = NDArray[np.bool_]
"""[N, C] whether an example has a label."""


def confusion_matrix(guessed: Classes, right: Classes, classes: int) -> Classes:
    """[C, C] the number of answers by right class and guessed class."""
    table_CC = np.zeros((classes, classes), np.int64)
    np.add.at(table_CC, (right, guessed), 1)
    return table_CC


def of_classes(table_CC: Classes, labels: Sequence[str]) -> dict[str, Any]:
    """What the confusion matrix says, as scores: `answered`, `classes`, `confused` and, if the classes are few,
    `confusion_matrix` (`evaluate.shapes.Counts`)."""
    answered, right = table_CC.sum(0), table_CC.sum(1)
    matrix = {"confusion_matrix": table_CC.tolist()} if len(labels) <= LARGEST else {}
    return {**_of_each(np.diag(table_CC), answered, right, labels), "confused": _pairs(table_CC, labels), **matrix}


def of_several(guessed_NC: Marks, right_NC: Marks, labels: Sequence[str]) -> dict[str, Any]:
    """The same of labels of which an example may have several, without a matrix; `confused` has the pairs of a label
    that was missed and one that was wrongly given to the same example."""
    hits, answered, right = (marks.sum(0) for marks in (guessed_NC & right_NC, guessed_NC, right_NC))
    missed, wrong = (marks.astype(np.int64) for marks in (right_NC & ~guessed_NC, guessed_NC & ~right_NC))
    return {**_of_each(hits, answered, right, labels), "confused": _pairs(missed.T @ wrong, labels)}


def _of_each(hits: Classes, answered: Classes, right: Classes, labels: Sequence[str]) -> dict[str, Any]:
    """How often each class [C] was answered, and its precision, recall and F1, 0 where there is nothing to divide
    by."""
    columns = zip(labels, hits.tolist(), answered.tolist(), right.tolist(), strict=True)
    return {
        "answered": dict(zip(labels, answered.tolist(), strict=True)),
        "classes": {
            label: {
                "precision": hit / max(given, 1),
                "recall": hit / max(wanted, 1),
                "f1": 2 * hit / max(given + wanted, 1),
                "support": wanted,
            }
            for label, hit, given, wanted in columns
        },
    }


def _pairs(table_CC: Classes, labels: Sequence[str]) -> list[dict[str, Any]]:
    """The pairs of a right class and another that was answered, the most frequent ones first."""
    wrong = table_CC - np.diag(np.diag(table_CC))
    order = np.argsort(-wrong, axis=None, kind="stable")[:LARGEST]
    places = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return [
        {"right": labels[right], "answer": labels[given], "count": int(wrong[right, given])}
        for right, given in places
        if wrong[right, given]
    ]
