"""The inputs of the stage `examples`: a corpus, a vocabulary, and external data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bertwright.core.artifact import Artifact
from bertwright.core.log import Log
from bertwright.examples.config import ExamplesConfig, ImportedData

if TYPE_CHECKING:  # the pipeline imports this module, and must start without numpy
    from bertwright.examples.vocabulary import Vocabulary


class Task(Protocol):
    """One task of the stage: a corpus shard, or an external file."""

    @property
    def facts(self) -> Path:
        """The file that is written last and marks the task as finished."""


Step = tuple[Callable[[Any], None], Sequence[Task]]
"""A function, and the tasks to call it with."""


class ImportedSets(Protocol):
    """The external files that phases train on, in any format (`formats.imported.sets`)."""

    @property
    def data(self) -> Sequence[ImportedData]:
        """The data of each phase that names external files."""

    @property
    def inputs(self) -> Mapping[str, str]:
        """The fingerprints of the files, as inputs of the examples artifact."""

    def step(self, parts: Path, vocab: Artifact, vocabulary: Vocabulary, config: ExamplesConfig, log: Log) -> Step:
        """The import tasks, and the function that runs one. Logs which files are not trained on."""

    def join(
        self, draft: Path, tasks: Sequence[Task], config: ExamplesConfig, entries: Sequence[str], log: Log
    ) -> dict[str, Any]:
        """Write the results of the finished tasks into `draft`, which holds `store/`; returns the counts to keep."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of the stage."""

    corpus: Artifact
    vocab: Artifact
    imported: ImportedSets | None = None
    """External data that phases train on in addition to the corpus."""
