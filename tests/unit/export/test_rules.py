"""What servers would do with folders of all makers, by the rules in their sources; each row says what must be said."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from tests.unit.export.tiny import FAMILIES, publish, publish_ours

from bertwright.export.runtimes.rules import Loading, loadings
from bertwright.export.runtimes.runtime import Published

pytestmark = pytest.mark.heavy
TEI, VLLM, CANDLE = "text-embeddings-inference", "vLLM", "candle"


def by_program(folder: Path) -> dict[str, Loading]:
    found = {each.program: each for each in loadings(Published(folder))}
    assert set(found) == {TEI, VLLM, CANDLE} and all(each.version and each.sentence for each in found.values())
    return found


def changed(folder: Path, name: str, **values: Any) -> None:
    """Change keys of a JSON file; None removes one."""
    path = folder / name
    content = {**json.loads(path.read_text(encoding="utf-8")), **values}
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exported_folder_loads_and_its_vector_is_the_mean(family: str, tmp_path: Path) -> None:
    found = by_program(publish_ours(tmp_path / "hf", family).published.folder)
    assert found[TEI].loads and "its vector is the mean of all tokens" in found[TEI].sentence
    assert ("--pooling splade" in found[TEI].sentence) is (family != "modernbert")
    assert found[CANDLE].loads and found[CANDLE].sentence.startswith("loads; its program chooses the vector")
    assert found[VLLM].loads is (family == "bert")
    said = {
        "bert": '\'{"architectures": ["BertModel"]}\', whose vector is the mean of all tokens',
        "modernbert": "registers no ModernBertForMaskedLM; for vectors serve it with --hf-overrides "
        '\'{"architectures": ["ModernBertModel"]}\'',
        "distilbert": "it has no DistilBERT of its own",
    }
    assert said[family] in found[VLLM].sentence


@pytest.mark.parametrize("family", FAMILIES)
def test_an_exported_classifier(family: str, tmp_path: Path) -> None:
    found = by_program(publish_ours(tmp_path / "texts", family, "sequence").published.folder)
    assert found[TEI].loads and found[TEI].sentence.startswith("loads as a classifier of texts;")
    assert found[VLLM].loads is (family != "distilbert")
    assert not found[CANDLE].loads
    tagger = by_program(publish_ours(tmp_path / "tokens", family, "token").published.folder)
    assert tagger[TEI].loads and "answers for [CLS] alone, not for each token" in tagger[TEI].sentence
    if family != "distilbert":
        assert tagger[VLLM] == Loading(VLLM, tagger[VLLM].version, True, "loads as a classifier of tokens")


def test_heads_without_a_class_are_dropped_or_refused(tmp_path: Path) -> None:
    found = by_program(publish_ours(tmp_path / "hf", "bert", "span").published.folder)
    assert found[TEI].loads and found[TEI].sentence.startswith("loads its encoder alone, but its vector is the state")
    assert found[VLLM].sentence == "it registers no BertForQuestionAnswering"
    assert found[CANDLE].sentence == "it has no BertForQuestionAnswering"


def test_folders_that_transformers_writes(tmp_path: Path) -> None:
    found = by_program(publish(tmp_path / "pairs", "bert", "ForPreTraining").folder)
    assert "its vector is the state of [CLS]: without 1_Pooling/config.json" in found[TEI].sentence
    assert "splade" not in found[TEI].sentence, "its class does not end with MaskedLM"
    assert not found[VLLM].loads and found[VLLM].sentence.startswith("it registers no BertForPreTraining; for vectors")
    found = by_program(publish(tmp_path / "encoder", "bert").folder)
    assert "its vector is the state of [CLS], because no modules.json" in found[VLLM].sentence
    modern = publish(tmp_path / "modern", "modernbert").folder
    changed(modern, "config.json", global_rope_theta=None, rope_parameters={})
    for program in (TEI, CANDLE):
        said = by_program(modern)[program]
        assert not said.loads and "lacks" in said.sentence and "rope_parameters in their place" in said.sentence


def test_what_sentence_transformers_6_saves(tmp_path: Path) -> None:
    package = pytest.importorskip("sentence_transformers", reason="the extra 'sentence-transformers'")
    model = package.SentenceTransformer(str(publish_ours(tmp_path / "hf", "bert").published.folder), device="cpu")
    saved = tmp_path / "saved"
    model.save(str(saved), create_model_card=False)
    found = by_program(saved)
    assert not found[TEI].loads and "no max_seq_length" in found[TEI].sentence
    changed(saved, "sentence_bert_config.json", max_seq_length=64)
    assert "lacks pooling_mode_cls_token" in by_program(saved)[TEI].sentence
    assert "the state of [CLS], because no modules.json that it understands" in found[VLLM].sentence


def test_bad_folders_say_what_is_wrong(tmp_path: Path) -> None:
    folder = publish_ours(tmp_path / "hf", "bert").published.folder
    pooling = folder / "1_Pooling" / "config.json"
    changed(folder, "1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_max_tokens=True)
    assert by_program(folder)[TEI].sentence == "it has no pooling max_tokens"
    changed(folder, "1_Pooling/config.json", pooling_mode_max_tokens=False, pooling_mode_cls_token=True)
    assert "its vector is the state of [CLS]" in by_program(folder)[TEI].sentence
    pooling.write_text("{")
    assert not by_program(folder)[TEI].loads and f"cannot read {pooling}" in by_program(folder)[TEI].sentence
    pooling.unlink()
    changed(folder, "config.json", pad_token_id=None)
    for program in (TEI, CANDLE):
        assert by_program(folder)[program].sentence == "config.json lacks pad_token_id, which it requires"
    changed(folder, "config.json", pad_token_id=0, hidden_act="mish")
    assert by_program(folder)[TEI].sentence == "it has no activation 'mish'"
    (folder / "tokenizer.json").rename(folder / "other.json")
    assert "has no tokenizer.json" in by_program(folder)[TEI].sentence
    assert by_program(folder)[VLLM].loads
    changed(folder, "config.json", model_type="electra")
    assert {each.loads for each in loadings(Published(folder))} == {False}


def test_weights_of_other_names_or_none(tmp_path: Path) -> None:
    folder = publish_ours(tmp_path / "hf", "modernbert").published.folder
    tensors = load_file(folder / "model.safetensors")
    bare = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    save_file(bare, folder / "model.safetensors", {"format": "pt"})
    assert by_program(folder)[TEI].loads
    assert by_program(folder)[CANDLE].sentence == "its weights have no model.embeddings.tok_embeddings.weight"
    other = {name.replace("embeddings", "table"): tensor for name, tensor in bare.items()}
    save_file(other, folder / "model.safetensors", {"format": "pt"})
    assert by_program(folder)[TEI].sentence == (
        "its weights have no embeddings.tok_embeddings.weight or model.embeddings.tok_embeddings.weight"
    )
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert by_program(folder)[TEI].loads and by_program(folder)[CANDLE].sentence == "it has no weights in safetensors"


def test_a_modernbert_says_how_many_classes_it_has(tmp_path: Path) -> None:
    folder = publish_ours(tmp_path / "hf", "modernbert", "sequence").published.folder
    assert json.loads((folder / "config.json").read_text())["num_labels"] == 3
    changed(folder, "config.json", num_labels=None)
    assert "does not say num_labels = 3" in by_program(folder)[TEI].sentence


def test_the_guide_says_what_the_rules_say(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / "docs/how-to/run-in-servers.md").read_text(encoding="utf-8")
    for family in FAMILIES:
        for each in loadings(publish_ours(tmp_path / family, family).published):
            assert f"{each.program} {each.version}" in guide
            for override in re.findall(r"'\{.*?\}'", each.sentence):
                assert override in guide
    assert "BertForPreTraining" not in guide
