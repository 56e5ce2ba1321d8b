"""The external data that phases of a recipe train on, as the stage `examples` expects it (`ImportedSets`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from bertwright.core.artifact import Artifact
from bertwright.core.log import Log
from bertwright.examples.config import ExamplesConfig, ImportedData
from bertwright.examples.inputs import Step, Task
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.imported.join import join_imported
from bertwright.formats.imported.phase_files import find, known_by, not_trained_on
from bertwright.formats.imported.tasks import Chosen, Import, import_file, import_tasks


@dataclass(frozen=True)
class Sets:
    """The files of each phase that names external data, in a run that also has a corpus."""

    chosen: Chosen

    @classmethod
    def find(cls, named: Sequence[ImportedData]) -> Self | None:
        """Recognise the files of the phases by their beginnings; None if no phase names any. Raises as `find` does."""
        return cls([(data, find(data)) for data in named]) if named else None

    @property
    def data(self) -> list[ImportedData]:
        """The phases."""
        return [data for data, _ in self.chosen]

    @property
    def inputs(self) -> dict[str, str]:
        """The content hashes of their files."""
        return {name: content for data, file_set in self.chosen for name, content in known_by(data, file_set).items()}

    def step(self, parts: Path, vocab: Artifact, vocabulary: Vocabulary, config: ExamplesConfig, log: Log) -> Step:
        """Return a task for each file, or for each part of a file of tokenised documents; log which are left aside."""
        for data, file_set in self.chosen:
            if sentence := not_trained_on(data, file_set):
                log.say(f"examples: {sentence}")
        # One function for both kinds of data, so that a step has one list of tasks.
        return import_file, import_tasks(self.chosen, parts, vocab, vocabulary, config)

    def join(
        self, draft: Path, tasks: Sequence[Task], config: ExamplesConfig, entries: Sequence[str], log: Log
    ) -> dict[str, Any]:
        """Write `imported/` into `draft`; returns the counts by phase."""
        return join_imported(draft, self.chosen, cast(list[Import], tasks), config, entries, log)
