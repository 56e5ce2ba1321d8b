"""The stage `examples` for classification: tokenises labelled texts and stores their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact, build
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, sha256, sha256_of, write_json
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.core.task_records import record_libraries
from bertwright.core.work_split import SINGLE, StageIncomplete
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet, distinct
from bertwright.examples.documents import is_heldout, text_hash
from bertwright.examples.information import FEW_TEXTS, TELLING, absent_classes, unknown_words
from bertwright.examples.labelled.config import LabelledTexts
from bertwright.examples.labelled.data import FOLDER, Labelled
from bertwright.examples.labelled.read import Files, Omitted, Text, find_files, read_texts, refuse_empty
from bertwright.examples.plans import length_counts
from bertwright.examples.run import identity
from bertwright.examples.run_tasks import Inputs
from bertwright.examples.shard import tokenizer_of, vocabulary_facts
from bertwright.examples.store import token_dtype
from bertwright.vocab.tokenizer import Tokenizer


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact in `context.out` from labelled texts; all of `inputs.imported` name the same ones.

    `sets` are the lengths of the phases; `inputs` has a corpus if the vocabulary was trained on one.
    Raises `RecipeError` and `DataError` as `find_files` and `read_texts` do, and `DataError` if a split is empty.
    The work is not distributed: rank 0 does all of it, and other processes raise `StageIncomplete`.
    """
    imported = inputs.imported
    data, texts, log, share = imported[0], imported[0].texts, context.log, context.share or SINGLE
    assert texts is not None
    if share.rank:
        raise StageIncomplete(
            f"examples: rank 0 of {share.world} prepares the labelled texts; the other ranks do nothing here"
        )
    files = find_files(data.path, texts, f"{data.key}.data")
    known = inputs.fingerprints
    known |= {each.input: sha256_of([sha256(file) for file in (*files.train, *files.heldout)]) for each in imported}

    def make(draft: Path) -> dict[str, Any]:
        used = record_libraries(draft, ("tokenizers",), log)
        facts = vocabulary_facts(inputs.vocab)
        write_json(draft / "vocabulary.json", facts)
        splits = read_splits(files, texts, config.heldout, tokenizer_of(inputs.vocab), log)
        _check(splits, data, config, files)
        _check_labels(splits.train, data, texts)
        splits.write(make_folder(draft / FOLDER), texts)
        for sentence in _sentences(data, splits, files, texts, facts):
            log.say(f"examples: {sentence}")
        share.complete("examples", draft, [])
        kind = {"kind": "labelled", "examples": len(splits.train), "static": False}
        return {
            "vocabulary": facts["hash"],
            **_counts(splits, texts, sets, files),
            "labels": list(texts.labels),
            "imported": {each.key: kind for each in imported},
            "text": _rates(splits.train, facts),
            "libraries": used,
        }

    return build(context.out, identity(config, distinct(sets), known, imported), log, make)


def _check(splits: Splits, data: ImportedData, config: ExamplesConfig, files: Files) -> None:
    key = f"{data.key}.data"
    refuse_empty(key, data.path, files, len(splits.train), len(splits.heldout))
    if len(splits.heldout):
        return
    raise DataError(
        f"{key}: {data.path}: none of the texts fell into the share examples.heldout={config.heldout:g}, so there is "
        "nothing to score. Raise it, or put a file named dev next to the training file."
    )


def _check_labels(train: Labelled, data: ImportedData, texts: LabelledTexts) -> None:
    """Raise `DataError` if all training texts have the same label: a network learns only to repeat it."""
    first = train.labels[0]
    if len(train) < TELLING or (train.labels != first).any():
        return
    label = f"the number {first:g}" if len(texts.labels) == 1 else texts.labels[int(first)]
    raise DataError(
        f"{data.key}.data: {data.path}: all {len(train):,} training texts have the label {label}, so there is nothing "
        "to learn. Give texts with other labels, too, or another column (train.objective.label)."
    )


def _counts(splits: Splits, texts: LabelledTexts, sets: Sequence[PlanSet], files: Files) -> dict[str, Any]:
    rows = {f"{each.length}": [len(splits.heldout)] for each in sets}
    names = [file.name for file in files.heldout]
    return {
        "train": {**_counts_of(splits.train, texts, sets), "rows": {}},
        "heldout": {
            **_counts_of(splits.heldout, texts, sets),
            "rows": rows,
            "files": names,
            "repeated": splits.repeated,
            **_baseline(splits, texts.labels),
        },
    }


def _baseline(splits: Splits, labels: Sequence[str]) -> dict[str, Any]:
    """The held-out score of a constant answer: the most common class of the training texts, or their mean."""
    trained, wanted = splits.train.labels, splits.heldout.labels
    if len(labels) == 1:
        return {"constant_loss": float(np.square(wanted - trained.mean(dtype=np.float64)).mean())}
    commonest = int(np.bincount(trained.astype(np.int64)).argmax())
    return {"majority": float((wanted == commonest).mean()), "majority_label": labels[commonest]}


def _counts_of(labelled: Labelled, texts: LabelledTexts, sets: Sequence[PlanSet]) -> dict[str, Any]:
    """Counts of a split: examples, tokens, examples per class (empty for regression), and length statistics."""
    number = len(texts.labels)
    of_class = np.bincount(labelled.labels.astype(np.int64), minlength=number).tolist() if number > 1 else []
    whole = labelled.first.astype(np.int64) + labelled.second + 2 + texts.pairs
    return {
        "examples": len(labelled),
        "tokens": len(labelled.tokens),
        "classes": of_class,
        "sequences": {f"{each.length}": _lengths(np.minimum(whole, each.length), each.length) for each in sets},
    }


def _lengths(lengths: NDArray[np.int64], longest: int) -> dict[str, Any]:
    """Length statistics of examples of `lengths` [N] tokens, in the form that `plans.PlanStatistics` has for plans."""
    return {**length_counts(np.bincount(lengths, minlength=longest + 1)), "label_share": None}


def _rates(labelled: Labelled, vocabulary: Mapping[str, Any]) -> dict[str, float | int]:
    """How well the vocabulary fits the training texts: words (including punctuation), tokens per word, [UNK] share."""
    words = int((~np.isin(labelled.tokens, vocabulary["continues"])).sum())
    unknown = int((labelled.tokens == vocabulary["unk"]).sum())
    return {
        "words": words,
        "fertility": round(len(labelled.tokens) / max(words, 1), 4),
        "unknown_rate": round(unknown / max(words, 1), 6),
    }


def _sentences(
    data: ImportedData, splits: Splits, files: Files, texts: LabelledTexts, vocabulary: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the log messages for the user."""
    number, held = len(splits.train), len(splits.heldout)
    where = ", ".join(file.name for file in files.heldout) or "a share of them"
    yield f"{data.key}.data: {number:,} labelled texts for training, {held:,} held out ({where})"
    if files.unread:
        yield f"not read: {', '.join(file.name for file in files.unread)}"
    if held < FEW_TEXTS:
        more = "give more of them" if files.heldout else "raise examples.heldout"
        yield f"warning: scores on so few held-out texts ({held:,}) will be imprecise; {more}"
    if splits.repeated:
        yield f"{splits.repeated:,} of the held-out texts also occur in the training texts, word for word"
    tokens = splits.train.tokens
    for sentence in unknown_words(int((tokens == vocabulary["unk"]).sum()), len(tokens)):
        yield f"warning: {sentence}"
    if len(texts.labels) > 1:
        classes = np.bincount(splits.train.labels.astype(np.int64), minlength=len(texts.labels)).tolist()
        yield from (f"warning: {sentence}" for sentence in absent_classes(classes, texts.labels))
    if held >= TELLING and (splits.heldout.labels == splits.heldout.labels[0]).all():
        yield "warning: all held-out texts have the same label, so a constant answer gets the best score"


_AT_ONCE = 4096
"""Number of examples tokenised together."""


@dataclass(frozen=True)
class Splits:
    """The examples of files of labelled texts, by split."""

    train: Labelled
    heldout: Labelled
    repeated: int
    """Number of held-out texts that also occur among the training texts."""
    files: list[dict[str, Any]]
    """For each file: name, hash, number of examples, and numbers of skipped records."""

    def write(self, folder: Path, texts: LabelledTexts) -> None:
        """Write the arrays, and `facts.json` to describe them."""
        self.train.write(folder, "train")
        self.heldout.write(folder, "heldout")
        write_json(folder / "facts.json", {"pairs": texts.pairs, "labels": list(texts.labels), "files": self.files})


@dataclass
class _Split:
    """The texts of a split while they are read."""

    tokenizer: Tokenizer
    parts: list[Labelled] = field(default_factory=list)
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)

    def add(self, texts: Sequence[Text], hashes: NDArray[np.uint64], chosen: NDArray[np.bool_]) -> None:
        """Add the texts of a file that the mask `chosen` [N] selects."""
        self.parts.append(_tokenized([texts[i] for i in np.flatnonzero(chosen).tolist()], self.tokenizer))
        self.hashes.append(hashes[chosen])

    @property
    def whole(self) -> Labelled:
        """All parts concatenated, in order."""
        columns = zip(*(vars(part).values() for part in self.parts), strict=True)
        return Labelled(*(np.concatenate(column) for column in columns))


def read_splits(files: Files, texts: LabelledTexts, share: float, tokenizer: Tokenizer, log: Log) -> Splits:
    """Read and tokenise the examples of the files; without held-out files, `share` of the training ones is held out.

    Raises `DataError` as `read_texts` does.
    """
    train, heldout, described = _Split(tokenizer), _Split(tokenizer), []
    for file in (*files.train, *files.heldout):
        examples, about = _read(file, texts, log)
        described.append(about)
        hashes = np.array([text_hash(text[:2]) for text in examples], np.uint64)
        if file in files.heldout:
            heldout.add(examples, hashes, np.ones(len(examples), np.bool_))
            continue
        held = is_heldout(hashes, 0.0 if files.heldout else share)
        train.add(examples, hashes, ~held)
        heldout.add(examples, hashes, held)
    repeated = np.isin(np.concatenate(heldout.hashes), np.concatenate(train.hashes))
    return Splits(train.whole, heldout.whole, int(repeated.sum()), described)


def _tokenized(texts: Sequence[Text], tokenizer: Tokenizer) -> Labelled:
    dtype = token_dtype(len(tokenizer.vocabulary))
    tokens, counts = [np.zeros(0, dtype)], [np.zeros((0, 2), np.uint32)]
    for start in range(0, len(texts), _AT_ONCE):
        flat, lengths = tokenizer.encode_texts([part for text in texts[start : start + _AT_ONCE] for part in text[:2]])
        tokens.append(flat.astype(dtype))
        counts.append(lengths.reshape(-1, 2).astype(np.uint32))
    of_texts, labels = np.concatenate(counts), np.array([text.label for text in texts], np.float32)
    return Labelled(np.concatenate(tokens), of_texts[:, 0], of_texts[:, 1], labels)


def _read(file: Path, texts: LabelledTexts, log: Log) -> tuple[list[Text], dict[str, Any]]:
    """The examples of a file, and the facts recorded about it."""
    omitted = Omitted()
    examples = list(read_texts(file, texts, omitted))
    if omitted.unlabelled:
        log.say(f"examples: {file.name}: skipped {omitted.unlabelled:,} texts without a label")
    if lacking := omitted.incomplete:
        log.say(f"examples: {file.name}: skipped {len(lacking):,} that lack a column, the first in {lacking[0]}")
    left = {"unlabelled": omitted.unlabelled, "incomplete": len(omitted.incomplete)}
    return examples, {"file": file.name, "sha256": sha256(file), "examples": len(examples), **left}
