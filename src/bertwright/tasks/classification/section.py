"""The presentation of a classifier: its scores beside those of a constant answer, its curves and its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bertwright.core.numbers import NAN, number, percent, short_count
from bertwright.examples.labelled.config import LabelledTexts
from bertwright.page.chart import Chart, Series, histogram
from bertwright.page.markup import Content, Element, code, definitions, div, p, plain_table, table
from bertwright.tasks.classification.verdict import (
    BASELINES,
    CLASSIFIER_SCORES,
    listed,
    one_answer,
    short,
    verdict_on_classes,
    verdict_on_labels,
    verdict_on_numbers,
)
from bertwright.tasks.section import Rows, Run, Score, TaskSection, points
from bertwright.tasks.tables import confusion_tables

_OF_LABELS = ("f1_micro", "f1_macro")
"""The scores whose constant answer is the most frequent labels."""
_LOSSES = {
    "classification_loss": "loss (nats)",
    "labels_loss": "loss of labels (nats)",
    "regression_loss": "mean squared error",
}
_TAKEN = {
    **{name: name for name in _LOSSES},
    "classification_accuracy": "accuracy",
    "labels_accuracy": "accuracy",
    **{name: name for name in CLASSIFIER_SCORES},
}
"""The scores that training takes: name in the metrics rows -> name of the score."""


class ClassificationSection(TaskSection):
    """See `TaskSection`; `texts` are those of the task."""

    compared: ClassVar[Sequence[Score]] = (
        Score("classification_loss", "loss of classes (nats)", min),
        Score("labels_loss", "loss of labels (nats)", min),
        Score("regression_loss", "mean squared error", min),
        *(Score(key, title, max) for key, title in CLASSIFIER_SCORES.items()),
        Score("majority", "accuracy of the commonest class"),
        Score("majority_f1", "F1 of the commonest class"),
        Score("majority_f1_weighted", "F1 of the commonest class, weighted"),
        Score("majority_f1_micro", "F1 of the most frequent labels (micro)"),
        Score("majority_f1_macro", "F1 of the most frequent labels (macro)"),
        Score("frequency_loss", "loss of class frequencies alone (nats)"),
        Score("constant_loss", "squared error of training's mean"),
    )
    pipeline: ClassVar[str] = "text-classification"
    answered: ClassVar[tuple[str, str]] = ("text", "class")

    def __init__(self, texts: LabelledTexts) -> None:
        self._texts, self._labels = texts, texts.labels

    @property
    def official(self) -> str:
        """As `TaskSection.official`."""
        if self._texts.several:
            return "f1_micro"
        return "pearson" if len(self._labels) == 1 else self._texts.official

    def unit(self, examples: Mapping[str, Any]) -> str:
        """As `TaskSection.unit`."""
        return "texts"

    def name(self, network: str, counts: Mapping[str, Any]) -> str:
        """As `TaskSection.name`."""
        if self._texts.several:
            what = f"finds {listed(self._labels)}"
        else:
            one = len(self._labels) == 1
            what = f"predicts “{short(self._labels[0])}”" if one else f"tells {listed(self._labels)} apart"
        return f"{network} that {what}, {'fine-tuned' if counts.get('init') else 'trained'}"

    def trained_on(self) -> str:
        """As `TaskSection.trained_on`."""
        return f"texts labelled with {', '.join(self._labels)}"

    def verdict(self, scores: Mapping[str, Any]) -> str:
        """As `TaskSection.verdict`."""
        if "labels_loss" in scores:
            return " ".join(verdict_on_labels(scores))
        if "regression_loss" in scores:
            return " ".join(verdict_on_numbers(scores))
        if "classification_loss" in scores or "accuracy" in scores:
            return " ".join(verdict_on_classes(scores))
        return "It has not been scored yet."

    @classmethod
    def last(cls, rows: Rows) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """As `TaskSection.last`."""
        for row in reversed(rows):
            taken = ((score, row.get(f"heldout_{name}")) for name, score in _TAKEN.items())
            if scores := {score: value for score, value in taken if value is not None}:
                return row, scores
        return {}, {}

    def taken(self, rows: Rows, examples: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.taken`, with the baselines that the examples have."""
        row, scores = self.last(rows)
        heldout = examples["heldout"]
        baselines = {name: heldout[name] for name in ("majority", "majority_label", "constant_loss") if name in heldout}
        scored = {"sequences": heldout["examples"], "repeated": heldout["repeated"], **(baselines if scores else {})}
        return {**scores, **scored, "step": row.get("total_steps"), "phase": row.get("phase", 0)}

    def summary(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.summary`, with the classes."""
        names = (*(score.key for score in self.compared), "majority_label", "frequent", "answered", "repeated")
        return {"labels": list(self._labels), **{name: scores[name] for name in names if name in scores}}

    def cards(self, run: Run) -> list[tuple[str, str, str]]:
        """As `TaskSection.cards`."""
        scores = run.scores
        found = [(name, *_card(key, scores)) for key, name in CLASSIFIER_SCORES.items() if key in scores]
        if "regression_loss" in scores:
            loss, constant = (scores.get(name) for name in ("regression_loss", "constant_loss"))
            note = "" if constant is None else f"always training's mean: {constant:.3f}"
            found.append(("mean squared error", NAN if loss is None else f"{loss:.3f}", note))
        return found

    def scored(self, run: Run) -> str:
        """As `TaskSection.scored`."""
        return f"Scores are of {run.scores['sequences']:,} held-out texts, which training never saw."

    def curves(self, rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
        """As `TaskSection.curves`, with the scores of a constant answer."""
        named = (term for term in ("regression", "labels") if any(f"{term}_loss" in row for row in rows))
        term = next(named, "classification")
        label = "squared error" if term == "regression" else "loss (nats)"
        about = "How far the numbers are from the labels." if term == "regression" else "How surprised the model is."
        loss = Chart("Loss", label, about, (), "{:.3g}".format, boundaries=boundaries)
        charts = [_drawn(loss, rows, f"{term}_loss", scores.get(BASELINES[f"{term}_loss"]))]
        if term != "regression":
            about = "How often the likeliest class is the right one."
            if term == "labels":
                about = "Share of the texts whose labels are all right, above a probability of 0.5."
            accuracy = Chart("Accuracy", "accuracy", about, (), percent, boundaries=boundaries)
            charts.append(_drawn(accuracy, rows, f"{term}_accuracy", scores.get("majority")))
        if self.official != "accuracy":
            baseline = scores.get(BASELINES[self.official]) if self.official in BASELINES else 0.0
            charts += self.official_chart(rows, boundaries, baseline)
        return charts

    def examples(self, run: Run) -> Content:
        """As `TaskSection.examples`: how many texts of each class there are, and how long they are."""
        return _examples(run.counts("examples"))

    def about_answers(self) -> str:
        """As `TaskSection.about_answers`."""
        if self._texts.several:
            return (
                "Held-out texts with their labels and the highest probabilities that the model gives; a label is "
                "given above 0.5."
            )
        return (
            "Held-out texts with their class and the probabilities that the model gives to the classes; the right "
            "class is in bold."
        )

    def no_answers(self, settings: Mapping[str, Any]) -> str:
        """As `TaskSection.no_answers`."""
        if len(self._labels) == 1:
            return "The model predicts a number for each text, so it guesses no words and no classes."
        return "None were requested (evaluate.samples)."

    @property
    def purpose(self) -> str:
        """As `TaskSection.purpose`."""
        does = "predict this number for" if len(self._labels) == 1 else "classify"
        does = "label" if self._texts.several else does
        return f"To {does} texts like those that it was trained on."

    @property
    def limit(self) -> str:
        """As `TaskSection.limit`."""
        if len(self._labels) == 1:
            return ""
        if self._texts.several:
            return "It gives the labels whose probability is above 0.5; another threshold may fit better."
        return "It answers one of its classes to every text, also to a text that belongs to none of them."

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """As `TaskSection.holds`."""
        if len(self._labels) == 1:
            return "The folder holds the encoder with a head that predicts a number, ", code(self._labels[0]), "."
        named = [(", " if index else "", code(label)) for index, label in enumerate(self._labels)]
        what = (
            "a classifier of sequences, which may have several labels"
            if self._texts.several
            else ("a classifier of sequences")
        )
        return f"The folder holds the encoder with {what}: ", named, "."

    def program(self, texts: Sequence[str]) -> list[str]:
        """As `TaskSection.program`."""
        text, pairs = next(iter(texts), "a text"), self._texts.pairs
        first, _, second = text.partition(" | ") if pairs else (text, "", "")
        given = f"{{'text': {first!r}, 'text_pair': {second!r}}}" if pairs else f"[{first!r}]"
        # Without it, some versions apply a sigmoid to a number.
        given += ', function_to_apply="none"' if len(self._labels) == 1 else ""
        given += ", top_k=None" if self._texts.several else ""
        return [f"print(model({given}, truncation=True))"]

    def score_table(self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.score_table`."""
        rows = []
        for name, title in {**CLASSIFIER_SCORES, **_LOSSES}.items():
            if name in scores:
                value, baseline = scores[name], scores.get(BASELINES.get(name, ""), 0.0)
                rows.append((title, "undefined" if value is None else f"{value:.4f}", f"{baseline:.4f}"))
        yield p(f"{scores['sequences']:,} texts that training never saw. The baseline is a constant answer.")
        yield plain_table(rows, ("score", "model", "baseline"))

    def tables(self, scores: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.tables`."""
        yield from confusion_tables(scores, self._labels, "label" if self._texts.several else "class")


def _constant(key: str, scores: Mapping[str, Any]) -> str:
    """What a constant answer scores; "" if that was not taken."""
    baseline = scores.get(BASELINES[key])
    if baseline is None:  # scores taken during training have only that of accuracy
        return ""
    return f"always “{short(scores['frequent' if key in _OF_LABELS else 'majority_label'])}”: {percent(baseline)}"


def _card(key: str, scores: Mapping[str, Any]) -> tuple[str, str]:
    """A score and its note: what a constant answer scores, or why the score is undefined."""
    value = scores[key]
    if value is not None and key not in ("matthews", "pearson", "spearman"):
        note = _constant(key, scores)
        if key == "accuracy" and scores.get("repeated"):
            note += f"; {scores['repeated']:,} of the texts also occur in training"
        return percent(value), note
    if value is not None:
        return f"{value:.3f}", "of a constant answer: 0"
    if one_answer(scores):
        return "undefined", "no second class is predicted" if "answered" in scores else "one answer to every text"
    return (
        (NAN, "") if scores.get("accuracy", scores.get("regression_loss")) is None else ("undefined", "one label only")
    )


def _drawn(chart: Chart, rows: Rows, key: str, baseline: float | None) -> Chart:
    """The chart with the curves of a score and, as a dashed line, the score of a constant answer."""
    last = float(rows[-1]["total_steps"]) if rows else 1.0
    series = [
        Series("training", points(rows, key), "train"),
        Series("held-out", points(rows, f"heldout_{key}"), "heldout"),
        Series("constant answer", [] if baseline is None else [(0.0, baseline), (last, baseline)], "baseline"),
    ]
    return replace(chart, series=[each for each in series if each.points])


def _examples(counts: Mapping[str, Any]) -> Content:
    """How many texts of each class are trained on and held out, and how long they are."""
    parts = {"train": "training", "heldout": "held out"}
    classes = [name for name in counts["labels"] if len(counts["labels"]) > 1]
    rows = [
        (
            name,
            number(counts[split]["examples"]),
            number(counts[split]["tokens"]),
            *map(number, counts[split]["classes"]),
        )
        for split, name in parts.items()
    ]
    files = counts["heldout"]["files"]
    where = ", ".join(files) if files else "a share of the training file, selected by a hash of each text"
    repeated = counts["heldout"]["repeated"]
    lengths = [
        histogram(
            f"Lengths, cut to {name}",
            sequences["lengths"],
            int(name),
            f"{sequences['mean_length']:,.1f} tokens in the mean, special ones counted.",
        )
        for name, sequences in counts["train"]["sequences"].items()
    ]
    return (
        table(("part", "texts", "tokens", *classes), rows),
        definitions([("held out", where)]),
        div(lengths, class_="charts"),
        p(f"Of the held-out texts, {short_count(repeated)} also occur word for word among the training texts."),
    )
