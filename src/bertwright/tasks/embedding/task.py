"""What is done for vectors of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.tasks.embedding.config import EmbeddingConfig, PairFiles
from bertwright.tasks.task import Evaluation, HeldOut, OwnExamples, Scoring

if TYPE_CHECKING:
    from bertwright.examples.example_set import ExampleSet
    from bertwright.examples.own_examples import Kind
    from bertwright.examples.store import Split
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class PairsOfTexts:
    """Pairs of texts, tokenised. See `OwnExamples`."""

    made_by: ClassVar[str] = "bertwright.tasks.embedding.run:run"

    def kind(self, files: PairFiles) -> Kind[Any, Any]:
        """As `OwnExamples.kind`."""
        from bertwright.tasks.embedding.run import PairKind

        return PairKind(files)

    def open(self, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> ExampleSet:
        """As `OwnExamples.open`."""
        from bertwright.tasks.embedding.examples import PairExamples

        return PairExamples.open(examples, split, length, vocab)


class EmbeddingTask:
    """See `Task`."""

    own_examples: ClassVar[OwnExamples | None] = PairsOfTexts()

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """As `Task.section_type`."""
        from bertwright.tasks.embedding.section import EmbeddingSection

        return EmbeddingSection

    def __init__(self, settings: EmbeddingConfig) -> None:
        self._settings = settings

    @property
    def section(self) -> TaskSection:
        """As `Task.section`."""
        from bertwright.tasks.embedding.section import EmbeddingSection

        return EmbeddingSection(self._settings)

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """As `Task.check`."""
        if (shortest := min(lengths)) < 3:
            raise RecipeError(f"train.phases: a length of {shortest} has no room for a text. Set at least 3.")
        if (most := max(self._settings.dimensions, default=0)) > network.hidden_size:
            raise RecipeError(
                f"train.objective.dimensions has {most}, but the vectors of [model] have {network.hidden_size} "
                "numbers. Give smaller sizes."
            )

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`."""
        from bertwright.tasks.embedding.objective import Contrast

        return Contrast(self._settings)

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """As `Task.evaluate`: held-out pairs by retrieval."""
        from bertwright.tasks.embedding.scores import evaluate

        return evaluate(model, heldout, settings, self._settings)
