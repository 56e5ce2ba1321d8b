"""CTranslate2 computes the hidden states that transformers does, from the files that its own converter writes."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tests.rows import each_row
from tests.unit.export.tiny import TEXTS, publish

from bertwright.core.errors import ArtifactError, MissingExtraError
from bertwright.core.files import read_json, write_json
from bertwright.export.folder import write_hf_folder
from bertwright.export.runtimes.ctranslate2 import CTranslate2
from bertwright.export.runtimes.runtime import Published
from bertwright.model.saved import load_model

pytestmark = pytest.mark.heavy
ctranslate2 = pytest.importorskip("ctranslate2", reason="pip install 'bertwright[ctranslate2]'")

LINES = (*TEXTS, "A [MASK] a Duna.", "ÁRVI\u0301ZTU\u030bRO\u030b 東京 ☃", "a\u00a0\x07b", "word " * 150, "")
"""With a mask, decomposed letters, control characters, more tokens than positions, and none."""


def write(model: Published, out: Path, runtime: CTranslate2 | None = None) -> Path:
    runtime = runtime or CTranslate2()
    assert runtime.refusal(model) == runtime.missing() == ""
    out.mkdir()
    runtime.write(model, out)
    assert (out / runtime.file).is_file()
    return out


def hidden_of(model: Published, ids: list[int]) -> NDArray[np.float32]:
    network = transformers.AutoModel.from_pretrained(model.folder, local_files_only=True, dtype=torch.float32).eval()
    with torch.inference_mode():
        hidden_TH: NDArray[np.float32] = network(torch.tensor([ids])).last_hidden_state[0].numpy()
    return hidden_TH


@pytest.mark.parametrize("family", ["bert", "distilbert"])
@pytest.mark.parametrize(("kind", "lower_case"), [("", True), ("ForMaskedLM", False)], ids=["encoder", "masked"])
def test_ids_and_hidden_states_are_those_of_transformers(
    family: str, kind: str, lower_case: bool, tmp_path: Path
) -> None:
    model = publish(tmp_path / "hf", family, kind, lower_case=lower_case)
    out = write(model, tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(model.folder, local_files_only=True)
    entries = json.loads((out / "vocabulary.json").read_text(encoding="utf-8"))
    assert entries == tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    with CTranslate2().open(model, out, threads=1) as reader:
        for line in LINES:
            ids = reader.ids(line)
            assert ids == tokenizer(line, truncation=True, max_length=64)["input_ids"]
            outputs = reader.run(line)
            expected_TH = hidden_of(model, ids)
            np.testing.assert_allclose(outputs["hidden"], expected_TH, rtol=0, atol=1e-5)
            np.testing.assert_allclose(outputs["vector"], expected_TH.mean(0), rtol=0, atol=1e-5)


def test_its_own_export(trained: Callable[..., Any], tmp_path: Path) -> None:
    made = trained()
    folder = tmp_path / "published"
    folder.mkdir()
    write_hf_folder(folder, load_model(made.train.path / "model"), made.vocab)
    model = Published(folder)
    with CTranslate2().open(model, write(model, tmp_path / "out"), threads=2) as reader:
        for line in LINES[:4]:
            np.testing.assert_allclose(reader.run(line)["hidden"], hidden_of(model, reader.ids(line)), atol=1e-5)


def test_int8_is_near(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert", initializer_range=0.02)
    runtime = CTranslate2("int8")
    out, full = write(model, tmp_path / "int8", runtime), write(model, tmp_path / "full")
    assert (out / "model.bin").stat().st_size < (full / "model.bin").stat().st_size / 2
    with runtime.open(model, out, threads=1) as reader:
        hidden_TH, ids = reader.run(TEXTS[0])["hidden"], reader.ids(TEXTS[0])
    expected_TH = hidden_of(model, ids)
    cosine = (hidden_TH * expected_TH).sum() / np.linalg.norm(hidden_TH) / np.linalg.norm(expected_TH)
    assert 0.999 < cosine < 0.999999999


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_rows_that_only_pad_the_embedding_are_left_out(family: str, tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", family)
    before = hidden_of(model, [2, 5, 3])
    tensors = load_file(model.folder / "model.safetensors")
    (name,) = [name for name in tensors if name.endswith("word_embeddings.weight")]
    tensors[name] = torch.cat([tensors[name], torch.ones(5, 32)])
    save_file(tensors, model.folder / "model.safetensors", {"format": "pt"})
    write_json(model.folder / "config.json", {**model.config, "vocab_size": len(tensors[name])})
    padded = Published(model.folder)
    out = write(padded, tmp_path / "out")
    encoder = ctranslate2.Encoder(str(out))
    np.testing.assert_allclose(np.array(encoder.forward_batch([[2, 5, 3]]).last_hidden_state)[0], before, atol=1e-5)
    assert len(read_json(out / "vocabulary.json")) == len(tensors[name]) - 5


def test_a_pooler_is_computed_where_the_model_has_one(tmp_path: Path) -> None:
    for kind in ("", "ForMaskedLM"):
        model = publish(tmp_path / f"hf{kind}", "bert", kind)
        encoder = ctranslate2.Encoder(str(write(model, tmp_path / f"out{kind}")))
        pooled_H = np.array(encoder.forward_batch([[2, 5, 3]]).pooler_output)[0]
        network = transformers.BertModel.from_pretrained(model.folder, local_files_only=True).eval()
        expected_H = network(torch.tensor([[2, 5, 3]])).pooler_output.detach().numpy()[0]
        np.testing.assert_allclose(pooled_H, 0 * expected_H if kind else expected_H, atol=1e-5)


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("modernbert", "", {}, "none for modernbert"),
    ("bert", "ForTokenClassification", {}, "a BertForTokenClassification would lose its head"),
    ("bert", "", {"hidden_act": "mish"}, "does not know the activation 'mish'"),
    ("distilbert", "", {"activation": "gelu_10"}, "does not know the activation 'gelu_10'"),
    ("bert", "", {"position_embedding_type": "relative_key"}, "absolute positions only"),
]


@each_row(("family", "kind", "changed", "reason"), REFUSED)
def test_what_it_cannot_compute_is_refused(
    family: str, kind: str, changed: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    model = publish(tmp_path / "hf", family, kind)
    write_json(model.folder / "config.json", {**model.config, **changed})
    model = Published(model.folder)
    assert reason in CTranslate2().refusal(model)
    (tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match="cannot be converted"):
        CTranslate2().write(model, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


def test_a_folder_without_a_tensor_is_an_error(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert")
    tensors = load_file(model.folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.bias"]
    save_file(tensors, model.folder / "model.safetensors", {"format": "pt"})
    (tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match=r"has no tensor encoder\.layer\.1\.output\.dense\.bias"):
        CTranslate2().write(model, tmp_path / "out")


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.export.runtimes.runtime.installed", lambda package: "")
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'bertwright[ctranslate2]'")):
        CTranslate2().write(publish(tmp_path / "hf", "bert"), tmp_path)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model = publish(tmp_path / "hf", "bert")
    write(model, tmp_path / "wiki-ct2")
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "run-in-ctranslate2.md"
    (code,) = re.findall(r"```python\n(.*?)\n```", guide.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    values: dict[str, Any] = {}
    exec(code, values)
    assert capsys.readouterr().out == "(1, 8, 32)\n".replace("8", str(len(values["ids"])))
    with CTranslate2().open(model, tmp_path / "wiki-ct2", threads=1) as reader:
        assert values["ids"] == reader.ids("The mill by the river.")
        np.testing.assert_allclose(values["hidden"][0], reader.run("The mill by the river.")["hidden"], atol=1e-6)
