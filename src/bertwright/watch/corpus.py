"""Examples from the corpus of a run: documents that were dropped, by reason, and its longest and strangest sentences.

A corpus may have hundreds of gigabytes. Examples come from the beginnings of some of its files, which are spread over
it evenly; the answers say how many files these are, and of how many.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from pydantic_core import from_json

_FILES = 12
_BYTES = 2**19
"""Of the text of a file of sentences."""
_DROPPED_BYTES = 4 * 2**20
_PER_REASON = 200
_SHOWN = 2000
"""Characters of a text that are shown."""
_SENTENCES = 100
_SHORTEST = 20
"""Characters of a sentence that may be strange: the mean over fewer says little."""
AT_ONCE = 10


class CorpusExamples:
    """Examples of one corpus. The first question reads some of its files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._dropped: dict[str, list[dict[str, Any]]] | None = None
        self._sentences: dict[str, list[dict[str, Any]]] | None = None

    def dropped(self, reason: str, page: int) -> dict[str, Any]:
        """A page of documents that were dropped for `reason`."""
        if self._dropped is None:
            self._dropped = _read_dropped(self._folder / "dropped")
        return _page(self._dropped.get(reason, []), page) | _read_of(self._folder / "dropped", "*.jsonl.zst")

    def sentences(self, kind: str, page: int) -> dict[str, Any]:
        """A page of the longest or the strangest sentences, by `kind`."""
        if self._sentences is None:
            self._sentences = _read_sentences(self._folder / "shards")
        return _page(self._sentences.get(kind, []), page) | _read_of(self._folder / "shards", "*.txt.zst")


def _page(found: list[dict[str, Any]], page: int) -> dict[str, Any]:
    return {"count": len(found), "pages": -(-len(found) // AT_ONCE), "items": found[page * AT_ONCE :][:AT_ONCE]}


def _read_of(folder: Path, pattern: str) -> dict[str, int]:
    files = len(list(folder.glob(pattern)))
    return {"read": min(files, _FILES), "of": files}


def _some(folder: Path, pattern: str, most: int) -> Iterator[list[str]]:
    """The lines at the beginning of some of the files, without the one that is cut."""
    files = sorted(folder.glob(pattern))
    chosen = sorted({i * len(files) // _FILES for i in range(_FILES)}) if len(files) > _FILES else range(len(files))
    for number in chosen:
        try:
            with files[number].open("rb") as file:
                stream = zstandard.ZstdDecompressor().stream_reader(file)
                data = io.BufferedReader(stream, 2**16).read(most)
        except (OSError, zstandard.ZstdError):  # being replaced, or damaged
            continue
        whole, end, _ = data.rpartition(b"\n")
        yield (whole + end).decode("utf-8", "replace").split("\n")


def _read_dropped(folder: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for lines in _some(folder, "*.jsonl.zst", _DROPPED_BYTES):
        for line in filter(None, lines):
            try:
                document = from_json(line, allow_inf_nan=False)
            except ValueError:
                continue
            if isinstance(document, Mapping) and isinstance(text := document.get("text"), str):
                examples = found.setdefault(str(document.get("reason")), [])
                if len(examples) < _PER_REASON:
                    names = {name: str(document.get(name) or "")[:500] for name in ("title", "url", "source")}
                    examples.append({**names, "text": text[:_SHOWN], "characters": len(text)})
    return found


def _read_sentences(folder: Path) -> dict[str, list[dict[str, Any]]]:
    sentences = [line for lines in _some(folder, "*.txt.zst", _BYTES) for line in lines if line]
    longest = nlargest(_SENTENCES, sentences, key=len)
    candidates = [sentence for sentence in dict.fromkeys(sentences) if len(sentence) >= _SHORTEST]
    by_bits = nlargest(_SENTENCES, zip(surprises(candidates), candidates, strict=True))
    return {
        "longest": [{"text": text[:_SHOWN], "characters": len(text)} for text in longest],
        "strangest": [{"text": text[:_SHOWN], "characters": len(text), "bits": bits} for bits, text in by_bits],
    }


def surprises(sentences: list[str]) -> list[float]:
    """For each sentence the mean bits of its characters, each predicted from the one before it by how often they follow
    each other in all the sentences: high for other scripts, formulas, codes and rows of capitals."""
    if not sentences:
        return []
    text = "\n" + "\n".join(sentences) + "\n"
    _, characters = np.unique(np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32), return_inverse=True)
    kinds = int(characters.max()) + 1
    pairs = characters[:-1] * kinds + characters[1:]
    _, pair, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    before = np.bincount(characters[:-1], minlength=kinds)
    # One more of each pair, so that a pair of this sentence alone does not count as expected.
    bits = -np.log2(np.maximum(counts[pair] - 1, 0.5) / before[characters[:-1]])
    lengths = np.array([len(sentence) + 1 for sentence in sentences])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    means = np.add.reduceat(bits, starts) / lengths
    return [round(float(mean), 2) for mean in means]
