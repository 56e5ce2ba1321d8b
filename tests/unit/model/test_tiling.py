"""A larger network from tiles of a smaller one: it computes the same if widths are multiples, and else nearly."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.reference.batches import random_batch
from tests.reference.teachers import write_stock
from tests.rows import each_row
from tests.unit.tasks.test_distillation import bert, distilbert, modern, network
from torch.nn.functional import cross_entropy

from bertwright.model.config import NetworkConfig
from bertwright.model.interop.stock import load_tensors
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.tiling import tiled, units_of
from bertwright.model.transfer_config import repeated_layers, transfer, wrong_tiles

SIZES = {
    "bert": ("hidden_size", "num_attention_heads", "intermediate_size", "num_hidden_layers"),
    "modern": ("hidden_size", "num_attention_heads", "intermediate_size", "num_hidden_layers"),
    "distilbert": ("dim", "n_heads", "hidden_dim", "n_layers"),
}
FAMILIES = [bert(2, pairs=True), distilbert(2), modern(4)]


def larger(config: NetworkConfig, width: float, inner: float, layers: int) -> NetworkConfig:
    """The network with its width and heads, its inner size and its layers multiplied."""
    sizes = [getattr(config, name) for name in SIZES[config.family]]
    factors = (width, width, inner, layers)
    changed = {name: round(size * f) for name, size, f in zip(SIZES[config.family], sizes, factors, strict=True)}
    return type(config).model_validate({**config.model_dump(), **changed})


def grown(tmp_path: Path, theirs: PreTrainingModel, config: NetworkConfig, seed: int = 5) -> PreTrainingModel:
    given = read_pretrained(write_stock(tmp_path / f"small{seed}", theirs))
    found = transfer(config, given, 61, repeated_layers(config, given.network), tiled=True)
    assert not found.faults and not found.drawn and not found.unused
    made = tiled(config, given.network, load_tensors(given), found.taken, seed)
    own = network(config, 9)
    own.load_state_dict(made)
    return own.eval()


@pytest.mark.parametrize("config", FAMILIES, ids=lambda config: config.family)
@each_row(("width", "inner"), [(2, 2), (3, 1), (1, 1.5), (2, 1.3)])
def test_multiples_of_the_width_compute_the_same(
    config: NetworkConfig, width: float, inner: float, tmp_path: Path
) -> None:
    theirs, batch = network(config, 1).eval(), random_batch([9, 5], 4)
    own = grown(tmp_path / f"{width}{inner}", theirs, larger(config, width, inner, 1))
    with torch.no_grad():
        for found, expected in zip(own(batch), theirs(batch), strict=True):
            if expected is not None:
                torch.testing.assert_close(found, expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("config", FAMILIES, ids=lambda config: config.family)
def test_other_widths_compute_nearly_the_same(config: NetworkConfig, tmp_path: Path) -> None:
    """Far better than chance where the smaller network has an opinion."""
    theirs, batch = network(config, 1).eval(), random_batch([30, 25, 28, 31], 4)
    own = grown(tmp_path, theirs, larger(config, 4 / 3, 1.5, 1))
    with torch.no_grad():
        expected, found = theirs(batch)[0], own(batch)[0]
        drawn = network(own.config, 3).eval()(batch)[0]
    labels = expected.argmax(-1)
    assert float(cross_entropy(found, labels)) < 0.7 * float(cross_entropy(drawn, labels))


@pytest.mark.parametrize("config", FAMILIES, ids=lambda config: config.family)
def test_copies_of_a_layer_add_its_share(config: NetworkConfig, tmp_path: Path) -> None:
    theirs = network(config, 1).eval()
    deep = larger(config, 1, 1, 2)
    own = grown(tmp_path, theirs, deep)
    layers, given, made = repeated_layers(deep, config), theirs.state_dict(), own.state_dict()
    for i, layer in enumerate(layers):
        for name, tensor in given.items():
            prefix = f"{config.family}.layers.{layer - 1}."
            if name.startswith(prefix):
                share = layers.count(layer) if ".output." in name else 1
                torch.testing.assert_close(made[name.replace(prefix, f"{config.family}.layers.{i}.")], tensor / share)


def test_layers_may_repeat_without_tiles(tmp_path: Path) -> None:
    """`train.init_layers` alone copies each layer as it is."""
    theirs = network(bert(2), 1)
    given = read_pretrained(write_stock(tmp_path / "small", theirs))
    found = transfer(bert(4), given, layers=(1, 1, 2, 2))
    assert not found.faults and not found.drawn and not found.unused
    assert [found.taken[f"bert.layers.{i}.attention.query.bias"][12] for i in range(4)] == ["0", "0", "1", "1"]


def test_copies_are_told_apart_by_what_reads_them(tmp_path: Path) -> None:
    """With equal shares they would get equal gradients, and stay copies."""
    own = grown(tmp_path, network(bert(2), 1), larger(bert(2), 2, 2, 1)).train()
    own(random_batch([9, 5], 4))[0].logsumexp(-1).sum().backward()
    layer = own.get_submodule("bert.layers.0.feed_forward.inner")
    assert isinstance(layer, torch.nn.Linear) and layer.weight.grad is not None
    units = units_of(own.config, bert(2)).inner_N
    first, second = (units == 7).nonzero().flatten().tolist()
    assert not torch.allclose(layer.weight.grad[first], layer.weight.grad[second], rtol=0.01)
    again = grown(tmp_path / "again", network(bert(2), 1), larger(bert(2), 2, 2, 1))
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in own.state_dict().items())


def test_units_are_in_the_middle_and_heads_stay_whole() -> None:
    wide = bert(2).model_copy(update={"hidden_size": 40, "num_attention_heads": 5, "intermediate_size": 44})
    units = units_of(wide, bert(2))
    assert units.hidden_H.tolist() == [*range(16, 24), *range(24), *range(8)]
    assert units.heads_H.tolist() == [*range(16, 24), *range(24), *range(8)], "heads are 8 wide"
    assert units.inner_N.tolist() == [38, 39, *range(40), 0, 1]


def test_layers_are_repeated_in_order_and_by_kind() -> None:
    assert repeated_layers(bert(4), bert(2)) == [1, 1, 2, 2] and repeated_layers(bert(3), bert(2)) == [1, 1, 2]
    layers = repeated_layers(modern(8), modern(4))
    assert (
        len(layers) == 8
        and layers[0] == 1
        and layers[3] == layers[6] == 4
        and layers == sorted(layers[:3]) + layers[3:]
    )
    assert repeated_layers(modern(4), modern(4)) == [1, 2, 3, 4]


@each_row(
    ("changed", "said"),
    [
        ({}, "is not larger than that network, so that there is nothing to tile"),
        ({"hidden_size": 48}, "attention heads are 8 wide there but 16 in [model]; set the number of heads to 6"),
        ({"hidden_size": 30}, "are 8 wide there but 10 in [model]; choose a multiple of 8"),
        ({"intermediate_size": 32}, "intermediate_size is 40 there but only 32 in [model]"),
        ({"num_hidden_layers": 1}, "num_hidden_layers is 2 there but only 1 in [model]; give [model] at least as much"),
        ({"max_position_embeddings": 64}, "max_position_embeddings is 32 there but 64 in [model]"),
        ({"intermediate_size": 48}, ""),
    ],
)
def test_what_cannot_be_tiled_is_said(changed: dict[str, Any], said: str) -> None:
    wrong = wrong_tiles(bert(2).model_copy(update=changed), bert(2), ())
    assert said in wrong and bool(said) == bool(wrong)
    assert "set model.kind=bert" in wrong_tiles(distilbert(2), bert(2), ())
