"""The presentation of choices: their accuracy beside a constant answer and chance, and the worst errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bertwright.core.numbers import NAN, number, percent, short_count
from bertwright.examples.information import FEW_TEXTS
from bertwright.page.chart import Chart, Series
from bertwright.page.markup import Content, Element, definitions, p, plain_table, table
from bertwright.tasks.section import Rows, Run, Score, TaskSection, points

_TITLES = {"accuracy": "accuracy", "matthews": "Matthews' correlation of places"}


class ChoiceSection(TaskSection):
    """See `TaskSection`."""

    compared: ClassVar[Sequence[Score]] = (
        Score("choice_loss", "loss of choices (nats)", min),
        *(Score(key, title, max) for key, title in _TITLES.items()),
        Score("majority", "accuracy of the commonest place"),
        Score("chance", "accuracy of a guess"),
    )
    # Pipelines of transformers have none for multiple choice.
    pipeline: ClassVar[str] = "multiple-choice"
    answered: ClassVar[tuple[str, str]] = ("question", "choice")
    all_right: ClassVar[str] = "There is no wrong answer to show."

    def unit(self, examples: Mapping[str, Any]) -> str:
        """As `TaskSection.unit`."""
        return "questions"

    def name(self, network: str, counts: Mapping[str, Any]) -> str:
        """As `TaskSection.name`."""
        return f"{network} that chooses answers, {'fine-tuned' if counts.get('init') else 'trained'}"

    def trained_on(self) -> str:
        """As `TaskSection.trained_on`."""
        return "questions with several choices, of which one is right"

    @property
    def purpose(self) -> str:
        """As `TaskSection.purpose`."""
        return "To choose the text that fits another one, like the right choices of its training questions."

    @property
    def limit(self) -> str:
        """As `TaskSection.limit`."""
        return "It always prefers one of the given choices, right or not, and errs more on questions of another kind."

    def verdict(self, scores: Mapping[str, Any]) -> str:
        """As `TaskSection.verdict`."""
        if "accuracy" not in scores:
            return "It has not been scored yet."
        accuracy, majority, questions = scores["accuracy"], scores.get("majority", 0.0), scores.get("sequences", 0)
        if accuracy is None:
            return "Not usable: its answers are not numbers (NaN)."
        beside = f"always {scores.get('majority_label', 'the same')}: {percent(majority)}"
        guess = f"; chance: {percent(scores['chance'])}" if "chance" in scores else ""
        right = f"{percent(accuracy)} of {questions:,} held-out questions are answered right ({beside}{guess})"
        if sum(map(bool, scores.get("answered", {}).values())) == 1:
            return f"The model has learned nothing: its answer is always at the same place; {right}."
        if questions < FEW_TEXTS:
            return f"The held-out questions are too few to judge the model: {right}."
        if scores.get("untrained"):
            return f"Chance explains the answers of the model, so it has learned nothing that can be shown: {right}."
        better = "clearly beats" if accuracy > majority else "is no better than"
        return f"The model {better} a constant answer: {right}."

    @classmethod
    def last(cls, rows: Rows) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """As `TaskSection.last`."""
        row, scores = super().last(rows)
        names = {"choice_loss": "choice_loss", "choice_accuracy": "accuracy"}
        return row, {names[name]: value for name, value in scores.items() if name in names}

    def taken(self, rows: Rows, examples: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.taken`, with the baselines that the examples have."""
        row, scores = self.last(rows)
        heldout = examples["heldout"]
        known = {name: heldout[name] for name in ("majority", "majority_label", "chance") if scores}
        place = {"step": row.get("total_steps"), "phase": row.get("phase", 0)}
        return {**scores, **known, "sequences": heldout["examples"], **place}

    def summary(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.summary`."""
        more = ("majority_label", "answered", "repeated")
        return super().summary(scores) | {name: scores[name] for name in more if name in scores}

    def cards(self, run: Run) -> list[tuple[str, str, str]]:
        """As `TaskSection.cards`."""
        scores = run.scores
        if "accuracy" not in scores:
            return []
        note = f"always {scores['majority_label']}: {percent(scores['majority'])}" if "majority" in scores else ""
        return [(_TITLES["accuracy"], NAN if scores["accuracy"] is None else percent(scores["accuracy"]), note)]

    def scored(self, run: Run) -> str:
        """As `TaskSection.scored`."""
        return f"Scores are of {run.scores['sequences']:,} held-out questions, which training never saw."

    def curves(self, rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
        """As `TaskSection.curves`."""
        accuracy = [
            Series("training", points(rows, "choice_accuracy"), "train"),
            Series("held-out", points(rows, "heldout_choice_accuracy"), "heldout"),
        ]
        if (majority := scores.get("majority")) is not None and rows:
            accuracy.append(
                Series("constant answer", [(0.0, majority), (float(rows[-1]["total_steps"]), majority)], "baseline")
            )
        about = "How often the right choice has the highest score."
        return [
            self.loss_chart("choice", rows, boundaries),
            Chart("Accuracy", "accuracy", about, accuracy, percent, boundaries=boundaries),
        ]

    def examples(self, run: Run) -> Content:
        """As `TaskSection.examples`: how many questions there are, and how long they are."""
        counts = run.counts("examples")
        heldout = counts["heldout"]
        share = "a share of the texts of the training file, selected by a hash, with all their questions"
        parts = {"train": "training", "heldout": "held out"}
        rows = [
            (name, number(counts[split]["examples"]), number(counts[split]["tokens"])) for split, name in parts.items()
        ]
        return (
            table(("part", "questions", "tokens"), rows),
            definitions([("held out", ", ".join(heldout["files"]) or share)]),
            p(f"A guess is right in {percent(heldout['chance'])} of the held-out questions."),
            p(f"Of the held-out questions, {short_count(heldout['repeated'])} also occur in training, word for word."),
        )

    def right_answers(self, ranks: Sequence[int], of: int) -> str:
        """As `TaskSection.right_answers`: only errors are shown."""
        return f"The {of:,} wrong answers of which the model is surest"

    def about_answers(self) -> str:
        """As `TaskSection.about_answers`."""
        return "The text, the right choice, and the probabilities of the likeliest choices."

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """As `TaskSection.holds`."""
        return "The folder holds the encoder with a score for each pair of a text and a choice."

    def load(self) -> list[str]:
        """As `TaskSection.load`: transformers has no pipeline for multiple choice."""
        return [
            "import torch",
            "from transformers import AutoModelForMultipleChoice, AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained(".")',
            'model = AutoModelForMultipleChoice.from_pretrained(".")',
        ]

    def program(self, texts: Sequence[str]) -> list[str]:
        """As `TaskSection.program`."""
        # Not one of `texts`, whose choices are not known here.
        return [
            'text = "The man turned on the faucet. What happened as a result?"',
            'choices = ["The toilet filled with water.", "Water flowed from the spout."]',
            'inputs = tokenizer([text] * len(choices), choices, padding=True, return_tensors="pt")',
            "with torch.no_grad():",
            "    scores = model(**{name: values[None] for name, values in inputs.items()}).logits[0]",
            "print(choices[int(scores.argmax())])",
        ]

    def score_table(self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.score_table`."""
        yield p(f"{scores['sequences']:,} questions that training never saw. The baseline is a constant answer.")
        rows = [
            (title, "undefined" if scores[key] is None else f"{scores[key]:.4f}", f"{baseline:.4f}")
            for (key, title), baseline in zip(_TITLES.items(), (scores.get("majority", 0.0), 0.0), strict=True)
            if key in scores
        ]
        yield plain_table(rows, ("score", "model", "baseline"))
