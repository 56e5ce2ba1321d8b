from collections.abc import Callable, Sequence

import pytest
from tests.reference.batches import NUMBERS, random_batch

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig

MakeBatch = Callable[..., PackedBatch]


@pytest.fixture
def tiny() -> BertConfig:
    """A network small enough for float64 and for looking at."""
    return BertConfig(**NUMBERS)


@pytest.fixture
def make_batch() -> MakeBatch:
    """`make_batch(config, lengths, seed)`: a random batch, see `random_batch`."""

    def make(config: BertConfig, lengths: Sequence[int], seed: int = 0) -> PackedBatch:
        return random_batch(lengths, seed, config.vocab_size)

    return make
