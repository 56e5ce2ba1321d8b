"""The task `choice` in a recipe. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from bertwright.examples.labelled.config import SUFFIXES
from bertwright.examples.own_files import OwnFiles
from bertwright.examples.problems import Problems
from bertwright.model.family import ANSWERS
from bertwright.tasks.choice.layout import Layout
from bertwright.tasks.task import TaskSettings

if TYPE_CHECKING:
    from bertwright.examples.labelled.sizes import TextSizes
    from bertwright.model.config import ModelConfig, NetworkConfig
    from bertwright.tasks.choice.files import Question


def _as_columns(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


Columns = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_columns)]
"""Names of columns; a text is the name of one."""


@dataclass(frozen=True)
class ChoiceFiles(OwnFiles):
    """How to read files of questions with choices."""

    unit: ClassVar[str] = "questions"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES
    several_sequences: ClassVar[bool] = True

    layout: Layout

    @property
    def labels(self) -> tuple[str, ...]:
        """What is predicted: how well a choice fits, which is no class."""
        return ANSWERS["choice"]

    @property
    def pairs(self) -> bool:
        """As `OwnFiles.pairs`: [CLS] text [SEP] choice [SEP]."""
        return True

    @property
    def settings(self) -> Mapping[str, Any]:
        """As `OwnFiles.settings`."""
        return {"labels": list(self.labels), **asdict(self.layout)}

    def read(self, file: Path, problems: Problems) -> Iterator[Question]:
        """As `OwnFiles.read`."""
        from bertwright.tasks.choice.files import read_labelled  # not needed by other tasks

        return read_labelled(file, self.layout, problems)

    def texts(self, example: Question) -> Sequence[str]:
        """As `OwnFiles.texts`."""
        return example.context, example.question, *example.choices

    def label(self, example: Question) -> str:
        """As `OwnFiles.label`."""
        return str(example.label)

    def held_together(self, example: Question) -> Sequence[str]:
        """As `OwnFiles.held_together`: the questions about a text."""
        return (example.context,)

    def sizes(self, file: Path) -> TextSizes:
        """As `OwnFiles.sizes`, of the mean pair of a text and a choice."""
        import numpy as np  # slow to import, and not needed by pre-training

        from bertwright.examples.labelled.sizes import TextSizes

        found = list(self.read(file, Problems()))
        choices = np.array([len(each.choices) for each in found], np.int64)
        contexts = np.array([len(each.context.encode()) for each in found], np.int64)
        endings = np.array([sum(len(ending.encode()) for ending in each.endings) for each in found], np.int64)
        read = contexts + endings // np.maximum(choices, 1)
        return TextSizes(len(found), read, int(read.max(initial=0)), choices)


class ChoiceConfig(TaskSettings):
    """Chooses the text that follows from, answers or explains another one (Devlin et al. 2019 §4.4): each choice is
    read in a pair with the text, and a softmax compares the scores of a question's choices. The data of the phases are
    files of questions, such as those of SWAG, COPA or RACE; training starts from random weights, or from the
    pre-trained network named by `train.init_from`. Columns that are not named are guessed from their names."""

    kind: Literal["choice"] = "choice"
    """Names this objective."""
    context: Columns = ()
    """Columns of the first text of each pair, joined by spaces; empty: guessed."""
    question: Columns = ()
    """Columns that begin the second text, before the choice; empty: none if `context` is given, else guessed."""
    choices: Columns = ()
    """The column with a list of choices, or a column for each choice; empty: guessed."""
    label: str = ""
    """Column of the right choice: its number, its letter, its text, or the name that the file gives it; empty:
    guessed."""
    first: Literal[0, 1] | None = None
    """Number of the first choice in the labels; if unset, the one that the labels of each file allow."""
    words: dict[str, str] = Field(default_factory=dict)
    """Text that is read instead of a value of `context` or `question`: COPA's cause = "What was the cause of this?" and
    effect = "What happened as a result?" unless columns are given, as in jiant."""

    @property
    def files(self) -> ChoiceFiles:
        """As `TaskSettings.files`."""
        return ChoiceFiles(Layout(self.context, self.question, self.choices, self.label, self.first, self.words))

    def next_sentence(self, pairs: bool) -> bool:
        """As `TaskSettings.next_sentence`: a classifier replaces the pre-training heads."""
        return False

    def network(self, model: ModelConfig, entries: int, pairs: bool) -> NetworkConfig:
        """As `TaskSettings.network`: with a score for each sequence in place of the pre-training heads."""
        return model.resolve(entries, False, self.files.labels, "choice")
