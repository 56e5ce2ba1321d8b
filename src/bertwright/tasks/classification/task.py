"""What is done for classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bertwright.core.artifact import Artifact
from bertwright.examples.labelled.files import TextFiles
from bertwright.tasks.classification.config import ClassificationConfig
from bertwright.tasks.task import Evaluation, HeldOut, OwnExamples, Scoring

if TYPE_CHECKING:
    from bertwright.examples.example_set import ExampleSet
    from bertwright.examples.own_examples import Kind
    from bertwright.examples.store import Split
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class LabelledFiles:
    """Labelled texts, tokenised. See `OwnExamples`."""

    made_by: ClassVar[str] = "bertwright.examples.labelled.run:run"

    def kind(self, files: TextFiles) -> Kind[Any, Any]:
        """As `OwnExamples.kind`."""
        from bertwright.examples.labelled.run import LabelledKind

        return LabelledKind(files)

    def open(self, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> ExampleSet:
        """As `OwnExamples.open`."""
        from bertwright.examples.labelled.data import LabelledExamples

        return LabelledExamples.open(examples, split, length, vocab)


class ClassificationTask:
    """See `Task`."""

    own_examples: ClassVar[OwnExamples | None] = LabelledFiles()

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """As `Task.section_type`."""
        from bertwright.tasks.classification.section import ClassificationSection

        return ClassificationSection

    def __init__(self, settings: ClassificationConfig) -> None:
        self._settings = settings

    @property
    def section(self) -> TaskSection:
        """As `Task.section`."""
        from bertwright.tasks.classification.section import ClassificationSection

        return ClassificationSection(self._settings.files.described)

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """As `Task.check`: it names nothing that could not fit."""

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`."""
        from bertwright.tasks.classification.objective import Classification

        return Classification(len(model.config.labels), self._settings.several)

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """As `Task.evaluate`: scores of classes or numbers, with those of a constant answer."""
        from bertwright.tasks.classification.scores import evaluate

        return evaluate(model, heldout, settings)
