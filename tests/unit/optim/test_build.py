import pytest
import torch
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.build import build_optimizer
from bertwright.optim.by_name import decays
from bertwright.optim.config import AdamWConfig, GroupConfig
from bertwright.optim.groups import parameter_groups, set_rate

CONFIG = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)


def test_exactly_biases_and_layer_norms_do_not_decay() -> None:
    named = dict(PreTrainingModel(CONFIG).named_parameters())
    assert [name for name, p in named.items() if decays(name)] == [name for name, p in named.items() if p.ndim == 2]
    assert not decays("bert.layers.0.attention.norm.weight") and not decays("mlm.bias") and not decays("bias")
    assert decays("weight") and decays("bert.layers.0.attention.query.weight")


def test_groups_hold_every_parameter_once() -> None:
    named = dict(PreTrainingModel(CONFIG).named_parameters())
    decaying, others = parameter_groups(named, 0.01)
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.01, 0.0)
    assert {id(p) for group in (decaying, others) for p in group["params"]} == {id(p) for p in named.values()}
    assert len(decaying["params"]) + len(others["params"]) == len(named)


@each_row("names", [["a.weight", "b.weight"], ["a.bias", "norm.weight"], []])
def test_a_rule_that_matches_nothing_is_an_error(names: list[str]) -> None:
    with pytest.raises(RecipeError, match="weight decay needs parameters that decay and some that do not"):
        parameter_groups({name: torch.nn.Parameter(torch.zeros(2)) for name in names}, 0.01)


def test_groups_have_their_own_rate_and_decay() -> None:
    named = dict(PreTrainingModel(CONFIG).named_parameters())
    slow = GroupConfig(pattern="bert.embeddings.*", learning_rate_scale=0.5)
    free = GroupConfig(pattern="mlm.*", weight_decay=0.2)
    groups = parameter_groups(named, 0.01, (slow, free))
    names = {id(p): name for name, p in named.items()}
    found = {
        names[id(p)]: (group["learning_rate_scale"], group["weight_decay"]) for group in groups for p in group["params"]
    }
    assert len(found) == sum(len(group["params"]) for group in groups) == len(named)
    for name, got in found.items():
        scale = 0.5 if name.startswith("bert.embeddings.") else 1.0
        assert got == (scale, 0.2 if name.startswith("mlm.") else 0.01 if decays(name) else 0.0), name


def test_the_scale_of_a_group_multiplies_the_rate_of_every_update() -> None:
    model = PreTrainingModel(CONFIG)
    optimizer = build_optimizer(AdamWConfig(groups=(GroupConfig(pattern="mlm.*", learning_rate_scale=0),)), model, {})
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    set_rate(optimizer, 0.1)
    optimizer.step()
    assert all(torch.equal(p, before[name]) == name.startswith("mlm.") for name, p in model.named_parameters())


@each_row(
    ("patterns", "said"),
    [
        (
            ["bert.embedings.*"],
            r"optim.groups.0.pattern 'bert.embedings.\*' matches no tensor of this network; its tensors",
        ),
        (
            ["mlm.*", "*.bias"],
            r"optim.groups.0.pattern 'mlm.\*' and optim.groups.1.pattern "
            r"'\*.bias' both match mlm.*, but a tensor can have only one",
        ),
    ],
)
def test_patterns_that_name_nothing_or_the_same_tensor_are_refused(patterns: list[str], said: str) -> None:
    overrides = tuple(GroupConfig(pattern=pattern) for pattern in patterns)
    with pytest.raises(RecipeError, match=said):
        parameter_groups(dict(PreTrainingModel(CONFIG).named_parameters()), 0.01, overrides)
