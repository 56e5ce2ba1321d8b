"""Which entries stand next to each other, counted again pair by pair."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.examples import made
from tests.unit.examples.test_loader import SETTINGS

from bertwright.core.artifact import Artifact
from bertwright.examples.cooccurrence import WINDOW, Text, cooccurrences, read_text
from bertwright.examples.masking_config import MaskingConfig
from bertwright.examples.plan_loader import open_loader

ENTRIES = 12


def text_of(seed: int, lengths: list[int]) -> Text:
    ids = np.random.default_rng(seed).integers(0, 9, sum(lengths)).astype(np.int32)
    return Text(ids, np.repeat(np.arange(len(lengths), dtype=np.int32), lengths))


@pytest.mark.parametrize("contexts", [4, ENTRIES, 100])
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


def test_the_text_is_read_without_masks_and_once(examples: Artifact) -> None:
    loader = open_loader(examples, made.SETS[0], SETTINGS)
    some = read_text(loader, 3000)
    assert 3000 <= len(some.ids_T) < 3000 + 2 * SETTINGS.global_batch * SETTINGS.length
    more_masks = open_loader(examples, made.SETS[0], replace(SETTINGS, masking=MaskingConfig(rate=0.4)))
    assert np.array_equal(read_text(more_masks, 3000).ids_T, some.ids_T)
    everything = read_text(loader, 10**9)
    sequences = int(everything.sequence_T[-1]) + 1
    assert loader.epoch_sizes[0] <= sequences < loader.epoch_sizes[0] + SETTINGS.global_batch
