"""The external data that phases of a recipe train on: the tasks that import its files, and the join of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from bertwright.core.artifact import Artifact
from bertwright.core.files import cannot_write, make_folder
from bertwright.core.log import Log
from bertwright.core.task_records import is_done, mark_done
from bertwright.examples.config import ExamplesConfig, ImportedData
from bertwright.examples.run_tasks import Step, Task
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.detect import FileSet
from bertwright.formats.errors import ShardError
from bertwright.formats.imported.documents import DocumentsTask, describe_documents, documents_tasks, join_documents
from bertwright.formats.imported.examples import ExamplesTask, describe_examples, examples_tasks, join_examples
from bertwright.formats.imported.heldout import ImportTask
from bertwright.formats.imported.phase_files import PhaseFiles, damage_error, describe_left_out, find, known_by
from bertwright.vocab.load import read_vocabulary


@dataclass(frozen=True)
class Sets:
    """The files of each phase that names external data, as the stage `examples` expects them (`ImportedSets`)."""

    phases: PhaseFiles

    @classmethod
    def find(cls, named: Sequence[ImportedData]) -> Self:
        """Detect the files of the phases by their beginnings. Raises as `phase_files.find` does."""
        return cls([(data, find(data)) for data in named])

    @property
    def inputs(self) -> dict[str, str]:
        """The content hashes of their files."""
        return {name: content for data, file_set in self.phases for name, content in known_by(data, file_set).items()}

    def step(self, parts: Path, vocab: Artifact, vocabulary: Vocabulary, config: ExamplesConfig, log: Log) -> Step:
        """Return a task for each file, or for each part of a file of tokenised documents; log the unused files."""
        log_left_out(self.phases, log)
        tasks = [task for each in self.phases for task in import_tasks(*each, parts, vocab, vocabulary, config)]
        # One function for both kinds of data, so that a step has one list of tasks.
        return import_file, tasks

    def join(
        self, draft: Path, tasks: Sequence[Task], config: ExamplesConfig, entries: Sequence[str], log: Log
    ) -> dict[str, Any]:
        """Write `imported/` into `draft`; returns the counts by phase."""
        return join_imported(draft, self.phases, cast(Sequence[ImportTask], tasks), config, entries, log)


def log_left_out(phases: PhaseFiles, log: Log) -> None:
    """Log which files beside those of the phases are not trained on."""
    for data, file_set in phases:
        if sentence := describe_left_out(data, file_set):
            log.say(f"examples: {sentence}")


def import_tasks(
    data: ImportedData,
    file_set: FileSet,
    parts: Path,
    vocab: Artifact,
    vocabulary: Vocabulary,
    config: ExamplesConfig,
) -> Sequence[ImportTask]:
    """Return a task for each file of a phase; several for a file of tokenised documents."""
    if not file_set.documents:
        return examples_tasks(data, file_set, parts, vocab, vocabulary)
    return documents_tasks(data, file_set, parts, vocabulary, read_vocabulary(vocab.file("vocab.txt")), config)


def import_file(task: ImportTask) -> None:
    """Write the part of one task unless it exists; with `quarantine`, only the fault of a damaged file is recorded."""
    if is_done(task.facts):
        return
    make_folder(task.facts.parent)
    try:
        facts, files = task.write_part()
    except ShardError as error:
        if not task.data.quarantine:
            raise damage_error(task.data, error) from error
        facts, files = {"fault": error.fault}, []
    # Errors while reading are already `DataError`s, so this one is from writing.
    except OSError as error:
        raise cannot_write(task.parts, error) from error
    mark_done(task.facts, files, {"file": task.file.name, **facts})


def join_imported(
    draft: Path,
    phases: PhaseFiles,
    tasks: Sequence[ImportTask],
    config: ExamplesConfig,
    entries: Sequence[str],
    log: Log,
) -> dict[str, Any]:
    """Write `imported/` from the parts of all tasks; returns the counts by phase, or an empty dict if there are none.

    `store/` must exist; `entries` is the vocabulary by id. Raises `DataError` when a phase has nothing left to train
    on.
    """
    counts = {}
    for data, file_set in phases:
        of_phase = [task for task in tasks if task.data == data and task.trains]
        if file_set.documents:
            documents = [task for task in of_phase if isinstance(task, DocumentsTask)]
            summary = join_documents(draft, data, file_set, documents, entries)
            sentences = describe_documents(data, summary)
        else:
            summary = join_examples(
                draft, data, file_set, [task for task in of_phase if isinstance(task, ExamplesTask)]
            )
            sentences = describe_examples(data, summary, config.pairs)
        for sentence in sentences:
            log.say(f"examples: {sentence}")
        counts[data.key] = summary
    labelled = [f"{key}.data" for key, summary in counts.items() if summary.get("labelled")]
    # Files do not state what their labels mean, so this is logged, not rejected.
    if config.plan == "sentence-order" and labelled:
        log.say(
            f"examples: the labels of {', '.join(labelled)} are next-sentence labels in this format (1: another "
            "document), but this run trains on them as sentence order (1: swapped). Unless a run with this plan "
            "wrote them, set examples.plan=next-sentence"
        )
    if any(not file_set.documents for _, file_set in phases) and not any(task.hold_out for task in tasks):
        log.say("examples: examples made elsewhere may contain texts that are held out here; this cannot be checked")
    return {"imported": counts} if counts else {}
