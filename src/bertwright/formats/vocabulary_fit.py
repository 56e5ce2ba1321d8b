"""Whether examples fit a vocabulary: whether they begin, end and are masked with its special ids, and which special ids
are where only text should be.

Tokenizers that read "[MASK]" in an article as the mask leave such ids inside examples. Nothing can be learned by
predicting them, so a run keeps them as context and never predicts them. Examples that were made with another
vocabulary are wrong from the first one on, so the first examples of a set show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.examples.instances import Instances, ends
from bertwright.formats.detect import FileSet
from bertwright.formats.errors import ShardError
from bertwright.formats.known import format_of

_TELLING = 16
"""Number of predictions from which their most common id reliably shows whether it is [MASK]."""


ENTRIES = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
"""The special entries that stand for no text, in the order of `Vocabulary.special`."""


@dataclass
class Misplaced:
    """Counts of special ids where only text should be."""

    special: Sequence[int]
    """The ids of `ENTRIES`."""
    inside: Counter[str] = field(default_factory=Counter)
    """How often each entry occurs inside the text of examples, by name."""
    labels: Counter[str] = field(default_factory=Counter)
    """How many predictions have each entry as their label, by name."""

    def add(self, block: Instances) -> None:
        """Count those of a block of examples."""
        tokens = block.originals()
        for counts, ids in ((self.inside, tokens[_inside(block, tokens, self.special)]), (self.labels, block.labels)):
            found = {entry: int((ids == number).sum()) for entry, number in zip(ENTRIES, self.special, strict=True)}
            counts.update({entry: count for entry, count in found.items() if count})


def describe_misplaced(inside: Mapping[str, int], labels: Mapping[str, int]) -> list[str]:
    """Return a sentence for each kind of misplaced special id that was counted (see `Misplaced`)."""
    sentences = []
    if inside:
        named = ", ".join(f"{entry} {count:,} times" for entry, count in inside.items())
        sentences.append(f"special ids occur inside the text of examples, where they are never predicted: {named}")
    if labels:
        named = ", ".join(f"{entry} {count:,} times" for entry, count in labels.items())
        sentences.append(f"special ids are the labels of predictions, which are not trained on: {named}")
    return sentences


def without_special_labels(block: Instances, special: Sequence[int]) -> Instances:
    """Return the examples without the predictions whose label is special; the label is put back into the text."""
    dropped = np.isin(block.labels, special)
    if not dropped.any():
        return block
    tokens = block.token_ids.copy()
    tokens[block.predicted[dropped]] = block.labels[dropped]
    return replace(
        block,
        token_ids=tokens,
        positions=block.positions[~dropped],
        labels=block.labels[~dropped],
        cu_predictions=ends(~dropped)[block.cu_predictions],
    )


def _inside(block: Instances, tokens: NDArray[np.int32], special: Sequence[int]) -> NDArray[np.bool_]:
    """[T] whether a special id, of the ids `tokens` [T] before masking, is where only text should be."""
    if not len(block):
        return np.zeros(0, np.bool_)
    of_special = np.isin(tokens, special)
    begins, lasts = block.cu_seqlens[:-1], block.cu_seqlens[1:] - 1
    # In an example of one segment, a [SEP] between two texts is where the next document begins.
    one_segment = np.repeat(block.second >= block.lengths, block.lengths)
    separates = one_segment & ~np.append(False, of_special[:-1]) & ~np.append(of_special[1:], False)
    separates[begins + block.second - 1] = True
    inside: NDArray[np.bool_] = of_special & ~(separates & (tokens == special[ENTRIES.index("[SEP]")]))
    # The first and the last id have checks of their own, and predictions are counted by their labels.
    inside[begins] = inside[lasts] = inside[block.predicted] = False
    return inside


class SpecialIds:
    """Counts the ids at the positions of special tokens."""

    def __init__(self, vocabulary: Sequence[str] | None) -> None:
        self._vocabulary = vocabulary
        self._begins: Counter[int] = Counter()
        self._lasts: Counter[int] = Counter()
        self.shown: Counter[int] = Counter()
        """Counts of the ids at predicted positions."""

    def add(self, block: Instances) -> None:
        """Count the examples of a block."""
        if not len(block):
            return
        places = (self._begins, block.cu_seqlens[:-1]), (self._lasts, block.cu_seqlens[1:] - 1)
        for seen, where in (*places, (self.shown, block.predicted)):
            ids = np.sort(block.token_ids[where])
            # Not `np.unique`: it loads numpy.ma, which takes longer than `check` takes for everything else here.
            first = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
            counts = np.diff(first, append=len(ids))
            seen.update(dict(zip(ids[first].tolist(), counts.tolist(), strict=True)))

    def faults(self) -> list[str]:
        """Return a sentence for each fault; without a vocabulary, only that there is more than one id."""
        faults = []
        for seen, verb, entry in ((self._begins, "begin", "[CLS]"), (self._lasts, "end", "[SEP]")):
            if self._vocabulary is None:
                if len(seen) > 1:
                    faults.append(
                        f"examples {verb} with {len(seen):,} different ids, but all should have the id of {entry}"
                    )
                continue
            number = self._vocabulary.index(entry)
            other = {other_id: count for other_id, count in seen.items() if other_id != number}
            if other:
                most = max(other, key=lambda other_id: other[other_id])
                faults.append(f"{sum(other.values()):,} examples {verb} with id {most}, not {entry} ({number})")
        return faults + self._mask()

    def _mask(self) -> list[str]:
        # With few predictions, all may be kept or random tokens by chance.
        if self._vocabulary is None or self.shown.total() < _TELLING:
            return []
        ((shown, count),), number = self.shown.most_common(1), self._vocabulary.index("[MASK]")
        # 80 % of predictions are masked; if most show another id, the examples were made with another vocabulary.
        if shown == number or 2 * count <= self.shown.total():
            return []
        return [f"id {shown} is at most predicted positions, not [MASK] ({number})"]


def misfit(examples: FileSet, vocabulary: Sequence[str]) -> str:
    """Return which id of the first examples is not of `vocabulary`, with the file's name; "" if all are.

    Raises `ShardError` if the beginning of the file is damaged.
    """
    file, known = examples.files[0], format_of(examples.kind)
    # Without a vocabulary if possible: an id beyond it would be reported as damage of the file.
    blocks = known.read(file, vocabulary if known.reads_vocabulary else None)
    if (block := next(filter(len, blocks), None)) is None:
        return ""
    if (largest := max(block.token_ids.max(), block.labels.max(initial=0))) >= len(vocabulary):
        return f"{file} has id {largest:,}, but the vocabulary has {len(vocabulary):,} entries"
    special = SpecialIds(vocabulary)
    special.add(block)
    return next((f"{file}: {fault}" for fault in special.faults()), "")


def refuse_misfits(sets: Sequence[FileSet], vocabulary: Sequence[str] | None) -> None:
    """Raise `DataError` for the first set of examples that does not have the ids of `vocabulary`, if one is given."""
    if vocabulary is None:
        return
    for examples in sets:
        with suppress(ShardError):  # reported, or left out, where the whole file is read
            if not examples.documents and (fault := misfit(examples, vocabulary)):
                raise DataError(f"{fault}. The examples were made with another vocabulary: give their vocab.txt.")
