"""The presentation of answers: exact match and F1 beside never answering, with and without an answer in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from bertwright.core.numbers import NAN, number, percent, short_count
from bertwright.examples.information import FEW_TEXTS
from bertwright.page.chart import Chart, Series
from bertwright.page.markup import Content, Element, definitions, p, plain_table, table
from bertwright.tasks.section import Rows, Run, Score, TaskSection, points

_LITTLE = 0.2
"""Share of the way from the F1 of never answering to 1, below which a model is of no use."""
_TITLES = {"exact": "exact match", "f1": "F1 of words"}
_TERMS = {"start": "first token", "end": "last token"}


class SpanSection(TaskSection):
    """See `TaskSection`."""

    compared: ClassVar[Sequence[Score]] = (
        *(Score(key, title, max) for key, title in _TITLES.items()),
        *(Score(f"{key}_no_threshold", f"{title}, threshold 0", max) for key, title in _TITLES.items()),
        *(Score(f"{key}_loss", f"loss of the {title} (nats)", min) for key, title in _TERMS.items()),
        *(Score(f"{key}_accuracy", f"accuracy of the {title}", max) for key, title in _TERMS.items()),
        Score("majority", "exact match of never answering"),
    )
    pipeline: ClassVar[str] = "question-answering"
    answered: ClassVar[tuple[str, str]] = ("question", "answer")
    all_right: ClassVar[str] = "There is no wrong answer to show."

    @property
    def official(self) -> str:
        """As `TaskSection.official`."""
        return "f1"

    def unit(self, examples: Mapping[str, Any]) -> str:
        """As `TaskSection.unit`."""
        return "questions"

    def name(self, network: str, counts: Mapping[str, Any]) -> str:
        """As `TaskSection.name`."""
        return f"{network} that answers questions, {'fine-tuned' if counts.get('init') else 'trained'}"

    def trained_on(self) -> str:
        """As `TaskSection.trained_on`."""
        return "questions about texts, with answers that are parts of the texts"

    @property
    def purpose(self) -> str:
        """As `TaskSection.purpose`."""
        return "To find the answer to a question in a text."

    @property
    def limit(self) -> str:
        """As `TaskSection.limit`."""
        return "Its answers are parts of the given text, true or not, and it errs more on texts of another kind."

    def verdict(self, scores: Mapping[str, Any]) -> str:
        """As `TaskSection.verdict`."""
        if "exact" not in scores:
            return "It has not been scored yet."
        if scores["exact"] is None:
            return "Not usable: its answers are not numbers (NaN)."
        found = (
            f"{percent(scores['exact'])} of the answers to {scores['questions']:,} held-out questions are exactly "
            f"right, F1 is {percent(scores['f1'])} (never answering: {percent(scores['majority'])})"
        )
        if scores.get("untrained"):
            return f"The model has learned nothing: {found}."
        if scores["questions"] < FEW_TEXTS:
            return f"The held-out questions are too few to judge the model: {found}."
        if scores["f1"] - scores["majority"] < _LITTLE * (1 - scores["majority"]):
            return f"The model is hardly better than never answering: {found}."
        return f"The model answers questions: {found}."

    @classmethod
    def last(cls, rows: Rows) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """As `TaskSection.last`."""
        row, scores = super().last(rows)
        known = {score.key for score in cls.compared}
        return row, {name: value for name, value in scores.items() if name in known}

    def taken(self, rows: Rows, examples: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.taken`, with the baseline that the examples have."""
        heldout, scores = examples["heldout"], super().taken(rows, examples)
        known = {"majority": heldout["majority"], "questions": heldout["examples"]} if "exact" in scores else {}
        return {**scores, **known}

    def summary(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """As `TaskSection.summary`, with the threshold and what depends on it."""
        more = ("threshold", "has_answer", "no_answer", "questions", "repeated")
        return super().summary(scores) | {name: scores[name] for name in more if name in scores}

    def cards(self, run: Run) -> list[tuple[str, str, str]]:
        """As `TaskSection.cards`."""
        scores = run.scores
        note = f"never answering: {percent(scores['majority'])}" if "majority" in scores else ""
        return [
            (title, NAN if scores[key] is None else percent(scores[key]), note)
            for key, title in _TITLES.items()
            if key in scores
        ]

    def scored(self, run: Run) -> str:
        """As `TaskSection.scored`."""
        if "questions" not in run.scores:
            return "Scores are of windows of held-out texts, which training never saw."
        threshold = run.scores.get("threshold")
        tuned = "" if threshold is None else f" {_of_threshold(threshold)}"
        return (
            f"Scores are of {run.scores['questions']:,} held-out questions, which training never saw, by the rules of "
            f"SQuAD's official script.{tuned}"
        )

    def curves(self, rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
        """As `TaskSection.curves`."""
        charts = []
        for term, title in _TERMS.items():
            series = [
                Series("training", points(rows, f"{term}_accuracy"), "train"),
                Series("held-out", points(rows, f"heldout_{term}_accuracy"), "heldout"),
            ]
            about = f"How often the likeliest {title} of a window is the right one."
            charts += [
                self.loss_chart(term, rows, boundaries),
                Chart(f"Accuracy of the {title}", "accuracy", about, series, percent, boundaries=boundaries),
            ]
        return charts + self.official_chart(rows, boundaries, scores.get("majority"))

    def examples(self, run: Run) -> Content:
        """As `TaskSection.examples`: how many questions there are, and how many of them have no answer."""
        counts = run.counts("examples")
        heldout = counts["heldout"]
        share = "a share of the texts of the training file, selected by a hash, with all their questions"
        parts = {"train": "training", "heldout": "held out"}
        return (
            table(
                ("part", "questions", "tokens"),
                [
                    (name, number(counts[split]["examples"]), number(counts[split]["tokens"]))
                    for split, name in parts.items()
                ],
            ),
            definitions([("held out", ", ".join(heldout["files"]) or share)]),
            p(f"{percent(heldout['majority'])} of the held-out questions have no answer in their text."),
            p(f"Of the held-out questions, {short_count(heldout['repeated'])} also occur in training, word for word."),
        )

    def right_answers(self, ranks: Sequence[int], of: int) -> str:
        """As `TaskSection.right_answers`: only errors are shown."""
        return f"{of:,} wrong answers, those without a right word first"

    def about_answers(self) -> str:
        """As `TaskSection.about_answers`."""
        return (
            "After the question a part of the text, with the right answer and the probabilities of the likeliest ones."
        )

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """As `TaskSection.holds`."""
        return "The folder holds the encoder with two logits for each token: of the first and of the last of an answer."

    def load(self) -> list[str]:
        """As `TaskSection.load`: transformers has no pipeline for questions any more."""
        return [
            "import torch",
            "from transformers import AutoModelForQuestionAnswering, AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained(".")',
            'model = AutoModelForQuestionAnswering.from_pretrained(".")',
        ]

    def program(self, texts: Sequence[str]) -> list[str]:
        """As `TaskSection.program`."""
        question, _, text = next(iter(texts), "Who built the bridge? | The bridge was built by Adam Clark.").partition(
            " | "
        )
        return [
            f"question, text = {question!r}, {text!r}",
            'inputs = tokenizer(question, text, truncation="only_second", return_tensors="pt")',
            "with torch.no_grad():",
            "    logits = model(**inputs)",
            "scores = logits.start_logits[0][:, None] + logits.end_logits[0]",
            "inside = torch.tensor([part == 1 for part in inputs.sequence_ids()])  # the tokens of the text",
            "scores = scores.masked_fill(~(inside[:, None] & inside).triu(), -torch.inf)",
            "first, last = divmod(int(scores.argmax()), len(scores))",
            "answer = text[inputs.token_to_chars(first).start : inputs.token_to_chars(last).end]",
            "none = logits.start_logits[0, 0] + logits.end_logits[0, 0]  # of [CLS]",
            'print("no answer" if none > scores.max() else answer)',
        ]

    def score_table(self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.score_table`."""
        yield p(f"{scores['questions']:,} questions that training never saw. The baseline never answers.")
        yield plain_table(
            [
                (
                    title,
                    "undefined" if scores[key] is None else f"{scores[key]:.4f}",
                    f"{scores.get('majority', 0.0):.4f}",
                )
                for key, title in _TITLES.items()
            ],
            ("score", "model", "baseline"),
        )
        if "threshold" in scores:
            yield p(_of_threshold(scores["threshold"]))

    def tables(self, scores: Mapping[str, Any]) -> Iterator[Element]:
        """As `TaskSection.tables`: questions with and without an answer."""
        if "threshold" in scores:
            parts = [("with an answer in the text", scores["has_answer"]), ("without", scores["no_answer"])]
            untuned = {"questions": scores["questions"], **{key: scores[f"{key}_no_threshold"] for key in _TITLES}}
            yield table(
                ("questions", "number", "exact match", "F1"),
                [
                    (title, f"{found['questions']:,}", f"{found['exact']:.4f}", f"{found['f1']:.4f}")
                    for title, found in (*parts, ("all, with the threshold 0", untuned))
                ],
            )


def _of_threshold(threshold: float) -> str:
    return (
        f"No answer is given where its score is more than {threshold:.2f} above that of the best answer. This "
        "threshold was tuned on the same questions, for the highest F1."
    )
