"""A network that starts from some of the layers of a deeper one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.conftest import Prepared
from tests.reference.teachers import write_stock
from tests.unit.objectives.test_distillation import bert, distilbert, modern, network
from tests.unit.train.conftest import MODEL, PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.contradictions.networks import wrong_init_layers
from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, Interrupted, RecipeError
from bertwright.train.config import TrainConfig
from bertwright.train.init_layers import chosen_layers

Train = Callable[..., Artifact]
PHASE = {**PHASES[0], "steps": 60}


def test_a_distilbert_takes_embeddings_heads_and_the_chosen_layers_of_a_bert() -> None:
    deeper, model = network(bert(4, pairs=True), 1), network(distilbert(2), 2)
    model.load_state_dict(chosen_layers(deeper, model, (2, 4), Path("teacher")))
    theirs, own = deeper.state_dict(), model.state_dict()
    for ours, layer in ((0, 1), (1, 3)):
        names = [name for name in own if f"layers.{ours}." in name]
        assert len(names) == 16
        for name in names:
            there = name.replace("distilbert.", "bert.").replace(f"layers.{ours}.", f"layers.{layer}.")
            assert torch.equal(own[name], theirs[there]), name
    for name in ("embeddings.token.weight", "embeddings.position.weight", "embeddings.norm.bias"):
        assert torch.equal(own[f"distilbert.{name}"], theirs[f"bert.{name}"])
    assert all(torch.equal(own[name], theirs[name]) for name in own if name.startswith("mlm."))


def test_what_the_deeper_network_lacks_is_named() -> None:
    text = r"train.init_layers: bert.pooler.dense.weight is \(24, 24\) here, and bert.pooler.dense.weight is absent in"
    with pytest.raises(ArtifactError, match=text):
        chosen_layers(network(bert(4), 1), network(bert(2, pairs=True), 2), (1, 2), Path("given"))
    # A ModernBERT's first layer has no norm before attention, so it can be nothing but a first layer.
    chosen_layers(network(modern(4), 1), network(modern(2), 2), (2, 3), Path("given"))
    text = r"modern.layers.1.attention.norm.weight is \(24,\) here, and modern.layers.0.attention.norm.weight is absent"
    with pytest.raises(ArtifactError, match=text):
        chosen_layers(network(modern(4), 1), network(modern(2), 2), (1, 1), Path("given"))


@pytest.fixture
def deeper(train: Train, tmp_path: Path) -> Path:
    """A finished training of two layers; the network of `bert.json` has one from here on."""
    (tmp_path / "bert.json").write_text(json.dumps({**MODEL, "num_hidden_layers": 2}))
    done = train("deeper", phases=[PHASE])
    (tmp_path / "bert.json").write_text(json.dumps(MODEL))
    return done.path


def test_training_starts_from_the_layers_and_goes_on_bit_identical(train: Train, deeper: Path) -> None:
    keys: dict[str, Any] = {"phases": [PHASES[0]], "init_from": deeper, "init_layers": (2,)}
    done, fresh = train("done", **keys), train("fresh", phases=[PHASES[0]])
    assert metric_lines(done.path)[0]["mlm_loss"] < metric_lines(fresh.path)[0]["mlm_loss"] - 0.3
    assert done.counts["init"]["folder"] == str(deeper)
    with pytest.raises(Interrupted):
        train("stopped", **keys, log=Notes(kill_at_row=2))
    assert same(weights(train("stopped", **keys)), weights(done))
    with pytest.raises(ArtifactError, match=r"train.init_layers.0: 2 -> 1"):
        train("done", **{**keys, "init_layers": (1,)})


def test_a_folder_of_transformers_will_do_where_the_vocabulary_is_the_same(
    train: Train, prepared: Prepared, tmp_path: Path
) -> None:
    entries = prepared.vocab.file("vocab.txt").read_text().splitlines()
    shape = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    stock = network(bert(3, pairs=True).model_copy(update={**shape, "vocab_size": 200}), 1)
    folder = write_stock(tmp_path / "stock", stock)
    keys: dict[str, Any] = {"phases": [PHASES[0]], "init_from": folder, "init_layers": (3,)}
    with pytest.raises(ArtifactError, match=r"train.init_from .*stock has another vocabulary than "):
        train("other", **keys)
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries))
    done = train("done", **keys)
    assert done.manifest["inputs"]["train.init_from"] and done.counts["steps"] == 12


def test_impossible_layers_are_refused_naming_both_keys(tmp_path: Path) -> None:
    folder = write_stock(tmp_path / "stock", network(bert(4), 1))

    def said(model: Any, layers: tuple[int, ...], given: Path = folder) -> dict[str, str]:
        return dict(wrong_init_layers(config(init_from=given, init_layers=layers), model))

    assert said(distilbert(2), (2, 4)) == {} and said(bert(2, pairs=True), (1, 3)) == {}
    for layers in ((2,), (2, 5), (1, 2, 3)):
        text = said(distilbert(2), layers)["train.init_layers"]
        assert text.startswith(f"{list(layers)} must be 2 numbers from 1 to 4, one for each layer of [model]")
    assert (
        "24 wide, but those of [model] are 12; choose a model of the same width"
        in said(bert(2, width=12), (1, 2))["train.init_layers"]
    )
    more = bert(2).model_copy(update={"num_attention_heads": 2 * bert(2).num_attention_heads})
    assert "attention heads, but those of [model] have" in said(more, (1, 2))["train.init_layers"]
    assert (
        "is not a folder; give a finished train folder" in said(bert(2), (1, 2), tmp_path / "gone")["train.init_from"]
    )
    with pytest.raises(
        RecipeError, match=r"init_layers \[1, 2\] are the layers of another network: set init_from to that network"
    ):
        config(init_layers=(1, 2))
    with pytest.raises(
        RecipeError, match=r"restart_bias_correction false needs optimizer moments to continue from, but init_layers"
    ):
        config({**PHASES[0], "restart_bias_correction": False}, init_from=folder, init_layers=(1, 2))
    with pytest.raises(RecipeError, match=r"init_layers.0: 0 must be 1 or more"):
        config(init_from=folder, init_layers=(0, 2))


def config(phase: dict[str, Any] = PHASES[0], **keys: Any) -> TrainConfig:
    return TrainConfig(phases=[phase], **keys)
