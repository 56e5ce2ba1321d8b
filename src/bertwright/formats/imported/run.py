"""The stage `examples` with external data: beside a corpus, or without one, where part of the data is held out.

Without a corpus, test files next to the training files are held out: NVIDIA's `…_test_…` files, and folders, or files
of the hub, named after a split such as `test` or `dev`. A phase without test files holds out a share of its examples or
documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact, build
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, read_json, write_atomic, write_json
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.core.task_records import record_libraries
from bertwright.core.tasks import Executor, Pool
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.examples.config import ExamplesConfig, PlanSet, distinct
from bertwright.examples.frequencies import COUNTS, token_counts, unigram_loss_of
from bertwright.examples.heldout_overlap import heldout_contamination, training_text
from bertwright.examples.information import unknown_words
from bertwright.examples.instances import dtypes
from bertwright.examples.run import build_examples, identity
from bertwright.examples.run_tasks import Inputs, run_tasks
from bertwright.examples.shard import tokenizer_of, vocabulary_facts
from bertwright.examples.store import map_file
from bertwright.examples.vocabulary import Vocabulary
from bertwright.formats.detect import FileSet
from bertwright.formats.imported.heldout import HoldOut, ImportTask, count_heldout, join_heldout
from bertwright.formats.imported.phase_files import PhaseFiles, find_tests, known_by
from bertwright.formats.imported.sets import Sets, import_file, import_tasks, join_imported, log_left_out
from bertwright.vocab.report import MOST_PIECES

FEW = 20
"""Number of held-out examples below which the log warns that scores will be rough."""
MUCH = 0.1
"""Share of held-out sentences found in the training text above which the log explains what scores then mean."""
_AT_ONCE = 1 << 12
"""Number of examples read at a time."""


@dataclass(frozen=True)
class Stage:
    """What the stage works on without a corpus."""

    config: ExamplesConfig
    vocab: Artifact
    phases: PhaseFiles
    tests: Mapping[int, tuple[FileSet, ...]]
    """The sets of files that are not for training, by phase."""
    known: Mapping[str, str]
    """The inputs of the artifact."""


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact in `context.out` with the external data of `inputs`, part of which is held out unless
    there is a corpus.

    `sets` are the lengths of the phases. Raises `StageIncomplete` when `context.share` is only part of the work and
    another process completes the stage.
    """
    external = Sets.find(inputs.imported)
    if inputs.corpus is not None:
        return build_examples(config, sets, inputs, context, external)
    tests = {data.phase: find_tests(data, file_set) for data, file_set in external.phases}
    known = inputs.fingerprints
    for data, file_set in external.phases:
        known |= known_by(data, file_set, tests[data.phase])
    stage = Stage(config, inputs.vocab, external.phases, tests, known)
    ours = identity(config, distinct(sets), known, inputs.imported)
    log, share = context.log, context.share or SINGLE
    with context.executor or Pool(config.workers, log) as pool:
        return build(context.out, ours, log, lambda draft: _make(stage, draft, log, pool, share))


def _make(stage: Stage, draft: Path, log: Log, executor: Executor, share: WorkSplit) -> dict[str, Any]:
    """Write the training and held-out examples of all phases into `draft`; returns the counts of the stage."""
    used = record_libraries(draft, ("tokenizers",), log, share.world)
    facts = vocabulary_facts(stage.vocab)
    write_json(draft / "vocabulary.json", facts)
    vocabulary, entries = Vocabulary(**facts), tokenizer_of(stage.vocab).vocabulary
    log_left_out(stage.phases, log)
    tasks = _tasks(stage, make_folder(draft / ".parts"), vocabulary)
    run_tasks([(import_file, tasks)], executor, share, log)
    share.complete("examples", draft, [task.facts for task in tasks])
    # Before the training parts are joined, because held-out examples are removed from them.
    heldout = join_heldout(draft, tasks, stage.known, stage.config)
    heldout["phases"] = count_heldout(stage.phases, tasks, stage.config)
    counts = join_imported(draft, stage.phases, tasks, stage.config, entries, log)
    folders = [draft / data.folder for data, _ in stage.phases]
    text = np.sum([count_text(folder, vocabulary) for folder in folders], axis=0)
    _check_vocabulary(text, vocabulary, log)
    write_atomic(draft / COUNTS, text.astype("<u8").tobytes())
    heldout["unigram_loss"] = unigram_loss_of(text, draft / "store")
    overlap = heldout_contamination(
        draft / "store", entries, (block for folder in folders for block in text_of(folder, vocabulary))
    )
    _log_heldout(heldout, overlap, log)
    return {
        "vocabulary": facts["hash"],
        "train": {"tokens": int(text.sum()), "rows": {}, "sequences": {}},
        "heldout": heldout,
        **counts,
        "text": rates(text, vocabulary),
        "heldout_contamination": overlap,
        "libraries": used,
    }


def _tasks(stage: Stage, parts: Path, vocabulary: Vocabulary) -> list[ImportTask]:
    """Return the tasks for the files of each phase, training files before test files."""
    tasks = list[ImportTask]()
    for data, training in stage.phases:
        tests = stage.tests[data.phase]
        # With test files, holding out a share as well would needlessly remove training text.
        sets = [(training, 0.0 if tests else stage.config.heldout), *((file_set, 1.0) for file_set in tests)]
        number = 0
        for file_set, share in sets:
            for task in import_tasks(data, file_set, parts, stage.vocab, vocabulary, stage.config):
                hold_out = HoldOut(share, parts, len(tasks), stage.config)
                tasks.append(replace(task, number=number, hold_out=hold_out))
                number += 1
    return tasks


def _check_vocabulary(text: NDArray[np.int64], vocabulary: Vocabulary, log: Log) -> None:
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


def _log_heldout(heldout: Mapping[str, Any], overlap: Mapping[str, Any], log: Log) -> None:
    """Log what the user should know about the scores to come."""
    for key, held in heldout["phases"].items():
        unit = "documents" if "documents" in held else "examples"
        where = f"a share of {held['share']:g}" if held["share"] else f"those of {', '.join(held['files'][:3])}"
        more = f" and {len(held['files']) - 3:,} more files" if len(held["files"]) > 3 else ""
        log.say(f"examples: {key}.data: {held[unit]:,} {unit} are held out, {where}{more}")
    for name, (rows,) in heldout["rows"].items():
        if rows < FEW:
            log.say(f"examples: scores on so few held-out examples of length {name} ({rows}) will be imprecise")
    if overlap["share"] > MUCH:
        log.say(
            f"examples: warning: of {overlap['sentences']:,} held-out segments of {overlap['run']} or more, "
            f"{overlap['found']:,} have {overlap['run']} in a row in common with the training text, as happens if data "
            "was made in several passes. Scores then also measure memorisation. Use test files made of other texts"
        )


def text_of(folder: Path, vocabulary: Vocabulary) -> Iterator[NDArray[Any]]:
    """Yield the ids that a phase trains on, before masking, in blocks [T]; `folder` is the imported data of the phase.

    Blocks of documents overlap slightly. Blocks of examples do not overlap, and contain [CLS] and [SEP].
    """
    # Only tokenised documents have a store.
    if (folder / "store").is_dir():
        yield from training_text(folder / "store")
        return
    kinds = dtypes(vocabulary.size) | {"cu_seqlens": "<u8", "cu_predictions": "<u8"}
    arrays = {name: map_file(folder / name, kind) for name, kind in kinds.items()}
    cu, predictions = (arrays[name].astype(np.int64) for name in ("cu_seqlens", "cu_predictions"))
    for first in range(0, len(cu) - 1, _AT_ONCE):
        stop = min(first + _AT_ONCE, len(cu) - 1)
        tokens = arrays["tokens"][cu[first] : cu[stop]].copy()
        inside = slice(predictions[first], predictions[stop])
        begins = np.repeat(cu[first:stop] - cu[first], np.diff(predictions[first : stop + 1]))
        tokens[begins + arrays["positions"][inside]] = arrays["labels"][inside]
        yield tokens


def count_text(folder: Path, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """[V] how often each entry occurs in the training text of a phase; special tokens are not counted."""
    store = folder / "store"
    if store.is_dir():
        counts = token_counts(
            map_file(store / "train.tokens", read_json(store / "train.json")["dtype"]), vocabulary.size
        )
    else:
        counts = np.zeros(vocabulary.size, np.int64)
        for block in text_of(folder, vocabulary):
            counts += token_counts(block, vocabulary.size)
    # Special tokens are not words and would distort the tokens per word. [UNK] stands for a word, so it is kept.
    counts[[*vocabulary.special]] = 0
    return counts


def rates(counts: NDArray[np.int64], vocabulary: Vocabulary) -> dict[str, float | int]:
    """Return how the vocabulary fits a text, given the number of occurrences of each entry [V]: the number of `words`
    (punctuation marks included), `fertility` (tokens per word), and `unknown_rate` (share of words that are [UNK])."""
    words = int(counts[~vocabulary.continuation].sum())
    return {
        "words": words,
        "fertility": round(int(counts.sum()) / max(1, words), 4),
        "unknown_rate": round(int(counts[vocabulary.unk]) / max(1, words), 6),
    }
