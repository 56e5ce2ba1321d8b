"""Regression 8: "50 % of the time" is more than half.

Devlin et al. 2019 §3.1 draw the second sentence at random half of the time. create_pretraining_data.py (Google, NVIDIA
DeepLearningExamples BERT @4733603) does so with probability 0.5, and always when a chunk has one sentence, since
nothing is left to be the next one. The share of random pairs is therefore above one half, the more so the longer the
sentences are, and guessing "random" beats 50 % accuracy.

Here the rule is kept, because published BERTs were trained with it. What changes is that it is said: next-sentence
accuracy is reported beside `nsp_majority`, the share of the commonest label, and `examples.random_next_prob` can be
lowered.
"""

from collections.abc import Callable

import numpy as np
import pytest
from tests.reference import pairs as reference
from tests.rows import each_row

from bertwright.core.rng import below, key
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.documents import documents_of
from bertwright.examples.plan_builder import plan_passes

LENGTH, PASSES = 64, 8
Shape = list[list[int]]


def shape(longest_sentence: int, documents: int = 150) -> Shape:
    stream = key("sentences", longest_sentence)
    return [(1 + below(stream, 100 * i + np.arange(12), longest_sentence)).tolist() for i in range(documents)]


def original(documents: Shape) -> float:
    """The share of random pairs by the published walk."""
    numbers = reference.Generator(12345)
    walks = [reference.walk(documents, d, LENGTH - 3, numbers) for _ in range(PASSES) for d in range(len(documents))]
    return float(np.mean([pair.is_random for pairs in walks for pair in pairs]))


def ours(documents: Shape, random_next_prob: float = 0.5) -> float:
    lengths = np.array([n for document in documents for n in document])
    store = documents_of(
        np.zeros(lengths.sum(), np.uint16), [len(d) for d in documents], lengths, list(range(len(documents)))
    )
    config = ExamplesConfig(passes=PASSES, random_next_prob=random_next_prob)
    plans = plan_passes(store, np.ones(len(documents), np.bool_), LENGTH, config, config.passes)
    return float(np.concatenate(plans)["label"].mean())


@each_row("share", [original, ours])
def test_longer_sentences_make_more_random_pairs(share: Callable[[Shape], float]) -> None:
    short, long, longest = (share(shape(n)) for n in (20, 60, 120))
    assert 0.5 < short < long < longest
    assert longest > 0.7


@each_row("longest_sentence", [20, 60, 120])
def test_ours_keeps_the_rule(longest_sentence: int) -> None:
    documents = shape(longest_sentence)
    assert ours(documents) == pytest.approx(original(documents), abs=0.025)


def test_the_share_can_be_brought_to_one_half() -> None:
    documents = shape(60)
    only_forced = ours(documents, 0.0)
    assert 0 < only_forced < 0.5 < ours(documents)
    assert ours(documents, 0.3) < ours(documents)
