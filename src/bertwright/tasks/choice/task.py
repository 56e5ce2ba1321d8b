"""What is done for multiple choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.tasks.choice.config import ChoiceConfig, ChoiceFiles
from bertwright.tasks.task import Evaluation, HeldOut, OwnExamples, Scoring

if TYPE_CHECKING:
    from bertwright.examples.example_set import ExampleSet
    from bertwright.examples.own_examples import Kind
    from bertwright.examples.store import Split
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class QuestionsWithChoices:
    """Questions with choices, tokenised. See `OwnExamples`."""

    made_by: ClassVar[str] = "bertwright.tasks.choice.run:run"

    def kind(self, files: ChoiceFiles) -> Kind[Any, Any]:
        """As `OwnExamples.kind`."""
        from bertwright.tasks.choice.run import ChoiceKind

        return ChoiceKind(files)

    def open(self, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> ExampleSet:
        """As `OwnExamples.open`."""
        from bertwright.tasks.choice.examples import ChoiceExamples

        return ChoiceExamples.open(examples, split, length, vocab)


class ChoiceTask:
    """See `Task`."""

    own_examples: ClassVar[OwnExamples | None] = QuestionsWithChoices()

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """As `Task.section_type`."""
        from bertwright.tasks.choice.section import ChoiceSection

        return ChoiceSection

    def __init__(self, settings: ChoiceConfig) -> None:
        self._settings = settings

    @property
    def section(self) -> TaskSection:
        """As `Task.section`."""
        return self.section_type()()

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """As `Task.check`."""
        if (shortest := min(lengths)) < 5:
            raise RecipeError(
                f"train.phases: a length of {shortest} has no room for a text and a choice. Set at least 5."
            )

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`."""
        from bertwright.tasks.choice.objective import Choice

        return Choice()

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """As `Task.evaluate`: the choices by accuracy."""
        from bertwright.tasks.choice.scores import evaluate

        return evaluate(model, heldout, settings)
