import copy
from typing import Any

import numpy as np
import pytest
import torch
from tests.reference.muon import ReferenceMuon
from tests.reference.unions import sections_of
from tests.rows import each_row
from torch import nn

from bertwright.core.errors import RecipeError
from bertwright.model.config import BertConfig, ModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.build import build_optimizer, moment_names
from bertwright.optim.config import GroupConfig, MuonConfig
from bertwright.optim.groups import set_rate
from bertwright.optim.muon import orthogonalized
from bertwright.train.engine.single import Single
from bertwright.train.precision.config import Bf16Config, Fp32Config, PrecisionConfig
from bertwright.train.setup.build import in_precision

SHAPES = {
    "table.weight": (50, 16),
    "layers.0.wide.weight": (12, 30),
    "layers.0.tall.weight": (30, 12),
    "layers.0.tall.bias": (30,),
    "layers.0.qkv.weight": (36, 12),
    "layers.0.gated.weight": (16, 12),
    "layers.0.norm.weight": (16,),
    "head.weight": (16, 16),
}
FUSED = {"qkv.weight": 3, "gated.weight": 2}
MATRICES = tuple(f"layers.0.{name}.weight" for name in ("wide", "tall", "qkv", "gated"))
BERT = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)


class Tensors(nn.Module):
    """Parameters of these names."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        super().__init__()
        for name, value in tensors.items():
            *path, last = name.split(".")
            module: nn.Module = self
            for part in path:
                if not hasattr(module, part):
                    module.add_module(part, nn.Module())
                module = getattr(module, part)
            module.register_parameter(last, nn.Parameter(torch.tensor(value)))


def drawn(seed: int, scale: float) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {name: random.normal(scale=scale, size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def test_twenty_updates_agree_with_the_plain_rule() -> None:
    check_twenty_updates("cpu")


def check_twenty_updates(device: str, of_matrices: float = 2e-6) -> None:
    """Assert that tensors are those of the plain rule within 2e-6 of their norm, and matrices of layers within
    `of_matrices`."""
    weights = drawn(0, 0.1)
    model, config = Tensors(weights).to(device), MuonConfig(groups=(GroupConfig(pattern="head.*", weight_decay=0.5),))
    optimizer = build_optimizer(config, model, FUSED)
    plain = ReferenceMuon({name: w.astype(np.float64) for name, w in weights.items()}, qkv=3, gated=2)
    decay = {name: 0.1 if len(shape) == 2 else 0.0 for name, shape in SHAPES.items()} | {"head.weight": 0.5}
    for step in range(20):
        gradients = drawn(100 + step, 10.0 ** (step % 3 - 2))
        for name, p in model.named_parameters():
            p.grad = torch.tensor(gradients[name], device=device)
        set_rate(optimizer, 1e-2 / (step + 1))
        optimizer.step()
        plain.update(gradients, 1e-2 / (step + 1), decay)
    for name, p in model.named_parameters():
        expected, got = plain.weights[name], p.detach().cpu().double().numpy()
        most = of_matrices if name in MATRICES else 2e-6
        assert np.linalg.norm(got - expected) <= most * np.linalg.norm(expected), name
        assert np.linalg.norm(expected - weights[name]) > 1e-2 * np.linalg.norm(expected), name


@each_row("products", ["auto", "bf16"])
@each_row("precision", [Fp32Config(), Bf16Config(allow_slow=True)])
def test_products_are_as_precise_as_those_of_the_training(products: Any, precision: PrecisionConfig) -> None:
    chosen = in_precision(MuonConfig(products=products), precision)
    low = products == "bf16" or precision.kind == "bf16"
    assert isinstance(chosen, MuonConfig) and (chosen.products == "bf16") is low
    assert in_precision(MuonConfig(products="fp32"), precision) == MuonConfig(products="fp32")
    model = Tensors(drawn(0, 0.1))
    optimizer = build_optimizer(chosen, model, FUSED)
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    set_rate(optimizer, 1.0)
    optimizer.step()
    for name in MATRICES[:2]:
        p = model.get_parameter(name)
        assert p.grad is not None
        update = (before[name] * 0.9 - p.detach()) / (0.2 * max(p.shape) ** 0.5)
        torch.testing.assert_close(update, orthogonalized(p.grad, low), atol=1e-5, rtol=1e-4)


def test_exactly_the_matrices_of_layers_keep_one_moment() -> None:
    kept = moment_names(MuonConfig(), PreTrainingModel(BERT))
    matrices = {name for name, moments in kept.items() if moments == ("exp_avg",)}
    layer = "bert.layers.0."
    assert matrices == {f"{layer}attention.{part}.weight" for part in ("query", "key", "value", "output")} | {
        f"{layer}feed_forward.{part}.weight" for part in ("inner", "output")
    }
    assert all(kept[name] == ("exp_avg", "exp_avg_sq") for name in kept.keys() - matrices)


def test_an_update_of_a_matrix_is_of_the_size_of_one_of_adamw() -> None:
    for shape in ((64, 64), (64, 256), (256, 64)):
        update = 0.2 * max(shape) ** 0.5 * orthogonalized(torch.randn(shape))
        assert 0.1 < float(update.square().mean().sqrt()) < 0.3


STACKED = {"bert": {}, "distilbert": {}, "modern": {"attention.qkv": 3, "feed_forward.inner": 2}}
"""The tensors of a layer that stack several matrices, and how many, as the encoders cut their products."""


@each_row("family", sections_of(ModelConfig))
def test_updates_are_equal_for_unequal_gradients(family: Any) -> None:
    model = PreTrainingModel(family(size="tiny").resolve(50))
    engine, before, moved = Single(model, MuonConfig(weight_decay=0.0)), copy.deepcopy(model.state_dict()), 0
    stacked = {f".{name}.weight": count for name, count in STACKED[model.config.family].items()}
    changes = {
        name: p.detach().chunk(next((count for end, count in stacked.items() if name.endswith(end)), 1))
        for name, p in model.named_parameters()
    }
    for name, p in model.named_parameters():
        p.grad = torch.cat([torch.randn_like(part) * 0.01**i for i, part in enumerate(changes[name])])
    engine.update(1.0)
    for name, parts in changes.items():
        if ".layers." in name and parts[0].ndim == 2:
            for now, earlier in zip(parts, before[name].chunk(len(parts)), strict=True):
                assert 0.15 < float((now - earlier).square().mean().sqrt()) < 0.22, name
                moved += 1
    assert moved == {"bert": 6, "distilbert": 6, "modern": 7}[model.config.family] * model.config.num_hidden_layers


def test_a_network_without_layers_is_refused() -> None:
    with pytest.raises(
        RecipeError, match=r"muon updates the matrices inside 'layers', but this network .* has none; use"
    ):
        build_optimizer(MuonConfig(), nn.Linear(2, 2), {})
