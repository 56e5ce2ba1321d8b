"""The protocol of tasks: the examples, the network, the objective and the scores of one, and how they are presented.

A task is a folder: `config.py` has its recipe section, a member of the union in `tasks.config`, and `task.py` what is
done for it, listed in `tasks.members`. Neither imports torch before it is needed: recipes are checked, and reports
written, without it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from pydantic import model_validator

from bertwright.core.artifact import Artifact
from bertwright.core.config import Section
from bertwright.core.log import Log
from bertwright.core.plugins import Plugin
from bertwright.corpus.characters import composed
from bertwright.examples.own_files import OwnFiles

if TYPE_CHECKING:
    from bertwright.corpus.config import CorpusConfig
    from bertwright.examples.example_set import ExampleSet
    from bertwright.examples.own_examples import Kind
    from bertwright.examples.store import Split
    from bertwright.model.config import ModelConfig, NetworkConfig
    from bertwright.model.model import Model
    from bertwright.tasks.objective import Objective
    from bertwright.tasks.section import TaskSection


class TaskSettings(Section):
    """The base of the tasks' recipe sections: what their settings tell without torch. Here what holds for
    pre-training."""

    @model_validator(mode="before")
    @classmethod
    def _composed(cls, values: Any) -> Any:
        """Classes and columns are named in the normal form of the corpus, as the files are read."""
        if not isinstance(values, dict):
            return values
        paths = {name for name, field in cls.model_fields.items() if field.annotation in (Path, Path | None)}
        return {name: value if name in paths else composed(value) for name, value in values.items()}

    @property
    def files(self) -> OwnFiles | None:
        """How to read the files of examples that the network learns from; None: it learns from running text."""
        return None

    @property
    def taught_by(self) -> Path | None:
        """The folder of a network that it learns from, if any."""
        return None

    @property
    def compares_layers(self) -> bool:
        """Whether it reads the hidden states of single layers, which a compiled network does not show."""
        return False

    @property
    def compares_sequences(self) -> bool:
        """Whether its loss compares all sequences of a step with each other, so that all but one micro-batch are
        computed twice (`objective.JointObjective`)."""
        return False

    def next_sentence(self, pairs: bool) -> bool:
        """Whether the labels of pairs are learned; `pairs`: whether examples are pairs of segments."""
        return pairs

    def network(self, model: ModelConfig, entries: int, pairs: bool) -> NetworkConfig:
        """The network of `model` with the heads that the task needs, for a vocabulary of `entries`."""
        return model.resolve(entries, self.next_sentence(pairs))


class TaskPlugin(Plugin, TaskSettings):
    """The base of tasks in other packages (entry points `bertwright.tasks`): the recipe section of a task, whose fields
    are its keys. Modules with such a class must not import torch; the task itself imports it where it needs it."""

    group: ClassVar[str] = "bertwright.tasks"

    @abstractmethod
    def build(self) -> Task:
        """What is done for the task."""


class OwnExamples(Protocol):
    """Examples that are made of the files of a task."""

    made_by: ClassVar[str]
    """The function that makes them, as "module:function", with the signature of `examples.run.run`."""

    def kind(self, files: Any) -> Kind[Any, Any]:
        """How they are made of the files, which are those of the task (`TaskSettings.files`); loads what makes them."""

    def open(self, examples: Artifact, split: Split, length: int, vocab: Artifact | None = None) -> ExampleSet:
        """A split of them, each of at most `length` tokens; `ArtifactError` if they were made with another vocabulary
        than `vocab`."""


class Task(Protocol):
    """What is done for a task; each member of the union has one, made of its settings (`tasks.members`)."""

    own_examples: ClassVar[OwnExamples | None]
    """How its examples are made of files; None: of running text, as for pre-training."""

    @classmethod
    def section_type(cls) -> type[TaskSection]:
        """The class of `section`; training, which shows nothing, does not import it."""

    @property
    def section(self) -> TaskSection:
        """How its scores are presented."""

    def check(self, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
        """Raise `RecipeError` or `ArtifactError` if what the settings name does not fit the network, the lengths of the
        phases, or the vocabulary."""

    def build(self, model: Model, pair_task: str) -> Objective:
        """The objective for training `model`; `pair_task` names the task of pair labels (`examples.config.PAIRS`)."""

    def evaluate(self, model: Model, heldout: HeldOut, settings: Scoring) -> Evaluation:
        """Score a trained `model` on held-out examples."""


@runtime_checkable
class AskingTask(Task, Protocol):
    """A task whose network is asked the same questions at every checkpoint, to show how its answers change."""

    def ask(self, examples: Artifact, vocab: Artifact, settings: Scoring, positions: int) -> Asked:
        """The questions to a network of so many positions.

        Raises `RecipeError` if a line of the settings is longer than that.
        """


class Asked(Protocol):
    """Questions to a network."""

    def answer(self, model: Any) -> list[dict[str, Any]]:
        """The answers (`evaluate.shapes.PREDICTIONS`) of `model`, from a forward pass without dropout, which draws no
        random number; its training mode is restored."""


@dataclass(frozen=True)
class HeldOut:
    """What a model is scored on."""

    examples: Artifact
    vocab: Artifact
    length: int
    """Maximum length of a sequence, in tokens."""
    log: Log
    start: Mapping[str, str] | None = None
    """The folder and the fingerprint of the network that training started from, if any."""
    general: CorpusConfig | None = None
    """Texts of another kind, to be scored beside the held-out ones, as the sources of a corpus."""

    def verified(self, *prefixes: str) -> Artifact:
        """The examples, whose files with these prefixes were compared with what was sealed (`ArtifactError`)."""
        for name in (name for prefix in prefixes for name in self.examples.names(prefix)):
            self.examples.file(name)
        return self.examples


class Scoring(Protocol):
    """The settings of the stage `evaluate` that a task reads."""

    @property
    def batch(self) -> int:
        """Sequences a forward pass."""

    @property
    def max_sequences(self) -> int:
        """Maximum number of sequences to score; 0: all."""

    @property
    def mask_rate(self) -> float:
        """Share of the tokens to mask."""

    @property
    def samples(self) -> int:
        """Number of held-out texts to show answers to."""

    @property
    def cloze(self) -> tuple[str, ...]:
        """Lines with a mask to fill in."""


ERRORS = 20
"""The number of wrong answers that are written and shown, unless `Scoring.samples` is 0."""


@dataclass(frozen=True)
class Evaluation:
    """The result of scoring."""

    scores: dict[str, Any]
    """Scores with their baselines, by name; None where a score is undefined. `untrained` says that they show no
    learning."""
    answers: list[dict[str, Any]]
    """Texts with the model's answers (`evaluate.shapes.PREDICTIONS`)."""
    summary: str
    """The headline scores, for the log."""
    errors: list[dict[str, Any]] | None = None
    """The wrong answers with the highest loss (`evaluate.shapes.ERROR`); None for a task without right answers to
    whole examples."""
