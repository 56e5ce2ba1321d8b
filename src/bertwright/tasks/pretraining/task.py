"""What is done for pre-training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from bertwright.core.artifact import Artifact
from bertwright.tasks.task import Evaluation, HeldOut, Scoring, TaskSettings

if TYPE_CHECKING:
    from bertwright.examples.batch import MicroBatch
    from bertwright.examples.loader import Loader, LoaderSettings
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class PreTrainingTask:
    """Masked-language modelling and the labels of pairs; the base of tasks that differ from it only in their loss
    (`build`). See `Task`."""

    examples_from: ClassVar[str] = ""

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

    def loader(self, examples: Artifact, settings: LoaderSettings, vocab: Artifact) -> Loader:
        """Never called: batches of running text are the same for every task (`examples.plan_loader`)."""
        raise NotImplementedError

    def heldout(self, examples: Artifact, length: int, micro_batch: int, most: int | None) -> Iterator[MicroBatch]:
        """Never called, as `loader`."""
        raise NotImplementedError

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`."""
        from bertwright.tasks.pretraining.objective import PreTraining

        return PreTraining(model.config.next_sentence, pair_task)

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """As `Task.evaluate`: scores of masked tokens and pairs, and guesses for masked words."""
        from bertwright.tasks.pretraining.scores import evaluate

        return evaluate(model, heldout, settings)
