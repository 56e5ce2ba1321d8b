"""Token counts of the training text of imported data, and how well the vocabulary fits it.

Needed because a run without a corpus has no training store to count in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.files import read_json
from bertwright.examples.frequencies import token_counts
from bertwright.examples.heldout_overlap import training_text
from bertwright.examples.instances import dtypes
from bertwright.examples.store import map_file
from bertwright.examples.vocabulary import Vocabulary

_AT_ONCE = 1 << 12
"""Number of examples read at a time."""


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
