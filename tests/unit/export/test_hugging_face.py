"""transformers as a runtime: it gives the ids and the numbers of the network that was exported, and of strangers'."""

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.unit.export.tiny import FAMILIES, TEXTS, Ours, publish, publish_ours

from bertwright.core.errors import ArtifactError
from bertwright.export.runtimes.hugging_face import Transformers
from bertwright.export.runtimes.runtime import Outputs, Published
from bertwright.model.batch import packed_sequences
from bertwright.model.classifier import Classifier
from bertwright.model.family import Head
from bertwright.model.text_encoder import Encoder
from bertwright.vocab.entries import CLS, MASK, SEP

pytestmark = pytest.mark.heavy
RUNTIME = Transformers()
LINES = (*(f"{MASK} {text}" for text in TEXTS), f"A\u0301rvi\u0301z {MASK} tu\u0308ko\u0308r", f"{MASK} {'Duna ' * 90}")
KINDS = ("", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def answers(model: Published, lines: Sequence[str] = LINES) -> list[tuple[list[int], Outputs]]:
    assert RUNTIME.missing() == RUNTIME.refusal(model) == ""
    with RUNTIME.open(model, model.folder, threads=1) as reader:
        return [(reader.ids(line), reader.run(line)) for line in lines]


def ours(of: Ours, ids: list[int]) -> Outputs:
    """What this project's own network computes."""
    batch = packed_sequences([(ids, [])], of.tokenizer.ids(MASK))
    with torch.inference_mode():
        hidden_TH = of.model.encoder(batch)
        if not isinstance(of.model, Classifier):
            logits = of.model(batch)[0][0]
        elif of.model.config.head in ("token", "span"):
            every = torch.arange(len(ids))
            logits = of.model(replace(batch, prediction_positions=every, labels=every, weights=torch.ones(len(ids))))
        else:
            logits = of.model(batch)[0]
    return {"hidden": hidden_TH.numpy(), "vector": hidden_TH.mean(0).numpy(), "logits": logits.numpy()}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("head", [None, "sequence", "several", "token", "span", "choice"])
def test_it_gives_the_numbers_of_the_network_that_was_exported(family: str, head: Head | None, tmp_path: Path) -> None:
    if family == "modernbert" and head == "choice" and not hasattr(transformers, "ModernBertForMultipleChoice"):
        pytest.skip("this version of transformers has no such class")
    of = publish_ours(tmp_path / "hf", family, head)
    for line, (ids, found) in zip(LINES, answers(of.published), strict=True):
        flat, _ = of.tokenizer.encode_texts([line])
        assert ids == [of.tokenizer.ids(CLS), *flat.tolist()[:62], of.tokenizer.ids(SEP)]
        for name, expected in ours(of, ids).items():
            assert found[name].dtype == np.float32
            np.testing.assert_allclose(found[name], expected, atol=2e-5, err_msg=f"{name} of {line}")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_gives_what_transformers_itself_gives_for_a_stranger(family: str, kind: str, tmp_path: Path) -> None:
    labels = ("igen", "nem", "talán") if kind.endswith("Classification") else ()
    model = publish(tmp_path / "hf", family, kind, labels)
    network = getattr(transformers, f"AutoModel{kind}").from_pretrained(model.folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model.folder)
    for line, (ids, found) in zip(LINES, answers(model), strict=True):
        given = tokenizer(line, truncation=True, max_length=64, return_tensors="pt")
        inputs = {name: given[name] for name in ("input_ids", "attention_mask")}  # version 4 adds segments for all
        assert ids == inputs["input_ids"][0].tolist() and len(ids) <= 64
        with torch.inference_mode():
            output = network(**inputs)
            hidden_TH = network.base_model(**inputs)[0][0]
        np.testing.assert_allclose(found["hidden"], hidden_TH, atol=1e-6)
        np.testing.assert_allclose(found["vector"], hidden_TH.mean(0), atol=1e-6)
        if not kind:
            assert "logits" not in found
            continue
        expected = output.start_logits if "start_logits" in output else output.logits
        logits = found["logits"][:, 0] if "start_logits" in output else found["logits"]
        place = ids.index(tokenizer.mask_token_id) if kind == "ForMaskedLM" else slice(None)
        np.testing.assert_allclose(logits, expected[0][place], atol=1e-6)


def test_folders_of_many_makers_are_read(tmp_path: Path) -> None:
    whole = publish(tmp_path / "whole", "bert", "ForPreTraining")
    expected = answers(whole)
    # Half precision, in several files, of an encoder without the prefix of its names, with other heads' tensors.
    network = transformers.AutoModel.from_pretrained(whole.folder)
    bare = tmp_path / "bare"
    network.half().save_pretrained(bare, max_shard_size="20KB")
    (bare / "tokenizer.json").write_bytes((whole.folder / "tokenizer.json").read_bytes())
    (bare / "tokenizer_config.json").write_bytes((whole.folder / "tokenizer_config.json").read_bytes())
    assert (bare / "model.safetensors.index.json").is_file()
    for (ids, found), (same, wanted) in zip(answers(Published(bare)), expected, strict=True):
        assert ids == same and found["hidden"].dtype == np.float32
        np.testing.assert_allclose(found["hidden"], wanted["hidden"], atol=2e-2)
    masked = tmp_path / "masked"
    masked.mkdir()
    for file in whole.folder.iterdir():
        (masked / file.name).write_bytes(file.read_bytes())
    config = json.loads((masked / "config.json").read_text())
    (masked / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    for (_, found), (_, wanted) in zip(answers(Published(masked)), expected, strict=True):
        np.testing.assert_array_equal(found["logits"], wanted["logits"])


def test_an_encoder_without_its_pooler_is_read_and_one_without_a_layer_is_not(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert")
    tensors = load_file(model.folder / "model.safetensors")
    expected = answers(model)[0][1]["hidden"]
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("pooler.")}
    save_file(kept, model.folder / "model.safetensors", {"format": "pt"})
    np.testing.assert_array_equal(answers(model)[0][1]["hidden"], expected)
    del kept["encoder.layer.1.output.dense.weight"]
    save_file(kept, model.folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ArtifactError, match=re.escape("no weights for encoder.layer.1.output.dense.weight")):
        answers(model)


def test_what_it_refuses(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert")
    (model.folder / "model.safetensors").rename(model.folder / "pytorch_model.bin")
    assert RUNTIME.refusal(model).startswith("its weights are in pytorch_model.bin, which is never read, because a")
    (model.folder / "pytorch_model.bin").unlink()
    assert "has no weights" in RUNTIME.refusal(model)
    config = {"architectures": ["OwnBertForMaskedLM"], "auto_map": {"AutoModel": "own.OwnBert"}}
    (model.folder / "config.json").write_text(json.dumps(config))
    (model.folder / "model.safetensors").touch()
    assert "no class OwnBertForMaskedLM; it needs code that comes" in RUNTIME.refusal(Published(model.folder))


def test_a_masked_model_is_asked_for_one_mask(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert", "ForMaskedLM")
    with pytest.raises(ArtifactError, match="has 2 masks in the tokens that are read; write exactly one"):
        answers(model, [f"{MASK} {MASK}"])


def test_threads_are_as_before(tmp_path: Path) -> None:
    model, before = publish(tmp_path / "hf", "bert"), torch.get_num_threads()
    with RUNTIME.open(model, model.folder, threads=before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_a_next_sentence_head_stays_readable(tmp_path: Path) -> None:
    """The folder names `BertForMaskedLM`, but has the weights of both heads."""
    of = publish_ours(tmp_path / "hf", "bert")
    assert of.published.architecture == "BertForMaskedLM"
    both = transformers.BertForPreTraining.from_pretrained(of.published.folder).eval()
    ids, parts = of.tokenizer.ids(MASK), [([2, 7, 4, 9, 3], [8, 11, 3])]
    expected = of.model(packed_sequences(parts, ids))[1]
    given = both(
        input_ids=torch.tensor([[2, 7, 4, 9, 3, 8, 11, 3]]), token_type_ids=torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1]])
    )
    torch.testing.assert_close(given.seq_relationship_logits, expected, atol=1e-5, rtol=0)
    again = Encoder(of.published.folder).model
    assert again.config.next_sentence
    torch.testing.assert_close(again(packed_sequences(parts, ids))[1], expected, atol=1e-5, rtol=0)


def test_the_programs_of_the_guide_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/wiki/export").mkdir(parents=True)
    of = publish_ours(tmp_path / "runs/wiki/export/hf", "bert")
    guide = (Path(__file__).parents[3] / "docs/how-to/run-in-transformers.md").read_text(encoding="utf-8")
    fills, vector = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    exec(fills, {})
    guesses = [line.rsplit(" ", 1) for line in capsys.readouterr().out.splitlines()]
    expected = Encoder(of.published.folder).fill_mask("The [MASK] by the river.")
    assert [float(score) for _, score in guesses] == pytest.approx([score for _, score in expected], rel=1e-3)
    there: dict[str, Any] = {}
    exec(vector, there)
    (ours,) = Encoder(of.published.folder).encode(["The mill by the river."])
    np.testing.assert_allclose(there["hidden"].mean(1)[0].detach(), ours, atol=1e-5)
    for name in re.findall(r"`(Bert\w+)`", guide):
        assert hasattr(transformers, name)


@pytest.mark.parametrize(("lower_case", "strip_accents"), [(False, False), (True, False), (True, True)])
def test_every_form_of_the_tokenizer_gives_the_ids_of_training(
    lower_case: bool, strip_accents: bool, tmp_path: Path
) -> None:
    """tokenizer.json for those that read it alone, and vocab.txt with the settings of tokenizer_config.json, which lack
    only NFC."""
    of = publish_ours(tmp_path / "hf", "bert", lower_case=lower_case, strip_accents=strip_accents)
    folder = of.published.folder
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert (settings["do_lower_case"], settings["strip_accents"]) == (lower_case, strip_accents)
    assert settings["model_max_length"] == 64
    special = json.loads((folder / "special_tokens_map.json").read_text(encoding="utf-8"))
    assert special == {name: settings[name] for name in special} and len(special) == 5
    file = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    words = transformers.BertTokenizer(str(folder / "vocab.txt"), do_lower_case=lower_case, strip_accents=strip_accents)
    composed = [line for line in LINES if unicodedata.is_normalized("NFC", line)]
    assert len(composed) == len(LINES) - 1
    for line in LINES:
        flat, _ = of.tokenizer.encode_texts([line])
        ids = [of.tokenizer.ids(CLS), *flat.tolist(), of.tokenizer.ids(SEP)]
        assert file.encode(line).ids == ids
        if line in composed:
            assert words(line, verbose=False)["input_ids"] == ids


def test_the_longest_word_is_that_of_training(tmp_path: Path) -> None:
    of = publish_ours(tmp_path / "hf", "bert", longest_word=1000)
    theirs = transformers.AutoTokenizer.from_pretrained(str(of.published.folder), local_files_only=True)
    for size in (100, 101, 1000, 1001):
        flat, _ = of.tokenizer.encode_texts(["é" * size + " É"])
        assert theirs("é" * size + " É", add_special_tokens=False, verbose=False)["input_ids"] == flat.tolist()
        assert (len(flat) == size + 1) == (size <= 1000)
