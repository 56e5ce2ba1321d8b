"""What people are told of a run: the parts of the report, the model card and the comparison that depend on its task.

Reads only manifests and JSON. Does not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from bertwright.core.artifact import Artifact
from bertwright.core.numbers import percent
from bertwright.page.chart import Chart, Points, Series
from bertwright.page.markup import Content, Element
from bertwright.tasks.shapes import Epochs, Scored

Rows = Sequence[Mapping[str, Any]]
"""Rows of metrics.jsonl, in order."""


@dataclass(frozen=True)
class Score:
    """A score by which runs are compared."""

    key: str
    title: str
    best: Callable[[Sequence[float]], float] | None = None
    """Which of several is best; None for a baseline."""
    per_token: bool = False
    """Whether it depends on the vocabulary and the masks, so that only runs with the same ones are comparable."""


class Run(Protocol):
    """A run as its report knows it (`report.facts.Facts`)."""

    @property
    def stages(self) -> Mapping[str, Artifact]:
        """The finished stages."""

    @property
    def scores(self) -> Mapping[str, Any]:
        """The scores of the stage `evaluate`, or the last ones of training."""

    def counts(self, stage: str) -> Mapping[str, Any]:
        """The counts of a stage."""


class TaskSection:
    """The presentation of a task; each task overrides what differs from this plain one."""

    compared: ClassVar[Sequence[Score]] = ()
    """The scores by which runs are compared, in table order."""
    pipeline: ClassVar[str] = ""
    """The pipeline of transformers that uses the exported model."""
    library: ClassVar[str] = "transformers"
    """The library that the card names for the model."""
    material: ClassVar[str] = "labelled texts"
    """What the card says that it was trained on, if it learns from files of its own."""
    answered: ClassVar[tuple[str, str]] = ("text", "answer")
    """What a shown answer belongs to, and what was to be answered."""
    all_right: ClassVar[str] = ""
    """Why no wrong answers are shown where some were asked for; "": the task shows no answers."""

    @property
    def official(self) -> str:
        """The key of the score that is published for the task, higher being better; "" if there is none, or if it is
        not taken in training."""
        return ""

    @property
    def prompts(self) -> Mapping[str, str]:
        """What was read before texts of a kind, "query" or "document", if the model gives vectors."""
        return {}

    @property
    def purpose(self) -> str:
        """What the model is for, a sentence."""
        return "To start from for a task of your own."

    @property
    def limit(self) -> str:
        """What its answers cannot tell, a sentence, or ""."""
        return "Its answers are likely, not true, and repeat the errors and prejudices of its texts."

    def unit(self, examples: Mapping[str, Any]) -> str:
        """What the held-out set consists of, given the counts of the examples."""
        return "examples"

    def name(self, network: str, counts: Mapping[str, Any]) -> str:
        """What the model is, up to "for 2 minutes": `network` is its family, language and size, `counts` are those of
        its training."""
        return f"{network}, {'trained further' if counts.get('init') else 'trained'}"

    def trained_on(self) -> str:
        """What its texts are, if they have a special form; else ""."""
        return ""

    def verdict(self, scores: Mapping[str, Any]) -> str:
        """How good a model with these scores is, in sentences."""
        return "The model was trained; its task has no rule that tells how good it is."

    @classmethod
    def last(cls, rows: Rows) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """The last row with held-out scores of this task, and those by name; both empty if there is none."""
        for row in reversed(rows):
            held = {key.removeprefix("heldout_"): value for key, value in row.items() if key.startswith("heldout_")}
            if held:
                return row, held
        return {}, {}

    def taken(self, rows: Rows, examples: Mapping[str, Any]) -> dict[str, Any]:
        """The scores of a run that `evaluate` has not scored yet, from its rows and the counts of its examples, with
        their `step` and `phase`."""
        row, scores = self.last(rows)
        return {**scores, "step": row.get("total_steps"), "phase": row.get("phase", 0)}

    def summary(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """The scores that summary.json has."""
        return {score.key: scores[score.key] for score in self.compared if score.key in scores}

    def cards(self, run: Run) -> list[tuple[str, str, str]]:
        """The headline numbers, each with its name and a note."""
        known = ((score, run.scores.get(score.key)) for score in self.compared)
        return [(score.title, f"{value:.3f}", "") for score, value in known if value is not None]

    def scored(self, run: Run) -> str:
        """A sentence that says what the scores were taken on."""
        return "Scores are of held-out examples, which training never saw."

    def curves(self, rows: Rows, scores: Mapping[str, Any], boundaries: Sequence[float]) -> list[Chart]:
        """Charts of the losses and accuracies over optimizer steps; `boundaries` are the steps between phases. Here one
        of the loss of each term in the rows."""
        losses = [key for row in rows[:1] for key in row if key.endswith("_loss") and not key.startswith("heldout_")]
        return [self.loss_chart(loss.removesuffix("_loss"), rows, boundaries) for loss in losses]

    def official_chart(self, rows: Rows, boundaries: Sequence[float], baseline: float | None) -> list[Chart]:
        """The chart of the official score over the steps, beside that of a constant answer, if it was taken."""
        held = points(rows, f"heldout_{self.official}")
        if not held:
            return []
        title = next(score.title for score in self.compared if score.key == self.official)
        constant = [] if baseline is None else [(0.0, baseline), (held[-1][0], baseline)]
        series = [Series("held-out", held, "heldout"), Series("constant answer", constant, "baseline")]
        about = "The score that is published for this task, of the held-out examples."
        drawn = [each for each in series if each.points]
        return [Chart(f"{title[0].upper()}{title[1:]}", title, about, drawn, percent, boundaries=boundaries)]

    def loss_chart(self, term: str, rows: Rows, boundaries: Sequence[float]) -> Chart:
        """The chart of the loss of a term of the objective."""
        labels = (f"Loss of the term {term}", "loss", "A term of the loss, a mean.")
        return loss_chart(term, labels, rows, boundaries)

    def examples(self, run: Run) -> Content:
        """The section about the examples."""
        return ()

    def right_answers(self, ranks: Sequence[int], of: int) -> str:
        """Says how many of `of` shown answers are right; `ranks` has the rank of the right one where it is shown."""
        return f"The first guess is right in {ranks.count(0):,} of {of:,} {self.answered[0]}s"

    def about_answers(self) -> str:
        """How to read the table of shown answers."""
        return "The right answer is in bold."

    def no_answers(self, settings: Mapping[str, Any]) -> str:
        """Why no answers are shown; `settings` are those of the stage `evaluate`."""
        if not self.all_right:
            return "The task shows no answers."
        return self.all_right if settings.get("samples", 8) else "None were requested (evaluate.samples)."

    def holds(self, architecture: str, scores: Mapping[str, Any]) -> Content:
        """What the exported folder holds."""
        return f"The folder holds {architecture}."

    def load(self) -> list[str]:
        """Lines that load `model`, and what `program` needs besides."""
        return ["from transformers import pipeline", "", f'model = pipeline("{self.pipeline}", model=".")']

    def program(self, texts: Sequence[str]) -> list[str]:
        """Lines that use `model`; `texts` are held-out ones."""
        return [f"print(model({next(iter(texts), 'a text')!r}))"]

    def score_table(self, architecture: str, scores: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[Element]:
        """The card's tables of scores with their baselines; `counts` are those of the training."""
        yield from ()

    def tables(self, scores: Mapping[str, Any]) -> Iterator[Element]:
        """Tables of the scores of single classes or kinds, and of what was confused, for the report and the card."""
        yield from ()


CHOSEN = (
    "the best was chosen by the held-out examples whose scores these are, which makes its score look better than it is"
)


def epochs_of(rows: Rows, name: str) -> Epochs | None:
    """The last and the best of the held-out scores of this name in the rows; None if there is none."""
    taken = [(int(row["total_steps"]), value) for row in rows if (value := row.get(f"heldout_{name}")) is not None]
    scored = [Scored(step=step, number=number, score=value) for number, (step, value) in enumerate(taken, 1)]
    if not scored:
        return None
    # Of equal ones the first.
    return Epochs(name=name, last=scored[-1], best=max(scored, key=lambda each: each["score"]), note=CHOSEN)


def loss_chart(term: str, labels: tuple[str, str, str], rows: Rows, boundaries: Sequence[float]) -> Chart:
    """The chart of the loss of a term of the objective; `labels` is its title, the label of its axis, and an
    explanation."""
    series = [
        Series("training", points(rows, f"{term}_loss"), "train"),
        Series("held-out", points(rows, f"heldout_{term}_loss"), "heldout"),
    ]
    return Chart(*labels, series, "{:.3g}".format, boundaries=boundaries)


def points(rows: Rows, name: str) -> Points:
    """The values of a key of the metrics rows by optimizer step."""
    # NaN is null in JSON; leaving it out makes a gap in the curve.
    return [(float(row["total_steps"]), float(row[name])) for row in rows if row.get(name) is not None]
