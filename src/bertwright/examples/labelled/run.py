"""The stage `examples` for a classification: labelled texts in, their ids out, as they are."""

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
from bertwright.core.libraries import libraries
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, ImportedData, PlanSet, distinct
from bertwright.examples.documents import is_heldout, text_hash
from bertwright.examples.labelled.data import FOLDER, Labelled
from bertwright.examples.labelled.read import Files, Omitted, Text, find_files, read_texts
from bertwright.examples.labelled.tasks import LabelledTexts
from bertwright.examples.rows import BINS
from bertwright.examples.run import identity
from bertwright.examples.shard import tokenizer_of
from bertwright.examples.store import token_dtype
from bertwright.examples.work import vocabulary_facts
from bertwright.vocab.tokenizer import Tokenizer

_AT_ONCE = 4096
"""Texts tokenised together, about."""


@dataclass
class _Split:
    """The texts of a split while they are read."""

    tokenizer: Tokenizer
    parts: list[Labelled] = field(default_factory=list)
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)

    def add(self, texts: Sequence[Text]) -> None:
        """Take in the texts of a file."""
        self.parts.append(tokenized(texts, self.tokenizer))
        self.hashes.append(np.array([text_hash(text[:2]) for text in texts], np.uint64))

    @property
    def whole(self) -> Labelled:
        """All parts, in order."""
        columns = zip(*(vars(part).values() for part in self.parts), strict=True)
        return Labelled(*(np.concatenate(column) for column in columns))


def tokenized(texts: Sequence[Text], tokenizer: Tokenizer) -> Labelled:
    """The examples of texts, by the ids of the vocabulary."""
    dtype = token_dtype(len(tokenizer.vocabulary))
    tokens, counts = [np.zeros(0, dtype)], [np.zeros((0, 2), np.uint32)]
    for start in range(0, len(texts), _AT_ONCE):
        # Line feeds part the sentences that the tokenizer is given, and are white space to it like any other.
        flat, lengths = tokenizer.encode_sentences(
            [part.replace("\n", " ") for text in texts[start : start + _AT_ONCE] for part in text[:2]]
        )
        tokens.append(flat.astype(dtype))
        counts.append(lengths.reshape(-1, 2).astype(np.uint32))
    of_texts, labels = np.concatenate(counts), np.array([text.label for text in texts], np.float32)
    return Labelled(np.concatenate(tokens), of_texts[:, 0], of_texts[:, 1], labels)


def run(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    imported: Sequence[ImportedData],
    inputs: Mapping[str, Artifact],
    context: StageContext,
) -> Artifact:
    """The examples artifact in `context.out` of the labelled texts that the first of `imported` names, as all do.

    `sets` are the lengths of the phases; `inputs` has "vocab", and "corpus" where the vocabulary was learnt from one.
    `RecipeError` and `DataError` as from `find_files` and `read_texts`, and where a split comes out empty.
    """
    data, log = imported[0], context.log
    assert data.texts is not None
    files = find_files(data.path, data.texts, f"{data.key}.data")
    known = {name: artifact.fingerprint for name, artifact in inputs.items()}
    known |= {each.input: sha256_of([sha256(file) for file in (*files.train, *files.heldout)]) for each in imported}
    ours = identity(config, distinct(sets), known, imported)
    return build(
        context.out, ours, log, lambda draft: _make(config, sets, imported, files, inputs["vocab"], draft, log)
    )


def _make(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    imported: Sequence[ImportedData],
    files: Files,
    vocab: Artifact,
    draft: Path,
    log: Log,
) -> dict[str, Any]:
    texts = imported[0].texts
    assert texts is not None
    used = libraries(draft, ("tokenizers",), log)
    facts = vocabulary_facts(vocab)
    write_json(draft / "vocabulary.json", facts)
    tokenizer = tokenizer_of(vocab)
    train, heldout, told = _Split(tokenizer), _Split(tokenizer), []
    for file in files.train:
        examples, about = _read(file, texts, log)
        told.append(about)
        hashes = np.array([text_hash(text[:2]) for text in examples], np.uint64)
        held = is_heldout(hashes, 0.0 if files.heldout else config.heldout)
        train.add([text for text, out in zip(examples, held, strict=True) if not out])
        heldout.add([text for text, out in zip(examples, held, strict=True) if out])
    for file in files.heldout:
        examples, about = _read(file, texts, log)
        told.append(about)
        heldout.add(examples)
    folder = make_folder(draft / FOLDER)
    splits = {"train": train.whole, "heldout": heldout.whole}
    for name, labelled in splits.items():
        labelled.write(folder, "train" if name == "train" else "heldout")
    _check(splits, imported[0], config, files)
    write_json(folder / "facts.json", {"pairs": texts.pairs, "labels": list(texts.labels), "files": told})
    repeated = int(np.isin(np.concatenate(heldout.hashes), np.concatenate(train.hashes)).sum())
    for sentence in _sentences(imported[0], splits, files, repeated):
        log.say(f"examples: {sentence}")
    number = len(splits["train"])
    kind = {"kind": "labelled", "examples": number, "static": False}
    return {
        "vocabulary": facts["hash"],
        "train": {**_counts(splits["train"], texts, sets), "rows": {}},
        "heldout": {
            **_counts(splits["heldout"], texts, sets),
            "rows": {f"{plan_set.length}": [len(splits["heldout"])] for plan_set in sets},
            "files": [file.name for file in files.heldout],
            "repeated": repeated,
        },
        "labels": list(texts.labels),
        "imported": {each.key: kind for each in imported},
        "text": _rates(splits["train"], facts),
        "libraries": used,
    }


def _read(file: Path, texts: LabelledTexts, log: Log) -> tuple[list[Text], dict[str, Any]]:
    """The examples of a file, and what is kept of it."""
    omitted = Omitted()
    examples = list(read_texts(file, texts, omitted))
    if omitted.unlabelled:
        log.say(f"examples: {file.name}: left out {omitted.unlabelled:,} without a label")
    if lacking := omitted.incomplete:
        log.say(f"examples: {file.name}: left out {len(lacking):,} that lack a column, the first in {lacking[0]}")
    left = {"unlabelled": omitted.unlabelled, "incomplete": len(omitted.incomplete)}
    return examples, {"file": file.name, "sha256": sha256(file), "examples": len(examples), **left}


def _check(splits: Mapping[str, Labelled], data: ImportedData, config: ExamplesConfig, files: Files) -> None:
    where = f"{data.key}.data: {data.path}"
    if not len(splits["train"]):
        raise DataError(f"{where} has no labelled text to train on. Give files with labels.")
    if len(splits["heldout"]):
        return
    if files.heldout:
        names = ", ".join(file.name for file in files.heldout)
        raise DataError(f"{where}: there is no labelled text in {names}, which is held out. Give one with labels.")
    raise DataError(
        f"{where}: none of the texts fell into the share examples.heldout={config.heldout:g}, so there is nothing to "
        "score. Raise it, or put a file dev… beside the training file."
    )


def _counts(labelled: Labelled, texts: LabelledTexts, sets: Sequence[PlanSet]) -> dict[str, Any]:
    """Of a split: examples, tokens, examples of each class (none where labels are numbers), and their lengths."""
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
    """Of examples of `lengths` [N] tokens, as `rows.Tally` counts those of plans."""
    bins = np.bincount((lengths - 1) * BINS // longest, minlength=BINS)
    return {"lengths": bins.tolist(), "mean_length": round(float(lengths.mean()), 2), "label_share": None}


def _rates(labelled: Labelled, vocabulary: Mapping[str, Any]) -> dict[str, float | int]:
    """How the vocabulary fits the training texts: words (marks are words too), tokens a word, share of [UNK]."""
    words = int((~np.isin(labelled.tokens, vocabulary["continues"])).sum())
    unknown = int((labelled.tokens == vocabulary["unk"]).sum())
    return {
        "words": words,
        "fertility": round(len(labelled.tokens) / max(words, 1), 4),
        "unknown_rate": round(unknown / max(words, 1), 6),
    }


def _sentences(data: ImportedData, splits: Mapping[str, Labelled], files: Files, repeated: int) -> Iterator[str]:
    """What the user should know."""
    number, held = len(splits["train"]), len(splits["heldout"])
    where = ", ".join(file.name for file in files.heldout) or "a share of them"
    yield f"{data.key}.data: {number:,} labelled texts to train on, {held:,} held out ({where})"
    if files.unread:
        yield f"not read: {', '.join(file.name for file in files.unread)}"
    if repeated:
        yield f"{repeated:,} of the held-out texts stand among the training texts as well, word for word"
