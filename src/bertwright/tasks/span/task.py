"""What is done for answer spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from bertwright.core.artifact import Artifact
from bertwright.core.errors import RecipeError
from bertwright.tasks.span.config import SpanConfig, SpanFiles
from bertwright.tasks.task import Evaluation, HeldOut, OwnExamples, Scoring

if TYPE_CHECKING:
    from bertwright.examples.example_set import ExampleSet
    from bertwright.examples.own_examples import Kind
    from bertwright.examples.store import Split
    from bertwright.model.config import NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class Questions:
    """Questions about texts, tokenised. See `OwnExamples`."""

    made_by: ClassVar[str] = "bertwright.tasks.span.run:run"

    def kind(self, files: SpanFiles) -> Kind[Any, Any]:
        """As `OwnExamples.kind`."""
        from bertwright.tasks.span.run import SpanKind

        return SpanKind(files)

    def open(self, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> ExampleSet:
        """As `OwnExamples.open`."""
        from bertwright.tasks.span.examples import SpanExamples

        return SpanExamples.open(examples, split, length, vocab)


class SpanTask:
    """See `Task`."""

    own_examples: ClassVar[OwnExamples | None] = Questions()

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """As `Task.section_type`."""
        from bertwright.tasks.span.section import SpanSection

        return SpanSection

    def __init__(self, settings: SpanConfig) -> None:
        self._settings = settings

    @property
    def section(self) -> TaskSection:
        """As `Task.section`."""
        return self.section_type()()

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """As `Task.check`: a window must be longer than its overlap with the next."""
        stride, query = self._settings.stride, self._settings.max_query
        if (shortest := min(lengths)) <= query + stride + 3:
            raise RecipeError(
                f"train.phases: a length of {shortest} has no room for a question of max_query={query} tokens, 3 "
                f"special ones, and a window of the text that shares stride={stride} tokens with the next. Set a "
                f"length above {query + stride + 3}, such as 384, or a smaller train.objective.stride."
            )

    def build(self, model: Model, pair_task: str) -> Objective:
        """As `Task.build`."""
        from bertwright.tasks.span.objective import Span

        return Span(self._settings.max_answer)

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """As `Task.evaluate`: the answers by exact match and F1."""
        from bertwright.tasks.span.scores import evaluate

        return evaluate(model, heldout, self._settings.max_answer, settings)
