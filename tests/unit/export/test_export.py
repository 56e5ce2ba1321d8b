import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.unit.export.conftest import run_card

from bertwright.core.errors import ArtifactError, MissingExtraError
from bertwright.core.files import read_json, write_json
from bertwright.core.stage_context import StageContext
from bertwright.export import run as stage
from bertwright.export.config import ExportConfig, Inputs
from bertwright.model.saved import load_model
from bertwright.vocab.tokenizer import load_tokenizer

Make = Callable[..., Any]


def export(made: Any, tmp_path: Path, **settings: Any) -> Any:
    inputs = Inputs(made.train, made.vocab, made.evaluate, made.corpus)
    return stage.run(ExportConfig(**settings), inputs, StageContext(tmp_path / "export"))


def test_transformers_loads_the_folder_and_gives_our_numbers(trained: Make, tmp_path: Path) -> None:
    made = trained()
    exported = export(made, tmp_path)
    hf = str(exported.path / "hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(hf, local_files_only=True)
    theirs = transformers.BertForPreTraining.from_pretrained(hf, local_files_only=True).eval()
    assert theirs.config.architectures == ["BertForMaskedLM"], "the class that every program knows"
    state = load_model(made.train.path / "model").state_dict()
    assert torch.equal(theirs.bert.embeddings.word_embeddings.weight, state["bert.embeddings.token.weight"])
    assert theirs.cls.predictions.decoder.weight is theirs.bert.embeddings.word_embeddings.weight
    text = "Az árvíztűrő [MASK] Győrben készült."
    with torch.inference_mode():
        output = theirs(**tokenizer(text, "A Duna.", return_tensors="pt"))
    assert output.prediction_logits.shape[-1] == made.vocab.counts["entries"]
    assert 0 < exported.counts["mlm_difference"] < 1e-4
    assert 0 <= exported.counts["nsp_difference"] < 1e-4


@pytest.mark.parametrize("lower_case", [False, True])
def test_the_reloaded_tokenizer_gives_our_ids(trained: Make, tmp_path: Path, lower_case: bool) -> None:
    made = trained(lower_case=lower_case)
    exported = export(made, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(str(exported.path / "hf"), local_files_only=True)
    ours = load_tokenizer(made.vocab)
    decomposed = "A\u0301rvi\u0301ztu\u030bro\u030b TU\u0308KO\u0308R"
    for text in ("Árvíztűrő tükörfúrógép", decomposed, "the old mill", "東京 – 3,5 %"):
        assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode_sentences([text])[0].tolist()
    assert theirs("[MASK]")["input_ids"] == [ours.ids(name) for name in ("[CLS]", "[MASK]", "[SEP]")]
    settings = read_json(exported.file("hf/tokenizer_config.json"))
    assert (settings["do_lower_case"], settings["strip_accents"]) == (lower_case, False)


def test_without_next_sentence_head_it_is_a_masked_language_model(trained: Make, tmp_path: Path) -> None:
    exported = export(trained(next_sentence=False), tmp_path)
    assert exported.counts["architecture"] == "BertForMaskedLM"
    assert "nsp_difference" not in exported.counts
    assert "next-sentence accuracy" not in exported.file("hf/README.md").read_text()
    transformers.BertForMaskedLM.from_pretrained(str(exported.path / "hf"), local_files_only=True)


def test_rows_that_pad_the_embedding_are_cut(trained: Make, tmp_path: Path) -> None:
    made = trained(extra_rows=7)
    exported = export(made, tmp_path)
    assert read_json(exported.file("hf/config.json"))["vocab_size"] == made.vocab.counts["entries"]


def test_no_connection_is_opened(trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    export(trained(), tmp_path)


def test_a_changed_tensor_is_an_error_with_its_share(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = stage.write_hf_folder

    def corrupted(hf: Path, *rest: Any) -> Any:
        size = write(hf, *rest)
        tensors = load_file(hf / "model.safetensors")
        tensors["cls.seq_relationship.bias"] += torch.tensor([0.0, 0.5])
        save_file(tensors, hf / "model.safetensors", {"format": "pt"})
        return size

    monkeypatch.setattr(stage, "write_hf_folder", corrupted)
    with pytest.raises(ArtifactError, match=r"nsp_difference of the logits is 0\.\d+, above export\.tolerance=0\.0001"):
        export(trained(), tmp_path)
    assert not (tmp_path / "export").exists()


def test_a_missing_tensor_is_an_error_that_names_it(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = stage.write_hf_folder

    def without_bias(hf: Path, *rest: Any) -> Any:
        size = write(hf, *rest)
        tensors = load_file(hf / "model.safetensors")
        del tensors["cls.seq_relationship.bias"]
        save_file(tensors, hf / "model.safetensors", {"format": "pt"})
        return size

    monkeypatch.setattr(stage, "write_hf_folder", without_bias)
    with pytest.raises(ArtifactError, match=r"cls\.seq_relationship\.bias"):
        export(trained(), tmp_path)


def test_a_tokenizer_that_normalises_otherwise_is_an_error(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = stage.write_hf_folder

    def lower_casing(hf: Path, *rest: Any) -> Any:
        size = write(hf, *rest)
        description = read_json(hf / "tokenizer.json")
        (bert,) = (each for each in description["normalizer"]["normalizers"] if each["type"] == "BertNormalizer")
        bert["lowercase"] = True
        write_json(hf / "tokenizer.json", description)
        return size

    monkeypatch.setattr(stage, "write_hf_folder", lower_casing)
    with pytest.raises(ArtifactError, match="different ids from ours for 'Árvíztűrő"):
        export(trained(), tmp_path)


def test_a_folder_that_does_not_load_is_an_error(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = stage.write_hf_folder

    def truncated(hf: Path, *rest: Any) -> Any:
        size = write(hf, *rest)
        (hf / "model.safetensors").write_bytes((hf / "model.safetensors").read_bytes()[:-100])
        return size

    monkeypatch.setattr(stage, "write_hf_folder", truncated)
    with pytest.raises(ArtifactError, match="transformers cannot load it"):
        export(trained(), tmp_path)


def test_without_transformers_nothing_is_written(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trained()
    monkeypatch.setattr(stage, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bertwright\[hf\]'"):
        export(made, tmp_path)
    assert [path for path in tmp_path.rglob("*") if "export" in path.name and path.is_file()] == []


def test_the_card_states_language_licence_scores_and_no_more(trained: Make, tmp_path: Path) -> None:
    made = trained()
    card = export(made, tmp_path, name="hu-probe").file("hf/README.md").read_text()
    assert card.startswith('---\nlanguage: ["hu"]\nlicense: "unknown"\n')
    assert (
        "\n# Hungarian BERT of " in card
        and " weights, trained for 2 seconds\n" in card
        and "**hu-probe**: a BERT" in card
    )
    assert "- huwiki (https://hu.wikipedia.org/wiki/Kezdőlap): 3 documents, 72 words, licence CC BY-SA" in card
    assert "Of the evaluation text qa.txt, 1 of 9 sentences of 13 words or more have 13 words in a row" in card
    assert "| masked-token accuracy | 41.0% | 6.0% (commonest token) |" in card
    assert "Case is kept. Accents are kept." in card
    assert made.train.fingerprint in card


def test_the_program_of_the_card_runs(
    trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = export(trained(), tmp_path).path / "hf"
    monkeypatch.chdir(folder)
    assert len(run_card(folder, capsys)) == 5, "a line for each guess"


def test_the_same_export_is_not_made_twice(trained: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trained()
    first = export(made, tmp_path)
    monkeypatch.setattr(stage, "find_spec", lambda name: None)
    assert export(made, tmp_path).manifest == first.manifest


def test_a_damaged_model_is_found_before_it_is_exported(trained: Make, tmp_path: Path) -> None:
    made = trained()
    weights = made.train.path / "model/model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(ArtifactError, match="is damaged"):
        export(made, tmp_path)


def test_the_identity_names_its_four_inputs_and_no_tolerance(trained: Make, tmp_path: Path) -> None:
    made = trained()
    exported = export(made, tmp_path, tolerance=1e-3)
    inputs = {name: getattr(made, name).fingerprint for name in ("train", "vocab", "evaluate", "corpus")}
    assert exported.manifest["inputs"] == inputs
    found = stage.identity(ExportConfig(tolerance=1e-5), inputs | {"examples": "not asked for"})
    assert found.fingerprint == exported.fingerprint
    assert stage.identity(ExportConfig(), inputs | {"corpus": "another"}).fingerprint != exported.fingerprint
