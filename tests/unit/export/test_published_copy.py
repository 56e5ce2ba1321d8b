"""A network whose weights are in files of torch.save, where programs that read safetensors are asked."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tests.rows import each_row
from tests.unit.export.tiny import publish

from bertwright.cli.conversion import convert_model
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.export.published_copy import as_published

pytestmark = pytest.mark.heavy


def as_pickle(folder: Path, name: str = "pytorch_model.bin") -> Path:
    state = load_file(folder / "model.safetensors")
    tied = (
        {"cls.predictions.decoder.weight": state["bert.embeddings.word_embeddings.weight"]}
        if "cls.predictions.bias" in state
        else {}
    )
    torch.save({**state, **tied}, folder / name)
    (folder / "model.safetensors").unlink()
    return folder / name


def test_safetensors_are_used_where_they_are(tmp_path: Path) -> None:
    folder = publish(tmp_path / "hf", "bert", "ForMaskedLM").folder
    with as_published(folder) as published:
        assert published == folder
    (folder / "model.safetensors").unlink()
    with as_published(folder) as published:
        assert published == folder


@each_row("family", ["bert", "distilbert", "modernbert"])
@each_row("kind", ["", "ForMaskedLM", "ForSequenceClassification"])
def test_the_copy_is_loaded_by_transformers_with_the_same_answers(tmp_path: Path, family: str, kind: str) -> None:
    folder = publish(tmp_path / "hf", family, kind).folder
    inputs = transformers.AutoTokenizer.from_pretrained(folder)("Az árvíztűrő folyó.", return_tensors="pt")
    load = getattr(transformers, f"AutoModel{kind}").from_pretrained
    expected = load(folder).eval()(inputs["input_ids"])[0]
    file = as_pickle(folder)
    for given in (folder, file):
        with as_published(given) as published:
            assert published != folder and not list(published.glob("*.bin"))
            assert torch.equal(load(published, use_safetensors=True).eval()(inputs["input_ids"])[0], expected)
    assert not published.exists()


def test_a_checkpoint_without_a_configuration_of_transformers(tmp_path: Path) -> None:
    folder = publish(tmp_path / "hf", "bert", "ForMaskedLM").folder
    config = json.loads((folder / "config.json").read_text())
    state = load_file(folder / "model.safetensors")
    for name in ("cls.predictions.bias", "bert.embeddings.word_embeddings.weight"):
        state[name] = torch.cat([state[name], state[name][:3]])
    torch.save({"model": {f"module.{name}": t for name, t in state.items()}}, folder / "ckpt_7.pt")
    (folder / "model.safetensors").unlink()
    keys = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    (folder / "bert_config.json").write_text(
        json.dumps({**{key: config[key] for key in keys}, "max_position_embeddings": 64})
    )
    (folder / "config.json").unlink()
    with as_published(folder) as published:
        model = transformers.AutoModelForMaskedLM.from_pretrained(published)
        assert type(model).__name__ == "BertForMaskedLM" and model.config.vocab_size == config["vocab_size"] + 3


def test_a_network_of_no_family_here_keeps_its_configuration(tmp_path: Path) -> None:
    made = transformers.RobertaModel(transformers.RobertaConfig(
        vocab_size=30, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )).eval()  # fmt: skip
    made.save_pretrained(tmp_path)
    torch.save(made.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with as_published(tmp_path) as published:
        same = transformers.AutoModel.from_pretrained(published)
    for name, tensor in made.state_dict().items():
        assert torch.equal(same.state_dict()[name], tensor), name


def test_a_pickle_is_converted(tmp_path: Path) -> None:
    file = as_pickle(publish(tmp_path / "hf", "bert", "ForMaskedLM").folder)
    facts = convert_model(file, tmp_path / "onnx", "onnx")
    assert facts["architecture"] == "BertForMaskedLM" and (tmp_path / "onnx" / "model.onnx").is_file()


def test_a_damaged_pickle_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder = publish(tmp_path / "hf", "bert", "ForMaskedLM").folder
    file = as_pickle(folder)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ArtifactError, match="is not a complete file of torch.save"):
        convert_model(folder, tmp_path / "onnx", "onnx")
    assert not (tmp_path / "onnx").exists()
    (folder / "config.json").unlink()
    with pytest.raises((RecipeError, ArtifactError)), as_published(folder):
        pass
