"""Tables of the answers to single classes, for the report and the model card. Does not import numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.page.markup import Element, b, p, table
from bertwright.tasks.classification.verdict import short

_SHOWN = 30
"""Classes in a table of them."""
_WIDE = 10
"""Classes of the largest matrix that is shown; of more, the most confused pairs are."""


def confusion_tables(
    scores: Mapping[str, Any], labels: Sequence[str], name: str = "class", counted: str = "texts"
) -> Iterator[Element]:
    """Yield tables of these scores: each class (or what `name` says) by itself, and what was confused; `counted` says
    what was answered."""
    if each := scores.get("classes"):
        ranked = sorted(each, key=lambda label: -each[label]["support"])
        more = f" ({_SHOWN} of {len(each):,}, the most frequent)" if len(each) > _SHOWN else ""
        yield p(b(f"Each {name}"), more)
        yield table(
            (name, "precision", "recall", "F1", counted, "answered"),
            [
                (
                    short(label),
                    *(f"{each[label][score]:.4f}" for score in ("precision", "recall", "f1")),
                    f"{each[label]['support']:,}",
                    f"{scores['answered'][label]:,}",
                )
                for label in ranked[:_SHOWN]
            ],
        )
    matrix, pairs = scores.get("confusion_matrix", ()), scores.get("confused", ())
    if 0 < len(matrix) <= _WIDE:
        yield p(b("Confusions"), f": a row for each right {name}, a column for each answer")
        rows = zip(labels, matrix, strict=True)
        yield table(("right", *map(short, labels)), [(short(label), *(f"{n:,}" for n in row)) for label, row in rows])
    elif pairs:
        missed = ", of a label that was missed and one that was given to the same text" if name == "label" else ""
        yield p(b("Confusions"), f": the most frequent{missed}")
        shown = [(short(pair["right"]), short(pair["answer"]), f"{pair['count']:,}") for pair in pairs]
        yield table(("right", "answer", counted), shown)
