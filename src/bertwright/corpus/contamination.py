"""Contamination check: how much of the evaluation texts occurs in the training text.

A sentence is found if any 13 consecutive words of it (26 characters where no spaces separate words) occur in one
training document (the n-gram rule of Brown et al. 2020, "Language Models are Few-Shot Learners", appendix C), ignoring
case, punctuation and the values of numbers. A shorter sentence is found if it equals a complete sentence of the
training text, and is counted separately. Memory grows only with the evaluation texts; the corpus is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.errors import DataError
from bertwright.core.files import read_text, sha256, sha256_of
from bertwright.core.json_values import parse_json
from bertwright.core.rng import bits
from bertwright.core.tasks import Executor
from bertwright.corpus.characters import compose
from bertwright.corpus.ngrams import Hashes, HashSet, run_length, run_name, runs, words
from bertwright.corpus.part import read_array, write_array
from bertwright.corpus.text import documents_in

_MAX_BYTES = 256 * 2**20
"""Largest file of evaluation texts, in bytes; its sentences are held in memory."""
_EXAMPLES = 5


@dataclass(frozen=True)
class Sentence:
    """A sentence of an evaluation text."""

    text: str
    hashes: Hashes
    """[N] the hashes of its runs, or the single hash of a shorter sentence; one match is enough."""
    short: bool


@dataclass(frozen=True)
class SearchShard:
    """One text shard to search."""

    shard: Path
    hashes: Path
    """An `.npy` file with the hashes to search for."""
    spaced: bool


def contamination(
    train: Iterable[list[str]], test: Mapping[str, Iterable[str]], *, spaced: bool = True
) -> dict[str, dict[str, Any]]:
    """Search the documents of `train` for each set of test sentences; returns the `report`."""
    sentences = {name: _sentences(lines, spaced) for name, lines in test.items()}
    return report(sentences, _search(train, _hash_set(sentences), spaced), spaced=spaced)


def check_files(
    files: Iterable[Path], shards: Iterable[Path], folder: Path, executor: Executor, *, spaced: bool = True
) -> dict[str, dict[str, Any]]:
    """Search the text shards for each file's sentences; returns the `report` by path. `folder` is for scratch files."""
    sentences = {str(path): _sentences(read_lines(path), spaced) for path in files}
    if not sentences:
        return {}
    wanted = folder / "sought.npy"
    write_array(wanted, _hash_set(sentences).hashes)
    hashes = executor.map(search_shard, (SearchShard(shard, wanted, spaced) for shard in shards), "corpus")
    return report(sentences, np.concatenate(hashes), spaced=spaced)


def search_shard(task: SearchShard) -> Hashes:
    """[F] the wanted hashes that occur in the shard, sorted."""
    return _search(documents_in(task.shard), HashSet(read_array(task.hashes)), task.spaced)


def report(test: Mapping[str, Iterable[Sentence]], hashes: Hashes, *, spaced: bool) -> dict[str, dict[str, Any]]:
    """The result for each set of sentences, by name, given the `hashes` [F] that were found.

    It has the length of a `run`, the number of sentences of at least one run, the number and share of those found and
    the first five of them, and the numbers of shorter sentences and of those found.
    """
    known = set(hashes.tolist())
    result = {}
    for name, sentences in test.items():
        hits = [(sentence, not known.isdisjoint(sentence.hashes.tolist())) for sentence in sentences]
        long = [hit for sentence, hit in hits if not sentence.short]
        result[name] = {
            "run": run_name(spaced=spaced),
            "sentences": len(long),
            "found": sum(long),
            "share": sum(long) / max(1, len(long)),
            "short": len(hits) - len(long),
            "short_found": sum(hit for sentence, hit in hits if sentence.short),
            "examples": [sentence.text for sentence, hit in hits if hit and not sentence.short][:_EXAMPLES],
        }
    return result


def text_hash(path: Path) -> str:
    """The hash of the content of a file of evaluation texts. Raises `DataError` where it cannot be read completely."""
    try:
        for _ in read_lines(path):
            pass
        # The suffix is included, because it changes how the same bytes are read.
        return sha256_of([path.suffix == ".jsonl", sha256(path)])
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error.strerror or error}. Name files in corpus.contamination that you have "
            "permission to read."
        ) from error


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file, or of every string in the values of JSON lines (`.jsonl`), in the normal form of
    the corpus.

    Raises `DataError` where the file is not valid.
    """
    try:
        # A byte-order mark would become part of the first word.
        lines = read_text(path, _MAX_BYTES, "utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start:,}. Convert it with `iconv` first.") from error
    except ValueError as error:
        raise DataError(f"cannot read {path}: {error}. Name its single files in corpus.contamination.") from error
    for number, line in enumerate(lines, 1):
        if path.suffix != ".jsonl":
            yield compose(line)
        elif line.strip():
            try:
                value = parse_json(line)
            except ValueError as error:
                reason = getattr(error, "msg", error)  # without the position, which is relative to the line
                raise DataError(
                    f"{path}, line {number}: not JSON ({reason}). A .jsonl file has one JSON value per line; rename "
                    "it to .txt if it is plain text."
                ) from error
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from compose(value).split("\n")
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _sentences(lines: Iterable[str], spaced: bool) -> list[Sentence]:
    sentences = []
    for line in lines:
        whole, in_a_row = _hashes([line], spaced)
        if len(in_a_row):
            sentences.append(Sentence(line, in_a_row, short=False))
        elif len(whole):
            sentences.append(Sentence(line, whole, short=True))
    return sentences


def _hash_set(test: Mapping[str, list[Sentence]]) -> HashSet:
    hashes = [sentence.hashes for sentences in test.values() for sentence in sentences]
    return HashSet(np.concatenate([_NONE, *hashes]))


def _search(documents: Iterable[list[str]], hash_set: HashSet, spaced: bool) -> Hashes:
    hashes = [hash_set.intersection(np.concatenate(_hashes(document, spaced))) for document in documents]
    return np.unique(np.concatenate([_NONE, *hashes]))


def _hashes(sentences: list[str], spaced: bool) -> tuple[Hashes, Hashes]:
    """The hashes of a document's sentences that are shorter than a run, and those of all its runs."""
    run = run_length(spaced=spaced)
    of_words, owner = words("\n".join(sentences), spaced=spaced)
    lengths = np.bincount(owner, minlength=len(sentences))
    place = np.arange(len(of_words)) - (np.cumsum(lengths) - lengths)[owner]
    whole = np.zeros(len(sentences), np.uint64)
    np.add.at(whole, owner, bits(of_words, place))
    return whole[(lengths > 0) & (lengths < run)], runs(of_words, run) if len(of_words) >= run else _NONE


_NONE: Hashes = np.zeros(0, np.uint64)
