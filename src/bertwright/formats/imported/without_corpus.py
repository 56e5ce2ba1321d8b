"""The stage `examples` without a corpus: all data is imported, and part of it is held out.

Test files next to the training files are held out: NVIDIA's `…_test_…` files, and folders, or files of the hub, named
after a split such as `test` or `dev`. A phase without test files holds out a share of its examples or documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact, build
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, write_atomic, write_json
from bertwright.core.libraries import libraries
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.core.tasks import Executor, Pool
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet, distinct
from bertwright.examples.frequencies import COUNTS, unigram_loss_of
from bertwright.examples.heldout_overlap import heldout_contamination
from bertwright.examples.information import unknown_words
from bertwright.examples.run import identity
from bertwright.examples.shard import tokenizer_of
from bertwright.examples.vocabulary import Vocabulary
from bertwright.examples.work import vocabulary_facts, work_through
from bertwright.formats.detect import FileSet
from bertwright.formats.imported.heldout import HoldOut
from bertwright.formats.imported.heldout_join import held_out_of, join_heldout
from bertwright.formats.imported.join import join_imported
from bertwright.formats.imported.phase_files import find, find_tests, known_by, not_trained_on
from bertwright.formats.imported.tasks import Chosen, Import, import_file, import_tasks
from bertwright.formats.imported.text import count_text, rates, text_of
from bertwright.vocab.report import MOST_PIECES

FEW = 20
"""Number of held-out examples below which the log warns that scores will be rough."""
MUCH = 0.1
"""Share of held-out sentences found in the training text above which the log explains what scores then mean."""


@dataclass(frozen=True)
class Stage:
    """The inputs of the stage."""

    config: ExamplesConfig
    vocab: Artifact
    chosen: Chosen
    tests: Mapping[int, tuple[FileSet, ...]]
    """The sets of files that are not for training, by phase."""
    known: Mapping[str, str]
    """The inputs of the artifact."""


def run(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    imported: Sequence[ImportedData],
    vocab: Artifact,
    context: StageContext,
) -> Artifact:
    """Build the examples artifact in `context.out` from `imported` data only, part of which is held out.

    `sets` are the lengths of the phases, for the identity of the artifact.

    Raises `StageIncomplete` when `context.share` is only part of the work and another process completes the stage.
    """
    chosen = [(data, find(data)) for data in imported]
    tests = {data.phase: find_tests(data, file_set) for data, file_set in chosen}
    inputs = {"vocab": vocab.fingerprint}
    for data, file_set in chosen:
        inputs |= known_by(data, file_set, tests[data.phase])
    stage = Stage(config, vocab, chosen, tests, inputs)
    ours = identity(config, distinct(sets), inputs, imported)
    log, share = context.log, context.share or SINGLE
    with context.executor or Pool(config.workers, log) as pool:
        return build(context.out, ours, log, lambda draft: _make(stage, draft, log, pool, share))


def _make(stage: Stage, draft: Path, log: Log, executor: Executor, share: WorkSplit) -> dict[str, Any]:
    """Write the training and held-out examples of all phases into `draft`; returns the counts of the stage."""
    used = libraries(draft, ("tokenizers",), log, share.world)
    facts = vocabulary_facts(stage.vocab)
    write_json(draft / "vocabulary.json", facts)
    vocabulary, entries = Vocabulary(**facts), tokenizer_of(stage.vocab).vocabulary
    for data, file_set in stage.chosen:
        if sentence := not_trained_on(data, file_set):
            log.say(f"examples: {sentence}")
    tasks = _tasks(stage, make_folder(draft / ".parts"), vocabulary)
    work_through([(import_file, tasks)], executor, share, log)
    share.complete("examples", draft, [task.facts for task in tasks])
    # Before the training parts are joined, because held-out examples are removed from them.
    heldout = join_heldout(draft, tasks, stage.known, stage.config)
    heldout["phases"] = held_out_of(stage.chosen, tasks, stage.config)
    counts = join_imported(draft, stage.chosen, tasks, stage.config, entries, log)
    folders = [draft / data.folder for data, _ in stage.chosen]
    text = np.sum([count_text(folder, vocabulary) for folder in folders], axis=0)
    _judge(text, vocabulary, log)
    write_atomic(draft / COUNTS, text.astype("<u8").tobytes())
    heldout["unigram_loss"] = unigram_loss_of(text, draft / "store")
    overlap = heldout_contamination(
        draft / "store", entries, (block for folder in folders for block in text_of(folder, vocabulary))
    )
    _tell(heldout, overlap, log)
    return {
        "vocabulary": facts["hash"],
        "train": {"tokens": int(text.sum()), "rows": {}, "sequences": {}},
        "heldout": heldout,
        **counts,
        "text": rates(text, vocabulary),
        "heldout_contamination": overlap,
        "libraries": used,
    }


def _tasks(stage: Stage, parts: Path, vocabulary: Vocabulary) -> list[Import]:
    """Return the tasks for the files of each phase, training files before test files."""
    tasks = list[Import]()
    for data, training in stage.chosen:
        tests = stage.tests[data.phase]
        # With test files, holding out a share as well would needlessly remove training text.
        sets = [(training, 0.0 if tests else stage.config.heldout), *((file_set, 1.0) for file_set in tests)]
        number = 0
        for file_set, share in sets:
            for task in import_tasks([(data, file_set)], parts, stage.vocab, vocabulary, stage.config):
                hold_out = HoldOut(share, parts, len(tasks), stage.config)
                tasks.append(replace(task, number=number, hold_out=hold_out))
                number += 1
    return tasks


def _judge(text: NDArray[np.int64], vocabulary: Vocabulary, log: Log) -> None:
    """Warn about many unknown words, given the occurrences of each entry [V]; raise `DataError` if all are unknown."""
    unknown, tokens = int(text[vocabulary.unk]), int(text.sum())
    if unknown == tokens:
        raise DataError(
            "the data of all phases has no word of the vocabulary, only [UNK], so there is nothing to learn. Set "
            "vocab.file to the vocabulary of its language, and make the data with it."
        )
    for sentence in unknown_words(unknown, tokens):
        log.say(f"examples: warning: {sentence}")
    if (fertility := rates(text, vocabulary)["fertility"]) > MOST_PIECES:
        log.say(
            f"examples: warning: {fertility:.1f} tokens per word (1.1 to 2 are usual): the vocabulary was made for "
            "other text"
        )


def _tell(heldout: Mapping[str, Any], overlap: Mapping[str, Any], log: Log) -> None:
    """Log what the user should know about the scores to come."""
    for key, told in heldout["phases"].items():
        unit = "documents" if "documents" in told else "examples"
        where = f"a share of {told['share']:g}" if told["share"] else f"those of {', '.join(told['files'][:3])}"
        more = f" and {len(told['files']) - 3:,} more files" if len(told["files"]) > 3 else ""
        log.say(f"examples: {key}.data: {told[unit]:,} {unit} are held out, {where}{more}")
    for name, (rows,) in heldout["rows"].items():
        if rows < FEW:
            log.say(f"examples: scores on so few held-out examples of length {name} ({rows}) will be imprecise")
    if overlap["share"] > MUCH:
        log.say(
            f"examples: warning: of {overlap['sentences']:,} held-out segments of {overlap['run']} or more, "
            f"{overlap['found']:,} have {overlap['run']} in a row in common with the training text, as happens if data "
            "was made in several passes. Scores then also measure memorisation. Use test files made of other texts"
        )
