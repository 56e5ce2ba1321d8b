"""sentence-transformers as a runtime: its vectors are the mean of the hidden states, as ours and as of transformers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.export.tiny import FAMILIES, TEXTS, publish, publish_ours

from bertwright.export.runtimes.hugging_face import Transformers
from bertwright.export.runtimes.runtime import Published
from bertwright.export.runtimes.sentence_transformers import SentenceTransformers
from bertwright.model.family import Head
from bertwright.model.text_encoder import Encoder

pytestmark = pytest.mark.heavy
sentence_transformers = pytest.importorskip("sentence_transformers", reason="the extra 'sentence-transformers'")

RUNTIME, REFERENCE = SentenceTransformers(), Transformers()
LINES = (*(f"[MASK] {text}" for text in TEXTS), "a\u0301rvi\u0301z [MASK]", "[MASK] " + "Duna " * 90)


def agree(model: Published, names: set[str]) -> None:
    """Equal ids, and numbers to 1e-5, of all lines; of the outputs called `names`, which are all."""
    assert RUNTIME.missing() == RUNTIME.refusal(model) == ""
    with RUNTIME.open(model, model.folder, 1) as given, REFERENCE.open(model, model.folder, 1) as expected:
        for line in LINES:
            assert given.ids(line) == expected.ids(line)
            found, wanted = given.run(line), expected.run(line)
            assert set(found) == names
            for name in found:
                np.testing.assert_allclose(found[name], wanted[name], atol=1e-5, err_msg=f"{name} of {line!r}")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lower_case", [False, True])
def test_vectors_of_an_exported_folder(family: str, lower_case: bool, tmp_path: Path) -> None:
    of = publish_ours(tmp_path / "hf", family, lower_case=lower_case, strip_accents=lower_case)
    agree(of.published, {"hidden", "vector"})
    model = sentence_transformers.SentenceTransformer(str(of.published.folder), device="cpu")
    assert (model.max_seq_length, model.similarity_fn_name, model.prompts) == (
        64,
        "cosine",
        {"document": "", "query": ""},
    )
    assert model[1].pooling_mode == "mean" and not model[0].do_lower_case
    texts = [*LINES, "", " \u00ad", "A"]
    ours = Encoder(of.published.folder).encode(texts)
    np.testing.assert_allclose(model.encode(texts, batch_size=4), ours, atol=1e-5)


@pytest.mark.parametrize("head", ["sequence", "several"])
def test_scores_of_a_classifier(head: Head, tmp_path: Path) -> None:
    for family in FAMILIES:
        of = publish_ours(tmp_path / family, family, head)
        assert not (of.published.folder / "modules.json").exists(), "its head would be dropped"
        agree(of.published, {"logits"})


def test_heads_that_it_has_not_are_refused(tmp_path: Path) -> None:
    of = publish_ours(tmp_path / "hf", "bert", "token")
    assert RUNTIME.refusal(of.published) == (
        "it computes vectors and scores of texts, and has no class for a BertForTokenClassification"
    )


def test_folders_of_strangers(tmp_path: Path) -> None:
    """Without a word on pooling it is the mean; where another vector is asked for, it is not compared with the mean."""
    plain = publish(tmp_path / "plain", "bert", "ForPreTraining", lower_case=True)
    agree(plain, {"hidden", "vector"})
    model = sentence_transformers.SentenceTransformer(str(plain.folder), device="cpu")
    model[1].pooling_mode = "cls"
    model.save(str(tmp_path / "cls"), create_model_card=False)
    agree(Published(tmp_path / "cls"), {"hidden"})
    (plain.folder / "model.safetensors").rename(plain.folder / "pytorch_model.bin")
    assert "pytorch_model.bin, which is never read" in RUNTIME.refusal(plain)


def test_what_it_saves_has_the_same_vectors(tmp_path: Path) -> None:
    of = publish_ours(tmp_path / "hf", "modernbert")
    model = sentence_transformers.SentenceTransformer(str(of.published.folder), device="cpu")
    model.save(str(tmp_path / "saved"), create_model_card=False)
    again = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_array_equal(again.encode(list(LINES)), model.encode(list(LINES)))


def test_the_files_are_those_that_older_programs_read(tmp_path: Path) -> None:
    folder = publish_ours(tmp_path / "hf", "distilbert").published.folder
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert [name for name, value in pooling.items() if value is True] == ["pooling_mode_mean_tokens"]
    assert pooling["word_embedding_dimension"] == 32 and pooling["pooling_mode_cls_token"] is False
    modules = json.loads((folder / "modules.json").read_text())
    assert [(each["idx"], each["path"], each["type"].rpartition(".")[2]) for each in modules] == [
        (0, "", "Transformer"),
        (1, "1_Pooling", "Pooling"),
    ]
    assert json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"] == 64


def test_the_programs_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, head in (("wiki", None), ("reviews", "sequence")):
        (tmp_path / "runs" / name / "export").mkdir(parents=True)
        publish_ours(tmp_path / "runs" / name / "export/hf", "bert", head)  # type: ignore[arg-type]
    guide = (Path(__file__).parents[3] / "docs/how-to/run-in-sentence-transformers.md").read_text(encoding="utf-8")
    vectors, classes = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    there: dict[str, Any] = {}
    exec(vectors, there)
    assert there["model"].similarity(there["vectors"], there["vectors"]).shape == (3, 3)
    exec(classes, there)
    for file in re.findall(r"^\| `([\w/.]+)` \|", guide, re.MULTILINE):
        assert (tmp_path / "runs/wiki/export/hf" / file).is_file()
        assert not (tmp_path / "runs/reviews/export/hf" / file).exists()


def test_a_folder_that_reads_less_than_its_network_could(tmp_path: Path) -> None:
    model = publish(tmp_path / "model", "bert")
    (model.folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8}', encoding="utf-8")
    runtime = SentenceTransformers()
    assert runtime.explain(model, TEXTS[0] * 2).startswith("sentence_bert_config.json says that at most 8 tokens")
    assert not runtime.explain(model, "Duna")
