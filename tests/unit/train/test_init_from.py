"""A network that starts from another one: which tensors it takes, which are drawn or left out, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import Prepared
from tests.reference.bundles import write_google
from tests.reference.teachers import write_stock
from tests.rows import each_row
from tests.unit.tasks.test_distillation import bert, distilbert, modern, network
from tests.unit.train.conftest import MODEL, PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, Interrupted, RecipeError
from bertwright.model.bert.network import BertConfig
from bertwright.model.classifier import Classifier
from bertwright.model.family import ANSWERS, Head
from bertwright.model.interop.stock import load_tensors
from bertwright.model.pretrained_config import Pretrained, content_of, read_pretrained
from bertwright.model.transfer_config import other_kinds, transfer
from bertwright.train.config import TrainConfig
from bertwright.train.setup.initial_weights import taken

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
PHASE = {**PHASES[0], "steps": 60}


def test_a_distilbert_starts_from_chosen_layers_of_a_bert(tmp_path: Path) -> None:
    deeper, model = network(bert(4, pairs=True), 1), network(distilbert(2), 2)
    given = read_pretrained(write_stock(tmp_path / "deep", deeper))
    found = transfer(model.config, given, layers=(2, 4))
    model.load_state_dict(taken(model.state_dict(), load_tensors(given), found, 61))
    assert found.unused == ("bert.embeddings.segment", "bert.pooler.dense", "nsp.classifier")
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


def test_heads_that_only_one_of_them_has_are_drawn_or_left_out(tmp_path: Path) -> None:
    own, given = network(bert(2, pairs=True), 1), write_stock(tmp_path / "one", network(bert(2), 2))
    found = transfer(own.config, read_pretrained(given))
    assert (found.drawn, found.unused, found.faults) == (("bert.pooler.dense", "nsp.classifier"), (), ())
    given = write_stock(tmp_path / "two", network(bert(2, pairs=True), 2))
    found = transfer(bert(2), read_pretrained(given))
    assert (found.drawn, found.unused, found.faults) == ((), ("bert.pooler.dense", "nsp.classifier"), ())
    assert found.notes == ["37 of 37 tensors of the encoder", "its bert.pooler.dense, nsp.classifier left out"]


@each_row("head", ANSWERS)
def test_a_head_for_answers_is_taken_from_another_model(head: Head, tmp_path: Path) -> None:
    """Files of transformers have no names for what it predicts."""
    own = bert(2).model_copy(update={"labels": ANSWERS[head], "head": head})
    given = read_pretrained(write_stock(tmp_path / head, Classifier(own)))
    assert (given.head, given.labels) == (head, ANSWERS[head])
    found = transfer(own, given)
    assert (found.drawn, found.unused, found.faults) == ((), (), ()) and "classification.classifier.bias" in found.taken
    classes = own.model_copy(update={"labels": ("no", "yes"), "head": "sequence"})
    assert "classification.classifier" in transfer(classes, given).drawn


def test_a_file_without_any_tensor_of_the_encoder_is_named(tmp_path: Path) -> None:
    given = read_pretrained(write_stock(tmp_path / "one", network(bert(2), 1)))
    save_file({"module.first": torch.ones(1), "module.second": torch.ones(1)}, given.folder / "model.safetensors")
    found = transfer(bert(2), read_pretrained(given.folder))
    assert found.faults[0] == "it has none of the 37 tensors of a BERT's encoder; its first is module.first"


def test_no_part_of_an_encoder_is_lost_in_silence(tmp_path: Path) -> None:
    """A DistilBERT has no segments, which is said; a tensor that no network here has is a fault."""
    given = read_pretrained(write_stock(tmp_path / "bert", network(bert(2), 1)))
    found = transfer(distilbert(2), given)
    assert found.unused == ("bert.embeddings.segment",) and not found.faults
    assert transfer(bert(2), read_pretrained(write_stock(tmp_path / "d", network(distilbert(2), 1)))).faults == (
        "bert.embeddings.segment.weight is absent there and (2, 24) here",
    )
    # Shaw et al.'s relative positions, as transformers can add them to a BERT.
    added = {"bert.encoder.layer.0.attention.self.distance_embedding.weight": torch.zeros(3, 8), "extra.weight": one()}
    save_file({**load_file(given.folder / "model.safetensors"), **added}, given.folder / "model.safetensors")
    found = transfer(bert(2), read_pretrained(given.folder))
    assert [fault.partition(" ")[0] for fault in found.faults] == [next(iter(added))]
    assert "extra.weight" in found.unused


def one() -> torch.Tensor:
    return torch.ones(1)


def test_a_layer_starts_only_from_a_layer_of_its_kind() -> None:
    """Every third layer of a ModernBERT is global, and the first has no norm before attention."""
    assert other_kinds(modern(4), modern(7), (1, 2, 3, 4)) == other_kinds(modern(4), modern(7), (1, 3, 6, 7)) == ""
    said = other_kinds(modern(2), modern(7), (2, 4))
    assert said == (
        "layer 1 of [model] has global attention and no norm before it, but layer 2 of the other network has local "
        "attention (a window of 8 tokens); choose [1, 6]"
    )
    assert "layer 2 of [model] has local attention (a window of 8 tokens), but layer 4 of" in other_kinds(
        modern(2), modern(7), (1, 4)
    )
    assert other_kinds(modern(4), modern(7), (1, 3, 4, 7)).endswith("; choose [1, 3, 5, 7]")
    assert "it has too few layers of each kind" in other_kinds(modern(4), modern(3), (1, 2, 3, 3))
    wider = modern(7).model_copy(update={"local_attention": 16})
    assert "a window of 16 tokens); it has too few" in other_kinds(modern(2), wider, (1, 2))
    assert other_kinds(distilbert(2), bert(12), (7, 12)) == ""


@each_row(("own", "given"), [(64, 61), (61, 64), (64, 72)])
def test_rows_that_pad_the_vocabulary_may_differ(own: int, given: int, tmp_path: Path) -> None:
    """The 61 entries keep their rows; rows beyond them, which only this network has, have no probability."""
    model, other = network(bert(2, rows=own), 1), network(bert(2, rows=given), 2)
    theirs, found = other.state_dict(), transfer(model.config, of_run(tmp_path, other.config), entries=61)
    assert not found.faults and not found.drawn
    tensors = taken(model.state_dict(), theirs, found, 61)
    assert torch.equal(tensors["bert.embeddings.token.weight"][:61], theirs["bert.embeddings.token.weight"][:61])
    assert torch.equal(tensors["mlm.bias"][:61], theirs["mlm.bias"][:61])
    assert len(tensors["mlm.bias"]) == own and (own <= given or bool((tensors["mlm.bias"][given:] == -10_000).all()))
    model.load_state_dict(tensors)
    fewer = transfer(model.config, of_run(tmp_path, other.config), entries=max(own, given))
    assert [fault.partition(" ")[0] for fault in fewer.faults] == ["bert.embeddings.token.weight", "mlm.bias"]


def of_run(path: Path, config: Any) -> Pretrained:
    """A network of a run, of which only the configuration is read."""
    return Pretrained(path, path, config, Artifact(path, {"stage": "train"}))


@pytest.fixture
def deeper(train: Train, tmp_path: Path) -> Path:
    """A finished training of two layers; the network of `bert.json` has one from here on."""
    (tmp_path / "bert.json").write_text(json.dumps({**MODEL, "num_hidden_layers": 2}))
    done = train("deeper", phases=[PHASE])
    (tmp_path / "bert.json").write_text(json.dumps(MODEL))
    return done.path


def test_training_from_layers_resumes_bit_identical(train: Train, deeper: Path) -> None:
    keys: dict[str, Any] = {"phases": [PHASES[0]], "init_from": deeper, "init_layers": (2,)}
    done, fresh = train("done", **keys), train("fresh", phases=[PHASES[0]])
    assert metric_lines(done.path)[0]["mlm_loss"] < metric_lines(fresh.path)[0]["mlm_loss"] - 0.3
    assert done.counts["init"]["folder"] == str(deeper)
    with pytest.raises(Interrupted):
        train("stopped", **keys, log=Notes(kill_at_row=2))
    assert same(weights(train("stopped", **keys)), weights(done))
    with pytest.raises(ArtifactError, match=r"train.init_layers.0: 2 -> 1"):
        train("done", **{**keys, "init_layers": (1,)})


def test_a_transformers_folder_with_the_same_vocabulary_works(train: Train, prepared: Prepared, tmp_path: Path) -> None:
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


def test_a_tensorflow_checkpoint_starts_as_the_same_weights_in_safetensors_do(
    train: Train, prepared: Prepared, tmp_path: Path
) -> None:
    stock = network(BertConfig.model_validate({**MODEL, "vocab_size": 200}), 1)
    folder = write_stock(tmp_path / "stock", stock)
    config = json.loads((folder / "config.json").read_text())
    google = write_google(tmp_path / "google", config, load_file(folder / "model.safetensors"))
    for each in (folder, google.parent):
        (each / "vocab.txt").write_bytes(prepared.vocab.file("vocab.txt").read_bytes())
    done = [train(name, phases=[PHASES[0]], init_from=start) for name, start in (("a", folder), ("b", google))]
    assert same(*map(weights, done))
    assert done[1].counts["init"]["folder"] == str(google)
    assert len({each.manifest["inputs"]["train.init_from"] for each in done}) == 2


def test_a_checkpoint_of_another_trainer_starts_the_same_training(
    train: Train, prepared: Prepared, tmp_path: Path
) -> None:
    entries = prepared.vocab.file("vocab.txt").read_text().splitlines()
    stock = network(BertConfig(**{**MODEL, "vocab_size": len(entries), "next_sentence": False}), 1)
    folder = write_stock(tmp_path / "stock", stock, entries)
    keys: dict[str, Any] = {"phases": [PHASES[0]]}
    done = train("done", **keys, init_from=folder)
    state = {f"module.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    (folder / "config.json").rename(folder / "bert_config.json")
    (folder / "model.safetensors").unlink()
    file = folder / "ckpt_7038.pt"
    torch.save({"model": state, "optimizer": {"state": {0: torch.ones(3)}}, "epoch": 3}, file)
    from_file = train("from file", **keys, init_from=file)
    assert same(weights(from_file), weights(done))
    one, two = (made.manifest["inputs"]["train.init_from"] for made in (done, from_file))
    assert one != two == content_of(file) == content_of(folder)
    with pytest.raises(Interrupted):
        train("stopped", **keys, init_from=file, log=Notes(kill_at_row=2))
    file.unlink()  # a training that has begun knows what it started from
    assert same(weights(train("stopped", **keys, init_from=file)), weights(done))


def test_layers_without_a_network_or_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"init_layers \[1, 2\] are the layers of another network: set init_from to that network"
    ):
        config(init_layers=(1, 2))
    with pytest.raises(
        RecipeError, match=r"restart_bias_correction false needs optimizer moments to continue from, but init_layers"
    ):
        config({**PHASES[0], "restart_bias_correction": False}, init_from=tmp_path, init_layers=(1, 2))
    with pytest.raises(RecipeError, match=r"init_layers.0: 0 must be 1 or more"):
        config(init_from=tmp_path, init_layers=(0, 2))


def config(phase: dict[str, Any] = PHASES[0], **keys: Any) -> TrainConfig:
    return TrainConfig(phases=[phase], **keys)
