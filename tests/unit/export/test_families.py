"""ModernBERT and DistilBERT exported: stock transformers loads the folder, and what is wrong with it is an error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.unit.export.conftest import run_card

from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, write_json
from bertwright.core.stage_context import StageContext
from bertwright.export import run as stage
from bertwright.export.config import ExportConfig, Inputs
from bertwright.export.verify import compare_tokenizer
from bertwright.model.distilbert.network import DistilBertConfig
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.modern.network import ModernConfig
from bertwright.model.saved import load_model
from bertwright.vocab.tokenizer import load_tokenizer

Make = Callable[..., Any]


def modern(rows: int, **more: Any) -> ModernConfig:
    numbers = {
        "hidden_size": 24, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 40,
        "max_position_embeddings": 64, "initializer_range": 0.3, "local_attention": 16,
    }  # fmt: skip
    return ModernConfig(vocab_size=rows, **{**numbers, **more})


def distilbert(rows: int) -> DistilBertConfig:
    return DistilBertConfig(
        vocab_size=rows, dim=24, n_layers=2, n_heads=3, hidden_dim=40, max_position_embeddings=64, initializer_range=0.3
    )


FAMILIES = {
    "modern": (modern, "ModernBertForMaskedLM", "decoder.bias"),
    "distilbert": (distilbert, "DistilBertForMaskedLM", "vocab_projector.bias"),
}
families = pytest.mark.parametrize(("network", "architecture", "bias"), FAMILIES.values(), ids=FAMILIES)


def export(made: Any, tmp_path: Path, **settings: Any) -> Any:
    inputs = Inputs(made.train, made.vocab, made.evaluate, made.corpus)
    return stage.run(ExportConfig(**settings), inputs, StageContext(tmp_path / "export"))


@families
def test_transformers_loads_the_folder_and_gives_our_numbers(
    trained: Make, tmp_path: Path, network: Any, architecture: str, bias: str
) -> None:
    made = trained(network=network, extra_rows=3)
    exported = export(made, tmp_path)
    hf, entries = str(exported.path / "hf"), int(made.vocab.counts["entries"])
    assert (exported.counts["architecture"], exported.counts["vocab_size"]) == (architecture, entries)
    assert 0 < exported.counts["mlm_difference"] < 1e-4 and "nsp_difference" not in exported.counts
    ours = load_model(made.train.path / "model").eval()
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(hf, local_files_only=True).eval()
    assert type(theirs).__name__ == architecture
    assert theirs.get_output_embeddings().weight is theirs.get_input_embeddings().weight
    assert exported.counts["parameters"] == sum(p.numel() for p in theirs.parameters())
    assert torch.equal(theirs.get_input_embeddings().weight, ours.encoder.token_weight[:entries])
    tokenizer = transformers.AutoTokenizer.from_pretrained(hf, local_files_only=True)
    with torch.inference_mode():
        encoding = tokenizer("Az árvíztűrő [MASK] Győrben készült.", "A Duna.", return_tensors="pt")
        assert theirs(**encoding).logits.shape[-1] == entries


@families
def test_the_files_suit_the_network(trained: Make, tmp_path: Path, network: Any, architecture: str, bias: str) -> None:
    exported = export(trained(network=network), tmp_path)
    config = read_json(exported.file("hf/config.json"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(exported.path / "hf"), local_files_only=True)
    ids = {key: value for key, value in config.items() if key.endswith("_token_id")}
    special = {"pad": tokenizer.pad_token_id, "cls": tokenizer.cls_token_id, "sep": tokenizer.sep_token_id}
    stock = {"bos": special["cls"], "eos": special["sep"]} if architecture.startswith("Modern") else {}
    named = {**special, **stock} if stock else {"pad": special["pad"]}
    assert ids == {f"{name}_token_id": number for name, number in named.items()}
    assert read_json(exported.file("hf/tokenizer_config.json"))["model_input_names"] == ["input_ids", "attention_mask"]
    card = exported.file("hf/README.md").read_text()
    tag, what = {
        "ModernBertForMaskedLM": ("modernbert", "a ModernBERT (Warner et al. 2024) trained on text"),
        "DistilBertForMaskedLM": ("distilbert", "a network of DistilBERT's shape (Sanh et al. 2019) trained on text"),
    }[architecture]
    assert f'tags: ["{tag}", "bertwright"]' in card and what in card
    assert "next-sentence" not in card and "It has no segments" in card
    assert ("it is not distilled" in card) == (tag == "distilbert")


@families
def test_the_program_of_the_card_runs(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    network: Any, architecture: str, bias: str,
) -> None:  # fmt: skip
    folder = export(trained(network=network), tmp_path).path / "hf"
    monkeypatch.chdir(folder)
    guesses = run_card(folder, capsys)
    assert len(guesses) == 5, "a line for each guess"
    scores = [float(guess.split()[-1]) for guess in guesses]
    assert sorted(scores, reverse=True) == scores and 0 < sum(scores) <= 1


@families
def test_a_changed_tensor_is_an_error(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: Any, architecture: str, bias: str
) -> None:
    write = stage.write_hf_folder

    def corrupted(hf: Path, *rest: Any) -> Any:
        size = write(hf, *rest)
        tensors = load_file(hf / "model.safetensors")
        tensors[bias][7] += 0.5
        save_file(tensors, hf / "model.safetensors", {"format": "pt"})
        return size

    monkeypatch.setattr(stage, "write_hf_folder", corrupted)
    with pytest.raises(ArtifactError, match=r"mlm_difference of the logits is 0\.\d+, above export\.tolerance=0\.0001"):
        export(trained(network=network), tmp_path)
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [("local_attention", 18), ("global_attn_every_n_layers", 2), ("global_rope_theta", 9e4), ("local_rope_theta", 2e3)],
)
def test_a_number_of_the_file_that_is_another_is_an_error(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: float
) -> None:
    """None of them changes a tensor's shape: the numbers alone tell."""
    write = stage.write_hf_folder

    def changed(hf: Path, *rest: Any) -> Any:
        size = write(hf, *rest)
        write_json(hf / "config.json", {**read_json(hf / "config.json"), key: value})
        return size

    monkeypatch.setattr(stage, "write_hf_folder", changed)
    with pytest.raises(ArtifactError, match="mlm_difference of the logits is"):
        export(trained(network=modern), tmp_path)


def test_without_a_decoder_bias(trained: Make, tmp_path: Path) -> None:
    exported = export(trained(network=lambda rows: modern(rows, decoder_bias=False), extra_rows=2), tmp_path)
    assert "decoder.bias" not in load_file(exported.path / "hf" / "model.safetensors")
    assert exported.counts["mlm_difference"] < 1e-4


def test_sequences_longer_than_a_bert_can_read(trained: Make, tmp_path: Path) -> None:
    """A few rows at a time: the others are not padded to the longest one, and are compared all the same."""
    made = trained(network=lambda rows: modern(rows, max_position_embeddings=2500))
    exported = export(made, tmp_path)
    assert exported.counts["predictions_compared"] > 8 and exported.counts["mlm_difference"] < 1e-4
    assert read_json(exported.file("hf/tokenizer_config.json"))["model_max_length"] == 2500


def test_the_config_of_the_folder_is_read_back_as_the_network(trained: Make, tmp_path: Path) -> None:
    made = trained(network=modern)
    path = export(made, tmp_path).file("hf/config.json")
    assert ModernModelConfig(config=path).resolve(5) == load_model(made.train.path / "model").config


def test_a_tokenizer_with_segments_is_refused_without_any(trained: Make, tmp_path: Path) -> None:
    made = trained(network=distilbert)
    hf = export(made, tmp_path).path / "hf"
    tokenizer = load_tokenizer(made.vocab)
    compare_tokenizer(hf, tokenizer, [], segments=False)
    with pytest.raises(ArtifactError, match="its tokenizer gives wrong segments for"):
        compare_tokenizer(hf, tokenizer, [], segments=True)
