"""What the network answers to the same questions at every checkpoint, as JSON lines.

A row holds the answers before the first step, or at a checkpoint that was due. Rows past a checkpoint are cut when
training resumes from it, so the file is the same however often training was killed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from bertwright.core.log import Log
from bertwright.tasks.members import task_of
from bertwright.tasks.task import Asked, AskingTask
from bertwright.train.monitor.metrics import RowFile, guesses_until
from bertwright.train.settings.identity import Inputs, Settings
from bertwright.train.setup.trainee import Trainee
from bertwright.train.state import State


def questions_for(settings: Settings, inputs: Inputs, positions: int, log: Log) -> Asked | None:
    """The questions to the network; None if the recipe asks none, or its task has none.

    Raises `RecipeError` if a line of the recipe is longer than `positions`.
    """
    task, asked = task_of(settings.train.objective), settings.asked
    if asked is None or not isinstance(task, AskingTask) or not (asked.cloze or asked.samples):
        return None
    if find_spec("tokenizers") is None:
        log.say("train: what the model guesses at checkpoints is not recorded, because tokenizers is not installed.")
        return None
    return task.ask(inputs.examples, inputs.vocab, asked, positions)


class Guesses:
    """Asks the network, and appends its answers to a file; all ranks must call `record` together."""

    def __init__(self, questions: Asked | None, path: Path | None, total_steps: int) -> None:
        """`path`: where to write, after cutting rows past step `total_steps`; None on ranks that do not write."""
        self._questions = questions
        self._rows, self._last = None, -1
        if questions and path:
            kept = guesses_until(path, total_steps)
            self._rows = RowFile(path, [line for _, line in kept])
            self._last = kept[-1][0] if kept else -1

    def record(self, trainee: Trainee, state: State) -> None:
        """Append the answers of the current weights, which `state` led to, unless the file has them."""
        # An engine that shards the weights needs every rank for a forward pass.
        if self._questions is None or (self._rows is None and trainee.engine.has_full_weights):
            return
        # Not the network of another runtime, which computes only the shapes of training.
        network = trainee.low.refresh() if trainee.low else trainee.model
        with trainee.precision.forward():
            answers = self._questions.answer(network)
        if self._rows and self._last < state.total_steps:
            self._last = state.total_steps
            place = {"total_steps": state.total_steps, "phase": state.phase, "step": state.data_step}
            self._rows.write({**place, "answers": answers})

    def sync(self) -> None:
        """Write the rows so far to disk."""
        if self._rows:
            self._rows.sync()

    def __enter__(self) -> Guesses:
        return self

    def __exit__(self, *error: object) -> None:
        if self._rows:
            self._rows.__exit__()
