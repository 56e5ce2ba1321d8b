"""The presentation of a tagger: its scores beside those of a constant answer, by type, and its worst errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bertwright.core.numbers import NAN, number, percent, short_count
from bertwright.examples.information import FEW_TEXTS
from bertwright.page.chart import Chart, Series
from bertwright.page.markup import Content, Element, code, definitions, p, plain_table, table
from bertwright.tasks.section import Rows, Run, Score, TaskSection, points
from bertwright.tasks.tables import confusion_tables
from bertwright.tasks.tagging.config import TaggedFiles

_SHOWN = 20
"""Types and tags shown in a table."""
_TITLES = {"f1": "F1 of entities", "precision": "precision", "recall": "recall", "accuracy": "accuracy of words"}


class TaggingSection(TaskSection):
    """See `TaskSection`; `files` has the tags."""

    compared: ClassVar[Sequence[Score]] = (
        Score("tagging_loss", "loss of tags (nats)", min),
        *(Score(key, title, max) for key, title in _TITLES.items()),
        Score("f1_conlleval", "F1 of entities, tags repaired", max),
        Score("majority", "accuracy of the commonest tag"),
    )
    pipeline: ClassVar[str] = "token-classification"
    answered: ClassVar[tuple[str, str]] = ("word", "tag")
    all_right: ClassVar[str] = "There is no wrong tag to show."

    def __init__(self, files: TaggedFiles) -> None:
        self._files = files

    @property
    def official(self) -> str:
        """As `TaskSection.official`."""
        return "f1" if self._files.scheme else "accuracy"

    def unit(self, examples: Mapping[str, Any]) -> str:
        """As `TaskSection.unit`."""
        return "sentences"

    def name(self, network: str, counts: Mapping[str, Any]) -> str:
        """As `TaskSection.name`."""
        what = "finds entities" if self._files.scheme else "tags words"
        return f"{network} that {what}, {'fine-tuned' if counts.get('init') else 'trained'}"

    def trained_on(self) -> str:
        """As `TaskSection.trained_on`."""
        return "sentences whose words have tags"

    @property
    def purpose(self) -> str:
        """As `TaskSection.purpose`."""
        does = "find entities in" if self._files.scheme else "tag the words of"
        return f"To {does} sentences like those that it was trained on."

    @property
    def limit(self) -> str:
        """As `TaskSection.limit`."""
        return "It knows the tags of its training sentences only, and errs more on texts of another kind."

    def verdict(self, scores: Mapping[str, Any]) -> str:
        """As `TaskSection.verdict`."""
        if "accuracy" not in scores:
            return "It has not been scored yet."
        accuracy, majority, words = scores["accuracy"], scores.get("majority"), scores.get("predictions", 0)
        if accuracy is None:
            return "Not usable: its answers are not numbers (NaN)."
        beside = "" if majority is None else f" (always “{scores['majority_label']}”: {percent(majority)})"
        right = f"{percent(accuracy)} of {words:,} held-out words have the right tag{beside}"
        if scores.get("untrained"):
            return f"The model has learned nothing: it gives every word the same tag; {right}."
        if scores.get("sequences", FEW_TEXTS) < FEW_TEXTS:
            return f"The held-out sentences are too few to judge the model: {right}."
        if "f1" in scores:
            found = f"it finds {percent(scores['recall'])} of the entities, and {percent(scores['precision'])} of those"
            good = "The model finds entities" if scores["f1"] > 0 else "The model finds no entity"
            return f"{good}: {found} that it finds are right (F1 {percent(scores['f1'])}); {right}."
        better = majority is not None and accuracy > majority
        return f"The model {'clearly beats' if better else 'is no better than'} a constant answer: {right}."

    @classmethod
    def last(cls, rows: Rows) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """As `TaskSection.last`."""
        row, scores = super().last(rows)
        names = {"tagging_loss": "tagging_loss", "tagging_accuracy": "accuracy"}
        known = {score.key for score in cls.compared}
        renamed = {names.get(name, name): value for name, value in scores.items()}
        return row, {name: value for name, value in renamed.items() if name in known}

    def taken(self, rows: Rows, examples: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.taken`, with the baseline that the examples have."""
        row, scores = self.last(rows)
        heldout = examples["heldout"]
        known = {name: heldout[name] for name in ("majority", "majority_label") if scores}
        counted = {"predictions": sum(heldout["classes"]), "sequences": heldout["examples"]}
        return {**scores, **known, **counted, "step": row.get("total_steps"), "phase": row.get("phase", 0)}

    def summary(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.summary`, with the tags."""
        names = (*(score.key for score in self.compared), "majority_label", "types", "repeated")
        return {"labels": list(self._files.labels), **{name: scores[name] for name in names if name in scores}}

    def cards(self, run: Run) -> list[tuple[str, str, str]]:
        """As `TaskSection.cards`."""
        scores, found = run.scores, list[tuple[str, str, str]]()
        if scores.get("f1") is not None:
            both = f"precision {percent(scores['precision'])}, recall {percent(scores['recall'])}"
            found.append((_TITLES["f1"], percent(scores["f1"]), both))
        if "accuracy" in scores:
            accuracy, majority = scores["accuracy"], scores.get("majority")
            note = "" if majority is None else f"always “{scores['majority_label']}”: {percent(majority)}"
            found.append((_TITLES["accuracy"], NAN if accuracy is None else percent(accuracy), note))
        return found

    def scored(self, run: Run) -> str:
        """As `TaskSection.scored`."""
        return (
            f"Scores are of {run.scores['predictions']:,} words in {run.scores['sequences']:,} held-out sentences, "
            "which training never saw. An entity is found if its words and its type are right."
        )

    def curves(self, rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
        """As `TaskSection.curves`."""
        accuracy = [
            Series("training", points(rows, "tagging_accuracy"), "train"),
            Series("held-out", points(rows, "heldout_tagging_accuracy"), "heldout"),
        ]
        if (majority := scores.get("majority")) is not None and rows:
            accuracy.append(
                Series("constant answer", [(0.0, majority), (float(rows[-1]["total_steps"]), majority)], "baseline")
            )
        about = "How often the likeliest tag of a word is the right one."
        return [
            self.loss_chart("tagging", rows, boundaries),
            Chart("Accuracy", "accuracy", about, accuracy, percent, boundaries=boundaries),
            *(self.official_chart(rows, boundaries, 0.0) if self.official == "f1" else []),
        ]

    def examples(self, run: Run) -> Content:
        """As `TaskSection.examples`: how many sentences, tokens and words of each tag there are."""
        counts = run.counts("examples")
        parts = {"train": "training", "heldout": "held out"}
        order = sorted(range(len(counts["labels"])), key=lambda tag: -counts["train"]["classes"][tag])[:_SHOWN]
        rows = [
            (name, number(counts[split]["examples"]), *(number(counts[split]["classes"][tag]) for tag in order))
            for split, name in parts.items()
        ]
        repeated = short_count(counts["heldout"]["repeated"])
        share = "a share of the training file, selected by a hash of each sentence"
        files = ", ".join(counts["heldout"]["files"]) or share
        return (
            table(("part", "sentences", *(counts["labels"][tag] for tag in order)), rows),
            definitions([("held out", files)]),
            p(f"Of the held-out sentences, {repeated} also occur in training, word for word."),
        )

    def right_answers(self, ranks: Sequence[int], of: int) -> str:
        """As `TaskSection.right_answers`: only errors are shown."""
        return f"The {of:,} wrong tags of which the model is surest"

    def about_answers(self) -> str:
        """As `TaskSection.about_answers`."""
        return "The word is between » and «, with the right tag and the probabilities of the likeliest ones."

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """As `TaskSection.holds`."""
        named = [(", " if index else "", code(tag)) for index, tag in enumerate(self._files.labels[:_SHOWN])]
        more = len(self._files.labels) - _SHOWN
        return "The folder holds the encoder with a tagger of words: ", named, f" and {more} more." if more > 0 else "."

    def program(self, texts: Sequence[str]) -> list[str]:
        """As `TaskSection.program`."""
        text = next(iter(texts), "a text").replace("»", "").replace("«", "")
        # A word has the tag of its first piece, as in training.
        given = f'{text!r}, aggregation_strategy="first"'
        return [f"for found in model({given}):", '    print(found["entity_group"], found["word"], found["score"])']

    def score_table(self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.score_table`."""
        baselines = {"accuracy": scores.get("majority", 0.0)}
        rows = [
            (title, "undefined" if scores[name] is None else f"{scores[name]:.4f}", f"{baselines.get(name, 0.0):.4f}")
            for name, title in _TITLES.items()
            if name in scores
        ]
        yield p(f"{scores['sequences']:,} sentences that training never saw. The baseline is a constant answer.")
        yield plain_table(rows, ("score", "model", "baseline"))

    def tables(self, scores: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.tables`: each type of entities, or the most frequent tags."""
        if types := scores.get("types"):
            yield table(
                ("type", "precision", "recall", "F1", "entities"),
                [
                    (
                        code(kind),
                        *(f"{found[name]:.4f}" for name in ("precision", "recall", "f1")),
                        f"{found['entities']:,}",
                    )
                    for kind, found in types.items()
                ],
            )
        else:
            yield from confusion_tables(scores, self._files.labels, "tag", "words")
