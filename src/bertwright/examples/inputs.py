"""What the stage `examples` makes examples of: a corpus, a vocabulary, and data made elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bertwright.core.artifact import Artifact
from bertwright.core.log import Log
from bertwright.examples.config import ExamplesConfig, ImportedData

if TYPE_CHECKING:  # the pipeline knows this page, and starts without numpy
    from bertwright.examples.vocabulary import Vocabulary


class Task(Protocol):
    """One task of the stage: a corpus shard, or a file made elsewhere."""

    @property
    def facts(self) -> Path:
        """The file that is written last."""


Step = tuple[Callable[[Any], None], Sequence[Task]]
"""A function, and the tasks it is called with."""


class ImportedSets(Protocol):
    """The files of the phases that name data made elsewhere, whatever their format (`formats.imported.sets`)."""

    @property
    def data(self) -> Sequence[ImportedData]:
        """The phases."""

    @property
    def inputs(self) -> Mapping[str, str]:
        """What their files are known by, as inputs of the examples artifact."""

    def step(self, parts: Path, vocab: Artifact, vocabulary: Vocabulary, config: ExamplesConfig) -> Step:
        """The tasks that bring them in, and the function that does one."""

    def join(
        self, draft: Path, tasks: Sequence[Task], config: ExamplesConfig, entries: Sequence[str], log: Log
    ) -> dict[str, Any]:
        """Write what the finished tasks have brought in into `draft`, where `store/` is; the counts to keep."""


@dataclass(frozen=True)
class Inputs:
    """What the stage makes examples of."""

    corpus: Artifact
    vocab: Artifact
    imported: ImportedSets | None = None
    """Data made elsewhere that phases train on beside the corpus."""
