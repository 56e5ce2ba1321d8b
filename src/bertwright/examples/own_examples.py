"""The stage `examples` of tasks that learn from files of their own; `columns` says what it stores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact, build
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, sha256, sha256_of, write_json
from bertwright.core.log import Log
from bertwright.core.numbers import percent
from bertwright.core.stage_context import StageContext
from bertwright.core.task_records import record_libraries
from bertwright.core.work_split import SINGLE, StageIncomplete
from bertwright.corpus.heldout import is_heldout, text_hash
from bertwright.examples.columns import FOLDER, Columns
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet, distinct
from bertwright.examples.example_set import Ids
from bertwright.examples.information import FEW_TEXTS, absent_classes, different_shares, unknown_words
from bertwright.examples.own_files import Files, OwnFiles, find_files, refuse_empty
from bertwright.examples.plans import length_counts
from bertwright.examples.problems import Problems
from bertwright.examples.run import identity
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.shard import tokenizer_of, vocabulary_facts
from bertwright.vocab.tokenizer import Tokenizer

Own = TypeVar("Own", bound=OwnFiles)
Stored = TypeVar("Stored", bound=Columns)


class Kind(ABC, Generic[Own, Stored]):
    """How the examples of a task are stored and counted; a task defines a subclass."""

    def __init__(self, files: Own) -> None:
        self.files = files

    @abstractmethod
    def columns(self, examples: Sequence[Any], tokenizer: Tokenizer) -> Stored:
        """The examples, tokenised."""

    @abstractmethod
    def classes(self, columns: Stored) -> Ids:
        """[labels] how often each label occurs; empty if labels are no classes."""

    def lengths(self, columns: Stored, length: int) -> Ids:
        """[N] tokens of each example with sequences of at most `length` tokens, special tokens included."""
        return np.minimum(columns.lengths + self.files.specials, length)

    def total(self, columns: Stored, classes: Sequence[int]) -> int:
        """What the counts of classes are shares of."""
        return sum(classes)

    def baseline(self, train: Stored, heldout: Stored) -> dict[str, Any]:
        """The held-out score of a constant answer: the most common label of the training examples."""
        trained, wanted = self.classes(train), self.classes(heldout)
        commonest = int(trained.argmax())
        share = float(wanted[commonest] / max(int(wanted.sum()), 1))
        return {"majority": share, "majority_label": self.files.labels[commonest]}

    def check(self, train: Stored, heldout: Stored, data: ImportedData) -> None:
        """Raise `DataError` if a network can learn nothing from the training examples, or the others score nothing."""

    def warnings(self, heldout: Stored) -> Iterator[str]:
        """Yield what makes the held-out scores tell little."""
        yield from ()


def build_own(
    kind: Kind[Any, Any], config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext
) -> Artifact:
    """Build the examples artifact in `context.out` from the files of a task; all of `inputs.imported` name the same.

    `sets` are the lengths of the phases; `inputs` has a corpus if the vocabulary was trained on one.
    Raises `RecipeError` and `DataError` as `find_files` and `OwnFiles.read` do, and `DataError` if a split is empty.
    The work is not distributed: rank 0 does all of it, and other processes raise `StageIncomplete`.
    """
    imported, log, share = inputs.imported, context.log, context.share or SINGLE
    data, own = imported[0], kind.files
    if share.rank:
        raise StageIncomplete(
            f"examples: rank 0 of {share.world} prepares the labelled {own.unit}; the other ranks do nothing here"
        )
    files = find_files(data.path, own, f"{data.key}.data")
    known = inputs.fingerprints
    known |= {each.input: sha256_of([sha256(file) for file in (*files.train, *files.heldout)]) for each in imported}

    def make(draft: Path) -> dict[str, Any]:
        used = record_libraries(draft, ("tokenizers",), log)
        vocabulary = vocabulary_facts(inputs.vocab)
        write_json(draft / "vocabulary.json", vocabulary)
        splits = read_splits(kind, files, config.heldout, tokenizer_of(inputs.vocab), log)
        _check(kind, splits, data, config)
        splits.write(make_folder(draft / FOLDER), own)
        counts = _counts(kind, splits, sets)
        for sentence in _sentences(kind, splits, data, counts, vocabulary):
            log.say(f"examples: {sentence}")
        share.complete("examples", draft, [])
        of_phase = {"kind": "labelled", "examples": len(splits.train), "static": False}
        return {
            "vocabulary": vocabulary["hash"],
            **counts,
            "labels": list(own.labels),
            "imported": {each.key: of_phase for each in imported},
            "text": _rates(splits.train.tokens, vocabulary),
            "libraries": used,
        }

    return build(context.out, identity(config, distinct(sets), known, imported), log, make)


@dataclass(frozen=True)
class Splits:
    """The examples of files, by split."""

    train: Columns
    heldout: Columns
    repeated: int
    """Number of held-out examples whose texts also occur in training."""
    otherwise: int
    """Number of those that have another label there."""
    contradictory: int
    """Number of different training texts that occur with different labels."""
    files: Files
    read: list[dict[str, Any]]
    """For each file: name, hash, number of examples, and numbers of skipped ones."""

    def write(self, folder: Path, own: OwnFiles) -> None:
        """Write the arrays, and `facts.json` to describe them."""
        self.train.write(folder, "train")
        self.heldout.write(folder, "heldout")
        described = {"pairs": own.pairs, "labels": list(own.labels), "files": self.read}
        write_json(folder / "facts.json", described)


def read_splits(kind: Kind[Any, Any], files: Files, share: float, tokenizer: Tokenizer, log: Log) -> Splits:
    """Read and tokenise the examples of the files; without held-out files, `share` of the training ones is held out.

    Raises `DataError` as `OwnFiles.read` does.
    """
    train, heldout, read = list[Any](), list[Any](), list[dict[str, Any]]()
    hashes: dict[bool, list[NDArray[np.uint64]]] = {False: [], True: []}
    own = kind.files
    for file in (*files.train, *files.heldout):
        problems = Problems()
        examples = list(kind.files.read(file, problems))
        for sentence in problems.sentences():
            log.say(f"examples: {file.name}: {sentence}")
        read.append({"file": file.name, "sha256": sha256(file), "examples": len(examples), "problems": problems.counts})
        of_file = np.array(
            [(text_hash(own.texts(each)), text_hash((*own.texts(each), own.label(each)))) for each in examples],
            np.uint64,
        ).reshape(-1, 2)
        held = np.full(len(examples), file in files.heldout)
        if not files.heldout:
            together = [text_hash(kind.files.held_together(each)) for each in examples]
            held = is_heldout(np.array(together, np.uint64), share)
        for example, is_held in zip(examples, held.tolist(), strict=True):
            (heldout if is_held else train).append(example)
        for chosen in (False, True):
            hashes[chosen].append(of_file[held == chosen])
    # [N, 2] of the texts alone, and of the texts with their labels.
    trained, held_out = np.concatenate(hashes[False]), np.concatenate(hashes[True])
    repeated, alike = (np.isin(held_out[:, k], trained[:, k]) for k in (0, 1))
    _, labels = np.unique(np.unique(trained, axis=0)[:, 0], return_counts=True)
    return Splits(
        kind.columns(train, tokenizer),
        kind.columns(heldout, tokenizer),
        repeated=int(repeated.sum()),
        otherwise=int((repeated & ~alike).sum()),
        contradictory=int((labels > 1).sum()),
        files=files,
        read=read,
    )


def _check(kind: Kind[Any, Any], splits: Splits, data: ImportedData, config: ExamplesConfig) -> None:
    key, own = f"{data.key}.data", kind.files
    refuse_empty(key, data.path, own, splits.files, (len(splits.train), len(splits.heldout)))
    if not len(splits.heldout):
        raise DataError(
            f"{key}: {data.path}: none of the {own.unit} fell into the share examples.heldout={config.heldout:g}, so "
            "there is nothing to score. Raise it, or put a file named dev next to the training file."
        )
    kind.check(splits.train, splits.heldout, data)


def _counts(kind: Kind[Any, Any], splits: Splits, sets: Sequence[PlanSet]) -> dict[str, Any]:
    return {
        "train": {**_counts_of(kind, splits.train, sets), "rows": {}},
        "heldout": {
            **_counts_of(kind, splits.heldout, sets),
            "rows": {f"{each.length}": [len(splits.heldout)] for each in sets},
            "files": [file.name for file in splits.files.heldout],
            "repeated": splits.repeated,
            **kind.baseline(splits.train, splits.heldout),
        },
    }


def _counts_of(kind: Kind[Any, Any], columns: Columns, sets: Sequence[PlanSet]) -> dict[str, Any]:
    """Counts of a split: examples, tokens, examples per label, and length statistics."""
    return {
        "examples": len(columns),
        "tokens": len(columns.tokens),
        "classes": kind.classes(columns).tolist(),
        "sequences": {f"{each.length}": _lengths(kind.lengths(columns, each.length), each.length) for each in sets},
    }


def _lengths(lengths: Ids, longest: int) -> dict[str, Any]:
    """Length statistics of examples of `lengths` [N] tokens, in the form that `plans.PlanStatistics` has for plans."""
    return {**length_counts(np.bincount(lengths, minlength=longest + 1)), "label_share": None}


def _rates(tokens: NDArray[Any], vocabulary: Mapping[str, Any]) -> dict[str, float | int]:
    """How well the vocabulary fits the training texts: words (including punctuation), tokens per word, [UNK] share."""
    words = int((~np.isin(tokens, vocabulary["continues"])).sum())
    unknown = int((tokens == vocabulary["unk"]).sum())
    return {
        "words": words,
        "fertility": round(len(tokens) / max(words, 1), 4),
        "unknown_rate": round(unknown / max(words, 1), 6),
    }


def _sentences(
    kind: Kind[Any, Any],
    splits: Splits,
    data: ImportedData,
    counts: Mapping[str, Any],
    vocabulary: Mapping[str, Any],
) -> Iterator[str]:
    """Yield the log messages for the user."""
    unit, files, held = kind.files.unit, splits.files, len(splits.heldout)
    where = ", ".join(file.name for file in files.heldout) or "a share of them"
    yield f"{data.key}.data: {len(splits.train):,} labelled {unit} for training, {held:,} held out ({where})"
    if files.unread:
        yield f"not read: {', '.join(file.name for file in files.unread)}"
    if held < FEW_TEXTS:
        more = "give more of them" if files.heldout else "raise examples.heldout"
        yield f"warning: scores on so few held-out {unit} ({held:,}) will be imprecise; {more}"
    if splits.repeated:
        other = f" ({splits.otherwise:,} of them with another label)" if splits.otherwise else ""
        yield (
            f"warning: {splits.repeated:,} of the held-out {unit} ({percent(splits.repeated / held)}) also occur in "
            f"the training {unit}, word for word{other}, so a part of the scores measures memory; remove one copy"
        )
    if splits.contradictory:
        yield (
            f"warning: {splits.contradictory:,} of the training {unit} occur with different labels, of which at most "
            "one can be learned; correct or remove them"
        )
    tokens = splits.train.tokens
    for sentence in unknown_words(int((tokens == vocabulary["unk"]).sum()), len(tokens)):
        yield f"warning: {sentence}"
    if classes := counts["train"]["classes"]:
        yield from (f"warning: {each}" for each in absent_classes(classes, kind.files.labels))
        of_heldout = counts["heldout"]["classes"]
        totals = kind.total(splits.train, classes), kind.total(splits.heldout, of_heldout)
        for sentence in different_shares((classes, of_heldout), totals, kind.files.labels):
            yield f"warning: {sentence}"
    yield from (f"warning: {each}" for each in kind.warnings(splits.heldout))
