"""Tells a newcomer what each stage of a run does and why, and what came out of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from bertwright.cli.terminal import Terminal
from bertwright.cli.text import wrap
from bertwright.core.numbers import duration, pluralize, time_left
from bertwright.recipe import Recipe

_WIDEST = 80
"""Columns of a line: longer ones are hard to read, even where there is room."""


class Chapter(NamedTuple):
    """A stage in plain English."""

    title: str
    about: Callable[[Recipe], str]
    """What happens now, and why."""
    result: Callable[[Mapping[str, Any]], str]
    """What came out, by the counts of the stage's manifest."""


def _training(recipe: Recipe) -> str:
    steps = sum(phase.steps or 0 for phase in recipe.train.phases)
    return (
        "the longest wait. Words are hidden; the network guesses them, is shown the right ones, and changes a little: "
        f"{pluralize(steps, 'step')}. Now and then it is asked for hidden words of the articles that were put aside."
    )


def _tested(counts: Mapping[str, Any]) -> str:
    right, always = (100 * counts[key] for key in ("mlm_accuracy", "most_common_token_accuracy"))
    return f"{right:.0f} of 100 hidden words guessed right; the commonest word alone would get {always:.0f}"


CHAPTERS = {
    "corpus": Chapter(
        "Text",
        lambda _: (
            "a made-up wiki in Hungarian and English. A model learns whatever it reads, so markup, lists, copies "
            "and text in other languages are removed."
        ),
        lambda counts: (
            f"{counts['kept']:,} of {pluralize(counts['documents'], 'article')} kept, "
            f"{pluralize(counts['words'], 'word')}"
        ),
    ),
    "vocab": Chapter(
        "Vocabulary",
        lambda _: (
            "a network reads numbers. The text decides what gets one: frequent words whole, and pieces from "
            "which all other words are put together."
        ),
        lambda counts: (
            f"{counts['entries']:,} words and pieces; a word of the text is {counts['fertility']:.2f} of "
            "them on average"
        ),
    ),
    "examples": Chapter(
        "Examples",
        lambda _: (
            "the articles become numbers, and some are put aside: the model is tested with them, and must not "
            "have seen them before."
        ),
        lambda counts: (
            f"{pluralize(counts['train']['documents'], 'article')} to learn from, "
            f"{counts['heldout']['documents']:,} to test with"
        ),
    ),
    "train": Chapter(
        "Training",
        _training,
        lambda counts: f"{pluralize(counts['steps'], 'step')}; {counts['sequences_seen']:,} pieces of text read",
    ),
    "evaluate": Chapter(
        "Test",
        lambda _: (
            "the finished model guesses hidden words of the articles that were put aside, and of sentences that "
            "somebody thought of."
        ),
        _tested,
    ),
    "export": Chapter(
        "Export",
        lambda _: (
            "the model is written in the form that other programs read. One of them, transformers, reads it back "
            "and must give the same answers."
        ),
        lambda counts: f"transformers {counts['transformers']} gives the same answers",
    ),
    "report": Chapter(
        "Report",
        lambda _: "a page that shows how good the model is, how it learned, and where everything came from.",
        lambda _: "written",
    ),
}
"""Each stage of a pre-training in plain English."""
_INDENT = "      "
"""As wide as the number of a stage, `[1/7] `."""


class Narrator:
    """A log for a newcomer: a title and a sentence before each stage, a bar while it works, and a result after it.

    What stages say to those who know them is left out, except warnings; the run's log has it. Lines have at most 80
    columns; if standard error is no terminal, progress is a line at intervals.
    """

    def __init__(self, recipe: Recipe, stages: Sequence[str], guess: Callable[[], str]) -> None:
        """`stages` are those that will be told of, in their order; `guess` gives a sentence with what the network put
        into its blank when it was asked last, or ""."""
        self._recipe, self._stages, self._stage = recipe, list(stages), stages[0]
        self._terminal, self._guess = Terminal(), guess
        self._left, self._scored = "", ""

    def __enter__(self) -> Narrator:
        self._terminal.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._terminal.__exit__(*error)

    @contextmanager
    def tell(self, stage: str, finished: bool) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """Say what the stage does unless it is `finished`, and yield what says what came out of it, given the counts of
        its manifest."""
        self._stage, chapter, began = stage, CHAPTERS[stage], time.monotonic()
        number = f"[{self._stages.index(stage) + 1}/{len(self._stages)}] "
        if not finished:
            self.line(f"{chapter.title}: {chapter.about(self._recipe)}", number)
            if self._terminal.live:  # until the stage knows how much it has to do
                self._terminal.show(chapter.title, 0, 0, "starting")

        def ended(counts: Mapping[str, Any]) -> None:
            self._say_score()
            self._terminal.show(chapter.title, 1, 1, "")
            try:
                result = chapter.result(counts)
            except KeyError:  # with overrides, such as another objective, a stage may count something else
                result = "done"
            if finished:
                self.line(f"{chapter.title}: {result} (made before)", number)
            else:
                self.line(f"{result} ({duration(time.monotonic() - began)})")

        yield ended

    def line(self, text: str, beginning: str = _INDENT) -> None:
        """Print a sentence above the bar, in lines that begin below its beginning."""
        self._terminal.say("\n".join(wrap(beginning, text, min(_WIDEST, shutil.get_terminal_size().columns))))

    def say(self, message: str) -> None:
        """Show a message of a stage if it is a warning, or says that training is resumed."""
        if "warning: " in message:
            self.line(message)
        elif message.startswith("train: resuming from "):
            self.line("it goes on where it was stopped")

    def progress(self, stage: str, done: float, total: float, unit: str, **counts: float) -> None:
        """Update the bar of the stage that is being told of."""
        if self._stage != "train":
            self._terminal.progress(CHAPTERS[self._stage].title, done, total, unit)
        elif stage.startswith("phase"):  # scoring in between would take turns with it
            self._say_score()
            self._terminal.show(CHAPTERS["train"].title, done, total, f"{unit}{self._left}")

    def record(self, row: dict[str, Any]) -> None:
        """Note the time left, and the score on held-out articles if there is one, from a row of training."""
        self._left = f", {time_left(row['remaining_seconds'])} left"
        if (accuracy := row.get("heldout_mlm_accuracy")) is not None:
            self._scored = (
                f"after {row['step']:,} of {pluralize(row['steps'], 'step')}: {100 * accuracy:.0f} of 100 right"
            )

    def _say_score(self) -> None:
        # Later than the row, because the network is asked after it.
        if self._scored:
            self.line(self._scored)
            if guess := self._guess():
                self.line(guess, f"{_INDENT}  ")
            self._scored = ""
