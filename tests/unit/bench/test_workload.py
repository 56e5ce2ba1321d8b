"""What is trained on: of the lengths it says, the same for all sides, and text only."""

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.bench.workload import VOCABULARY, WORKLOADS, Name, Training, Workload, examples_of, loader_of

SMALL = Workload("small", "tiny", 32, 4, "next-sentence", (1, 6), (5, 9))


@each_row("name", WORKLOADS)
def test_a_workload_is_what_it_says(name: Name) -> None:
    loader = loader_of(WORKLOADS[name])
    assert loader.total > 200, "more examples than are measured"
    fill = loader.examples.mean_tokens / WORKLOADS[name].length
    assert (fill == 1) == (WORKLOADS[name].plan == "full-sentences") and (0.4 < fill < 0.5) == (name == "half-512")
    labelled = loader.counts(0).sequences
    assert (labelled == WORKLOADS[name].batch) == (WORKLOADS[name].pairs or bool(WORKLOADS[name].labels))


def test_examples_are_those_before_masking() -> None:
    loader = loader_of(SMALL)
    (batch,) = loader.step(0)
    examples = list(examples_of(batch))
    assert sorted(len(each.token_ids) for each in examples) == sorted(
        (batch.cu_seqlens[1:] - batch.cu_seqlens[:-1]).tolist()
    )
    for each in examples:
        assert each.token_ids[0] == 2 and each.token_ids[-1] == 3 and 4 not in each.token_ids
        assert len(each.segment_ids) == len(each.token_ids) and each.label in (0, 1)
        # [CLS] A [SEP] B [SEP]: the second segment is what stands after the first [SEP].
        (first, last) = np.flatnonzero(each.token_ids == 3)
        assert each.segment_ids.tolist() == [0] * (first + 1) + [1] * (last - first)


def test_pairs_have_both_labels_and_blocks_have_none() -> None:
    loader = loader_of(SMALL)
    labels = [example.label for step in range(20) for batch in loader.step(step) for example in examples_of(batch)]
    assert 0.3 < np.mean(labels) < 0.7
    (batch,) = loader_of(WORKLOADS["full-128"]).step(0)
    assert {example.label for example in examples_of(batch)} == {0}


def test_text_is_the_same_at_every_call_and_all_of_the_vocabulary() -> None:
    first, again = (next(iter(loader_of(SMALL).step(7))) for _ in range(2))
    assert np.array_equal(first.token_ids, again.token_ids) and np.array_equal(first.labels, again.labels)
    loader = loader_of(WORKLOADS["full-128"])
    ids = np.concatenate([example.token_ids for step in range(30) for example in examples_of(*loader.step(step))])
    words = ids[ids > 4]
    assert words.max() < VOCABULARY.size and set(ids[ids <= 4].tolist()) == {2, 3}
    # Evenly over the entries, so that no side finds its rows of the embedding in the cache more often.
    halves = (words < VOCABULARY.size // 2).mean()
    assert halves == pytest.approx(0.5, abs=0.02)


def test_a_micro_batch_cuts_the_same_examples() -> None:
    (whole,) = loader_of(SMALL).step(3)
    parts = loader_of(SMALL, micro_batch=1).step(3)
    assert len(parts) == SMALL.batch

    def sequences(*batches: object) -> list[list[int]]:
        return sorted(example.token_ids.tolist() for batch in batches for example in examples_of(batch))  # type: ignore[arg-type]

    assert sequences(whole) == sequences(*parts)


def test_packing_lays_several_in_a_row() -> None:
    half = WORKLOADS["half-512"]
    (apart,), (packed, *_) = loader_of(half).step(0), loader_of(half, 4, packing=True).step(0)
    assert len(apart.cu_rows) == len(apart.cu_seqlens)
    assert len(packed.cu_rows) < len(packed.cu_seqlens) and packed.max_row <= half.length


def test_phrases_are_as_long_as_those_of_sst2() -> None:
    workload = WORKLOADS["phrases-128"]
    examples = [each for step in range(60) for each in examples_of(*loader_of(workload).step(step))]
    lengths = np.array([len(each.token_ids) - 2 for each in examples])
    # Counted in the data set: half of the phrases have up to 8 tokens, a tenth 25 or more, the mean is 11.3.
    assert lengths.min() >= 1 and lengths.max() <= 64 and np.median(lengths) == pytest.approx(8, abs=1)
    assert np.quantile(lengths, 0.9) == pytest.approx(25, abs=3) and lengths.mean() == pytest.approx(11.5, abs=1)
    assert {each.label for each in examples} == {0, 1}
    network = workload.network(Training(dropout=0.3))
    assert (network.hidden_size, network.num_hidden_layers, network.num_attention_heads) == (384, 6, 12)
    assert network.labels == workload.labels and network.hidden_dropout_prob == 0.3
