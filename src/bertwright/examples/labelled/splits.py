"""Reads files of labelled texts into a training split and a held-out split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import sha256, write_json
from bertwright.core.log import Log
from bertwright.examples.documents import is_heldout, text_hash
from bertwright.examples.labelled.config import LabelledTexts
from bertwright.examples.labelled.data import Labelled
from bertwright.examples.labelled.read import Files, Omitted, Text, read_texts
from bertwright.examples.store import token_dtype
from bertwright.vocab.tokenizer import Tokenizer

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
    train, heldout, told = _Split(tokenizer), _Split(tokenizer), []
    for file in (*files.train, *files.heldout):
        examples, about = _read(file, texts, log)
        told.append(about)
        hashes = np.array([text_hash(text[:2]) for text in examples], np.uint64)
        if file in files.heldout:
            heldout.add(examples, hashes, np.ones(len(examples), np.bool_))
            continue
        held = is_heldout(hashes, 0.0 if files.heldout else share)
        train.add(examples, hashes, ~held)
        heldout.add(examples, hashes, held)
    repeated = np.isin(np.concatenate(heldout.hashes), np.concatenate(train.hashes))
    return Splits(train.whole, heldout.whole, int(repeated.sum()), told)


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
