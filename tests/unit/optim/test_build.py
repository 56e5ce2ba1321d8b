import pytest
import torch

from bertwright.core.errors import RecipeError
from bertwright.model.bert.config import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.build import decay_groups, decays

CONFIG = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)


def test_exactly_biases_and_layer_norms_do_not_decay() -> None:
    named = dict(PreTrainingModel(CONFIG).named_parameters())
    assert [name for name, p in named.items() if decays(name)] == [name for name, p in named.items() if p.ndim == 2]
    assert not decays("bert.layers.0.attention.norm.weight") and not decays("mlm.bias") and not decays("bias")
    assert decays("weight") and decays("bert.layers.0.attention.query.weight")


def test_groups_hold_every_parameter_once() -> None:
    named = list(PreTrainingModel(CONFIG).named_parameters())
    decaying, others = decay_groups(named, 0.01)
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.01, 0.0)
    assert {id(p) for group in (decaying, others) for p in group["params"]} == {id(p) for _, p in named}
    assert len(decaying["params"]) + len(others["params"]) == len(named)


@pytest.mark.parametrize("names", [["a.weight", "b.weight"], ["a.bias", "norm.weight"], []])
def test_a_rule_that_matches_nothing_is_an_error(names: list[str]) -> None:
    with pytest.raises(RecipeError, match="weight decay needs parameters that decay and some that do not"):
        decay_groups([(name, torch.nn.Parameter(torch.zeros(2))) for name in names], 0.01)
