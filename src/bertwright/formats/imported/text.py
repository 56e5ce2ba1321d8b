"""The training text of data made elsewhere: how often each entry occurs in it, and what that says of the vocabulary.

A run without a corpus has no training store to count in.
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
"""Examples read together."""


def text_of(folder: Path, vocabulary: Vocabulary) -> Iterator[NDArray[Any]]:
    """The ids that a phase trains on as they were before masking, blocks [T]; `folder` is what was brought in for it.

    Blocks of documents overlap a little; of examples they do not, and have [CLS] and [SEP].
    """
    # Tokenised documents are a store, which examples are not.
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
    """[V] how often each entry occurs in the training text of a phase; special ones do not count."""
    store = folder / "store"
    if store.is_dir():
        counts = token_counts(
            map_file(store / "train.tokens", read_json(store / "train.json")["dtype"]), vocabulary.size
        )
    else:
        counts = np.zeros(vocabulary.size, np.int64)
        for block in text_of(folder, vocabulary):
            counts += token_counts(block, vocabulary.size)
    # No words: they would count as such in the tokens a word takes. [UNK] stands for one, and stays.
    counts[[vocabulary.pad, vocabulary.cls, vocabulary.sep, vocabulary.mask]] = 0
    return counts


def rates(counts: NDArray[np.int64], vocabulary: Vocabulary) -> dict[str, float | int]:
    """How the vocabulary fits a text, given how often each entry occurs there [V]: `words` (marks are words too), their
    `fertility` in tokens a word, and the share of `unknown_rate` that is [UNK]."""
    words = int(counts[~vocabulary.continuation].sum())
    return {
        "words": words,
        "fertility": round(int(counts.sum()) / max(1, words), 4),
        "unknown_rate": round(int(counts[vocabulary.unk]) / max(1, words), 6),
    }
