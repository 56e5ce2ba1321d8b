"""What occurs in several files is found where it is more than chance, by a bounded sample of hashes."""

from pathlib import Path

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.core.rng import bits, key
from bertwright.examples.instances import Instances, ends
from bertwright.formats import repetitions
from bertwright.formats.repetitions import BottomK, Repetitions
from bertwright.formats.target import Target, shares


def block(texts: list[int], masks: list[int], predictions: int = 10) -> Instances:
    """Examples of 40 tokens: the text and the masked positions of each by their numbers."""
    count, length = len(texts), 40
    ids = np.concatenate([100 + bits(key("text", t), np.arange(length)) % 1000 for t in texts] or [np.zeros(0)])
    ranks = [np.argsort(bits(key("mask", m), np.arange(1, length)))[:predictions] for m in masks]
    positions = np.concatenate([np.sort(1 + rank) for rank in ranks] or [np.zeros(0)]).astype(np.int32)
    cu_predictions = ends([predictions] * count)
    at = np.repeat(np.arange(count) * length, predictions) + positions
    originals = ids.astype(np.int32)
    shown = originals.copy()
    shown[at] = 4
    return Instances(
        shown,
        ends([length] * count),
        np.full(count, length, np.int32),
        positions,
        originals[at],
        cu_predictions,
        np.full(count, -1, np.int8),
    )


def faults(*files: Instances, static: bool = True) -> list[str]:
    repetitions = Repetitions(len(files), static)
    for number, examples in enumerate(files):
        repetitions.begin_file(Path(f"{number}.x"))
        for row in (slice(3), slice(3, None)):  # in two blocks
            part = examples.take(row)
            repetitions.add(part, part.originals())
    return repetitions.faults()


def numbers(first: int, count: int = 100) -> list[int]:
    return list(range(first, first + count))


def test_different_texts_and_masks_are_not_a_fault() -> None:
    assert faults(block(numbers(0), numbers(0)), block(numbers(100), numbers(100))) == []


def test_the_same_examples_in_another_order_are_the_same_file() -> None:
    shuffled = list(reversed(numbers(0)))
    first, second = faults(block(numbers(0), numbers(0)), block(shuffled, shuffled))
    assert first == "1.x holds the same examples as 0.x"
    assert second == "100.0% of the examples, masks and all, occur in several shards"


def test_empty_files_are_not_the_same_file() -> None:
    assert faults(block([], []), block([], []), block([1], [1])) == []


def test_a_single_repeated_row_may_be_chance() -> None:
    texts = [numbers(0), [*numbers(100, 99), 5]]
    assert faults(*(block(t, t) for t in texts)) == []
    twice = [numbers(0), [*numbers(100, 98), 5, 6]]
    assert faults(*(block(t, t) for t in twice)) == ["1.0% of the examples, masks and all, occur in several shards"]


def test_shared_random_seed_is_detected_by_equal_masks() -> None:
    (fault,) = faults(block(numbers(0), numbers(0)), block(numbers(100), numbers(0)))
    assert fault.startswith("100.0% of the masks occur in several shards on different texts")
    same = faults(block(numbers(0), numbers(0)), block([*numbers(50, 50), *numbers(200, 50)], numbers(500)))
    assert same == [], "a text that comes again with other masks is another pass over it"


def test_masks_of_few_predictions_are_equal_by_chance() -> None:
    assert faults(block(numbers(0), numbers(0), 3), block(numbers(100), numbers(0), 3)) == []


def test_texts_without_masks_may_come_again_in_a_few_passes() -> None:
    def without(texts: list[int]) -> Instances:
        return block(texts, texts, 0)

    few = faults(without(numbers(0)), without([*numbers(0, 4), *numbers(100, 96)]), static=False)
    assert few == [], "4 of 196 texts are below 5 %"
    many = faults(without(numbers(0)), without([*numbers(0, 40), *numbers(100, 60)]), static=False)
    assert many == ["25.0% of the texts occur in several shards"]


def test_a_damaged_file_is_compared_with_no_other() -> None:
    repetitions = Repetitions(2, static=True)
    for number in range(2):
        repetitions.begin_file(Path(f"{number}.x"))
        part = block([1], [1])
        repetitions.add(part, part.originals())
    repetitions.leave_out(Path("1.x"))
    assert list(repetitions.files) == [Path("0.x")] and repetitions.faults() == []


@each_row("kept", [64, 1 << 20])
def test_the_sample_tells_the_share_of_all_keys(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three files of 4,000 keys, of which a fifth is in all of them: by 64 keys a file about as many as by all."""
    monkeypatch.setattr(repetitions, "KEPT", 3 * kept)
    sample = BottomK(3)
    for number in range(3):
        sample.begin_file()
        own = bits(key("own", number), np.arange(3200))
        keys = np.concatenate([bits(key("shared"), np.arange(800)), own])
        for start in range(0, 4000, 700):
            sample.add(keys[start : start + 700], keys[start : start + 700])
    repeated = sample.repeated()
    assert repeated.differing == 0
    expected = 800 / (800 + 3 * 3200)
    if kept > 4000:
        assert (repeated.sampled, repeated.several) == (10_400, 800)
    else:
        assert 64 <= repeated.sampled <= 3 * 64
        assert abs(repeated.several / repeated.sampled - expected) < 0.1


@each_row("examples", [0, 1, 2, 3, 7, 8, 100, 101])
@each_row("files", [1, 2, 3, 8, 200])
def test_files_are_shared_out_as_their_loader_asks(examples: int, files: int) -> None:
    edges = shares(Target("tfrecord"), examples, files)
    sizes = np.diff(edges).tolist()
    assert edges[0] == 0 and edges[-1] == examples and 0 not in sizes and len(sizes) <= files
    assert not sizes or max(sizes) - min(sizes) <= 1
    unequal = np.diff(shares(Target("lddl"), examples, files)).tolist()
    assert 0 not in unequal and sum(unequal) >= examples - 1
    if examples > 2:
        assert max(unequal) - min(unequal) == 1, "LDDL's loader rejects files of one size"


def test_small_file_is_compared_only_with_complete_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repetitions, "KEPT", 2 * 64)
    large = bits(key("large"), np.arange(4000))
    small = large[:50]
    below = int((small <= np.sort(large)[63]).sum())
    for files in ((large, small), (small, large)):
        sample = BottomK(2)
        for keys in files:
            sample.begin_file()
            sample.add(keys, keys)
        assert sample.repeated() == (64, below, 0), "what lies above is not known of the large file"
