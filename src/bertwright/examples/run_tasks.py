"""The inputs and the tasks of the stage `examples`: what they are, and how a process runs its share of them.

The pipeline imports this module, which therefore loads numpy and the tokenizer only where facts of a vocabulary are
collected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bertwright.core.artifact import Artifact
from bertwright.core.log import Log
from bertwright.core.tasks import Executor
from bertwright.core.work_split import WorkSplit
from bertwright.examples.config import ExamplesConfig, ImportedData

if TYPE_CHECKING:
    from bertwright.examples.vocabulary import Vocabulary


@dataclass(frozen=True)
class Inputs:
    """The inputs of the stage, whatever the examples are made from."""

    corpus: Artifact | None
    """None in a recipe without a corpus."""
    vocab: Artifact
    imported: Sequence[ImportedData] = ()
    """The data of each phase that names files: external examples or documents, or labelled texts."""

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints of the input artifacts, by stage."""
        made = {"corpus": self.corpus, "vocab": self.vocab}
        return {name: artifact.fingerprint for name, artifact in made.items() if artifact is not None}


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
    def inputs(self) -> Mapping[str, str]:
        """The fingerprints of the files, as inputs of the examples artifact."""

    def step(self, parts: Path, vocab: Artifact, vocabulary: Vocabulary, config: ExamplesConfig, log: Log) -> Step:
        """The import tasks, and the function that runs one. Logs which files are not trained on."""

    def join(
        self, draft: Path, tasks: Sequence[Task], config: ExamplesConfig, entries: Sequence[str], log: Log
    ) -> dict[str, Any]:
        """Write the results of the finished tasks into `draft`, which holds `store/`; returns the counts to keep."""


def run_tasks(steps: Sequence[Step], executor: Executor, share: WorkSplit, log: Log) -> None:
    """Run this process's share of the tasks of all steps, one step after the other."""
    own = [(run, [task for number, task in enumerate(tasks) if share.owns(number)]) for run, tasks in steps]
    done = 0

    def report(_: None) -> None:
        nonlocal done
        done += 1
        log.progress("examples", done, sum(len(tasks) for _, tasks in own), "shards")

    for run, tasks in own:
        executor.map(run, tasks, "examples", report)
