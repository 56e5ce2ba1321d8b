"""Which entries stand next to each other, counted again pair by pair."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.rows import each_row
from tests.unit.examples import made
from tests.unit.examples.test_loader import SETTINGS

from bertwright.core.artifact import Artifact
from bertwright.examples import cooccurrence
from bertwright.examples.cooccurrence import WINDOW, Text, cooccurrences, read_text
from bertwright.examples.planned import open_loader

ENTRIES = 12


def text_of(seed: int, lengths: list[int]) -> Text:
    ids = np.random.default_rng(seed).integers(0, 9, sum(lengths)).astype(np.int32)
    return Text(ids, np.repeat(np.arange(len(lengths), dtype=np.int32), lengths))


@each_row("contexts", [4, ENTRIES, 100])
def test_each_pair_within_the_window_counts_by_its_distance(contexts: int) -> None:
    text = text_of(1, [30, 1, 3, 40])
    frequency = Counter(text.ids_T.tolist())
    frequent = sorted(range(ENTRIES), key=lambda entry: (-frequency[entry], entry))[:contexts]
    expected = np.zeros((ENTRIES, 2, len(frequent)))
    for i, entry in enumerate(text.ids_T):
        for j, neighbour in enumerate(text.ids_T):
            near = 0 < abs(i - j) <= WINDOW and text.sequence_T[i] == text.sequence_T[j]
            if near and neighbour in frequent:
                expected[entry, int(j < i), frequent.index(neighbour)] += 1 / abs(i - j)
    counts = cooccurrences(text, ENTRIES, contexts)
    np.testing.assert_allclose(counts, expected.reshape(ENTRIES, -1), rtol=1e-6)
    assert counts.any(axis=1).sum() == 9  # the others do not occur


def test_blocks_count_every_pair_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(2, [40, 7, 90])
    whole = cooccurrences(text, ENTRIES)
    monkeypatch.setattr(cooccurrence, "_BLOCK", 11)
    np.testing.assert_allclose(cooccurrences(text, ENTRIES), whole, rtol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"batch_warmup": ((0, 10), (3, 50))}])
def test_the_text_is_about_an_epoch_without_masks(examples: Artifact, changes: dict[str, Any]) -> None:
    loader = open_loader(examples, made.SETS[0], replace(SETTINGS, **changes))
    for most, least in ((3000, 3000 / loader.examples.mean_tokens), (10**9, loader.examples.sizes[0])):
        text = read_text(loader, most)
        found = np.split(text.ids_T, np.flatnonzero(np.diff(text.sequence_T)) + 1)
        assert least <= len(found) < least + SETTINGS.global_batch
        batch = loader.batch(0, len(found))
        ids = batch.token_ids.copy()
        ids[batch.prediction_positions] = batch.labels
        expected = np.split(ids, batch.cu_seqlens[1:-1])
        assert Counter(map(as_tuple, found)) == Counter(map(as_tuple, expected))


def as_tuple(ids: NDArray[np.integer[Any]]) -> tuple[int, ...]:
    return tuple(ids.tolist())
