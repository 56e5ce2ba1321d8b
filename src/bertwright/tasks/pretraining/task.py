"""What is done for pre-training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from bertwright.core.artifact import Artifact
from bertwright.tasks.task import Asked, Evaluation, HeldOut, OwnExamples, Scoring, TaskSettings

if TYPE_CHECKING:
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class PreTrainingTask:
    """Masked-language modelling and the labels of pairs; the base of tasks that differ from it only in their loss
    (`build`). See `Task`."""

    own_examples: ClassVar[OwnExamples | None] = None

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """As `Task.section_type`."""
        from bertwright.tasks.pretraining.section import PreTrainingSection

        return PreTrainingSection

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings

    @property
    def section(self) -> TaskSection:
        """As `Task.section`."""
        return self.section_type()()

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """As `Task.check`: it names nothing that could not fit."""

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`."""
        from bertwright.tasks.pretraining.objective import PreTraining

        return PreTraining(model.config.next_sentence, pair_task)

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """As `Task.evaluate`: scores of masked tokens and pairs, and guesses for masked words."""
        from bertwright.tasks.pretraining.scores import evaluate

        return evaluate(model, heldout, settings)

    def ask(self, examples: Artifact, vocab: Artifact, settings: Scoring, positions: int) -> Asked:
        """As `AskingTask.ask`: the recipe's cloze lines or, without any, sentences that are held out."""
        from bertwright.tasks.pretraining.questions import questions_of

        return questions_of(examples, vocab, settings, positions)
