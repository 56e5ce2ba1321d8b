"""What is done for tagging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.tasks.tagging.config import TaggedFiles, TaggingConfig
from bertwright.tasks.task import Evaluation, HeldOut, OwnExamples, Scoring

if TYPE_CHECKING:
    from bertwright.examples.example_set import ExampleSet
    from bertwright.examples.own_examples import Kind
    from bertwright.examples.store import Split
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class TaggedSentences:
    """Sentences of tagged words, tokenised. See `OwnExamples`."""

    made_by: ClassVar[str] = "bertwright.tasks.tagging.run:run"

    def kind(self, files: TaggedFiles) -> Kind[Any, Any]:
        """As `OwnExamples.kind`."""
        from bertwright.tasks.tagging.run import TaggedKind

        return TaggedKind(files)

    def open(self, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> ExampleSet:
        """As `OwnExamples.open`."""
        from bertwright.tasks.tagging.examples import TaggedExamples

        return TaggedExamples.open(examples, split, length, vocab)


class TaggingTask:
    """See `Task`."""

    own_examples: ClassVar[OwnExamples | None] = TaggedSentences()

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """As `Task.section_type`."""
        from bertwright.tasks.tagging.section import TaggingSection

        return TaggingSection

    def __init__(self, settings: TaggingConfig) -> None:
        self._settings = settings

    @property
    def section(self) -> TaskSection:
        """As `Task.section`."""
        from bertwright.tasks.tagging.section import TaggingSection

        return TaggingSection(self._settings.files)

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """As `Task.check`."""
        if shortest := [length for length in lengths if length < 3]:
            raise RecipeError(f"train.phases: a length of {shortest[0]} has no room for a word. Set at least 3.")

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`."""
        from bertwright.tasks.tagging.objective import Tagging

        return Tagging(self._settings.files)

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """As `Task.evaluate`: entities by precision, recall and F1, words by accuracy."""
        from bertwright.tasks.tagging.scores import evaluate

        return evaluate(model, heldout, self._settings.files, settings)
