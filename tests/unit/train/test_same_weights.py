"""The hash of the weights and the sentence about ranks that differ; two real ranks: tests/pipeline/test_ranks.py."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.reference.batches import NUMBERS

from bertwright.core.errors import RankError
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.ranks.agreement import check_same_weights, weights_hash
from bertwright.train.ranks.ranks import Ranks


@pytest.fixture
def model() -> PreTrainingModel:
    torch.manual_seed(0)
    return PreTrainingModel(BertConfig(**NUMBERS))


def flip(parameter: torch.Tensor, bit: int = 0) -> None:
    """Change one bit of the first number."""
    with torch.no_grad():
        parameter.view(torch.int32).view(-1)[0] ^= 1 << bit


def test_every_bit_of_every_parameter_counts(model: PreTrainingModel) -> None:
    seen = {weights_hash(model)}
    assert weights_hash(model) in seen and next(iter(seen)) < 2**64
    for parameter in model.parameters():
        flip(parameter.data)
        seen.add(weights_hash(model))
    assert len(seen) == 1 + len(list(model.parameters()))
    for parameter in model.parameters():
        flip(parameter.data)
    assert weights_hash(model) in seen
    assert weights_hash(model.to(torch.bfloat16)) not in seen, "also in a type that numpy does not know"


def test_one_rank_alone_computes_no_hash(model: PreTrainingModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.train.ranks.agreement.weights_hash", lambda model: pytest.fail("for nothing"))
    check_same_weights(Ranks(), model, 1)


@pytest.mark.parametrize(
    ("different", "said"),
    [
        ((0, 0), ""),
        ((0, 1), "rank 0, rank 1 differ from each other"),
        ((0, 0, 1, 0), "rank 2 differs from the other 3"),
        ((1, 0, 2, 0, 0), "ranks 0 and 2 differ from the other 3"),
        ((0, 1, 1, 0), "ranks 0 and 3, ranks 1 and 2 differ from each other"),
    ],
)
def test_the_ranks_that_differ_are_named(model: PreTrainingModel, different: Sequence[int], said: str) -> None:
    """What other ranks would add to the sum stands in for them."""
    own = weights_hash(model)

    class Others:
        rank, world = 0, len(different)

        def all_reduce_async(self, halves: list[int]) -> Any:
            assert halves[:2] == [own >> 32, own % 2**32] and not any(halves[2:])
            hashes = [own ^ (value - different[0]) % 7 for value in different]
            return SimpleNamespace(result=lambda: [half for value in hashes for half in divmod(value, 2**32)])

    ranks: Any = Others()
    if not said:
        check_same_weights(ranks, model, 1200)
        return
    with pytest.raises(RankError) as raised:
        check_same_weights(ranks, model, 1200)
    assert str(raised.value).startswith(f"after step 1,200 the ranks no longer have the same weights: {said}. ")
    assert "Run the same command again: training goes on from its newest checkpoint" in str(raised.value)
