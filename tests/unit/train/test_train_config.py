"""A phase's own arithmetic."""

import pytest
import torch
from pydantic import ValidationError
from tests.rows import each_row

from bertwright.examples.config import MaskingConfig
from bertwright.train.config import TrainConfig
from bertwright.train.settings.phase_config import PhaseConfig

PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-3, "steps": 3}


@each_row(
    ("length", "rate", "most"), [(128, 0.15, 20), (512, 0.15, 80), (64, 0.15, 10), (128, 0.25, 33), (64, 0.4, 27)]
)
def test_left_out_the_limit_never_undoes_the_mask_rate(length: int, rate: float, most: int) -> None:
    """It was 5/32 of the length whatever the rate, so a rate of 25 % masked 15.6 % without a word."""
    assert MaskingConfig(rate=rate).most(length) == most >= round(length * rate)


def test_a_given_limit_stands() -> None:
    assert MaskingConfig(rate=0.25, max_predictions=20).most(128) == 20


@each_row(
    ("wrong", "said"),
    [
        ({"micro_tokens": 512, "micro_batch": 4}, "leave micro_batch and packing out"),
        ({"micro_tokens": 512, "packing": True}, "leave micro_batch and packing out"),
        ({"micro_tokens": 64}, "too small for one sequence of length 128"),
        ({"micro_batch": 9}, "larger than the global batch 8"),
    ],
)
def test_a_forward_pass_is_sized_in_one_way(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PhaseConfig.model_validate({"length": 128, "batch": 8, "learning_rate": 1e-3, "steps": 1, **wrong})


@each_row("seed", [0, 2**63 - 1])
def test_a_seed_is_one_that_torch_takes(seed: int) -> None:
    assert TrainConfig.model_validate({"phases": [PHASE], "seed": seed}).seed == seed
    torch.Generator().manual_seed(seed)


@each_row("seed", [-1, 2**63, 2**64])
def test_any_other_seed_is_refused_with_the_recipe(seed: int) -> None:
    with pytest.raises(ValidationError, match=r"seed\s+Input should be (greater|less) than or equal to"):
        TrainConfig.model_validate({"phases": [PHASE], "seed": seed})
