"""Imported folders answer as their sources do, say what was read, and nothing is written of what does not fit."""

import importlib
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tests.reference.tensorflow_outputs import with_vocabulary
from tests.rows import each_row
from tests.unit.export.tiny import FAMILIES, TEXTS, entries, publish

from bertwright.cli.text import fact_lines
from bertwright.core.errors import ArtifactError, BertwrightError, DataError, RecipeError
from bertwright.core.files import make_folder, sha256
from bertwright.core.log import SILENT
from bertwright.corpus.lines import open_lines
from bertwright.export.import_report import ImportFacts, summary
from bertwright.export.imported import Choices, write_imported
from bertwright.export.runtimes.hugging_face import Transformers
from bertwright.export.runtimes.runtime import Outputs, Published
from bertwright.export.sentence_modules import read_modules
from bertwright.model.importers.source import Given, read_source
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.text_encoder import load_model
from bertwright.vocab.entries import CONTINUATION, SPECIALS

HEADS = {
    "": (),
    "ForMaskedLM": (),
    "ForSequenceClassification": ("no", "yes", "igen"),
    "ForTokenClassification": ("O", "B", "I"),
    "ForQuestionAnswering": (),
    "ForMultipleChoice": (),
}
ALL, NOTHING = Choices(), Given()
MASKED = tuple(text.replace("készült", "[MASK]").replace("river", "[MASK]") for text in TEXTS[:3])


def imported(source: Path, out: Path, choices: Choices = ALL, given: Given = NOTHING) -> tuple[Published, ImportFacts]:
    found = read_source(source, given)
    facts = write_imported(make_folder(out), found, choices, read_modules(source, found.folder), SILENT)
    return Published(out), facts


def answers(model: Published, texts: tuple[str, ...] = TEXTS) -> list[Outputs]:
    """Of transformers."""
    with Transformers().open(model, model.folder, 1) as reader:
        return [reader.run(text) for text in texts]


def change(folder: Path, edit: Callable[[dict[str, Any]], None], name: str = "config.json") -> None:
    values = json.loads((folder / name).read_text(encoding="utf-8"))
    edit(values)
    (folder / name).write_text(json.dumps(values), encoding="utf-8")


@each_row("family", FAMILIES)
def test_every_head_answers_as_its_source(family: str, tmp_path: Path) -> None:
    for kind, labels in HEADS.items():
        source = publish(tmp_path / f"source{kind}", family, kind, labels)
        ours, facts = imported(source.folder, tmp_path / f"ours{kind}")
        texts = tuple(t for t in MASKED if "[MASK]" in t) if kind == "ForMaskedLM" else TEXTS
        for theirs, own in zip(answers(source, texts), answers(ours, texts), strict=True):
            assert theirs.keys() == own.keys()
            for name in theirs:
                np.testing.assert_array_equal(theirs[name], own[name], err_msg=f"{family}{kind} {name}")
        states = {part for part, about in facts["parts"].items() if about["state"] == "loaded"}
        heads = {"": set(), "ForMaskedLM": {"head for masked words"}}.get(kind, {"classifier"})
        assert states - {"encoder", "pooler"} == heads, (family, kind, states)
        assert facts["rows"]["padding"] == 0 and not facts["dropped"]
        stated = json.loads((ours.folder / "config.json").read_text(encoding="utf-8"))
        if labels:
            assert [*stated["id2label"].values()] == [*labels]
        assert (ours.folder / "modules.json").is_file() == (kind in ("", "ForMaskedLM"))


def test_both_heads_of_a_pre_training(tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForPreTraining")
    ours, facts = imported(source.folder, tmp_path / "ours")
    assert {about["state"] for part, about in facts["parts"].items() if part != "classifier"} == {"loaded"}
    ids = torch.tensor([[2, 7, 8, 4, 9, 3]])
    both = [transformers.BertForPreTraining.from_pretrained(str(each.folder)).eval() for each in (source, ours)]
    with torch.inference_mode():
        theirs, own = (model(input_ids=ids) for model in both)
    assert torch.equal(theirs.prediction_logits, own.prediction_logits)
    assert torch.equal(theirs.seq_relationship_logits, own.seq_relationship_logits)


def test_padded_rows_half_precision_and_buffers(tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM")
    expected = answers(source, MASKED[:1])[0]["logits"]
    rows, tensors = len(entries()), load_file(source.folder / "model.safetensors")
    padded = -(-(rows + 1) // 8) * 8
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
        filler = tensors[name].new_full((padded - rows, *tensors[name].shape[1:]), 5.0)
        tensors[name] = torch.cat([tensors[name], filler])
    tensors |= {"bert.embeddings.position_ids": torch.arange(64)[None]}
    tensors = {name.replace("LayerNorm.weight", "LayerNorm.gamma"): tensor for name, tensor in tensors.items()}
    save_file(
        {n: t.half() if t.is_floating_point() else t for n, t in tensors.items()}, source.folder / "model.safetensors"
    )
    ours, facts = imported(source.folder, tmp_path / "ours")
    assert facts["rows"] == {"read": padded, "padding": padded - rows}
    assert facts["left_out"] == {"position_ids": 1} and facts["source"]["precision"] == ["float16"]
    assert load_file(ours.folder / "model.safetensors")["cls.predictions.bias"].dtype == torch.float32
    (own,) = answers(ours, MASKED[:1])
    assert own["logits"].shape == (rows,)
    np.testing.assert_allclose(own["logits"], expected, atol=0.05)
    assert "belong to no entry" in str(summary(facts)["rows"])


def test_unneeded_entries_are_removed(tmp_path: Path) -> None:
    for family in FAMILIES:
        for kind in ("ForMaskedLM", "", "ForTokenClassification"):
            source = publish(tmp_path / f"{family}{kind}", family, kind, ("a", "b"))
            texts = tmp_path / "texts.txt"
            texts.write_text("\n".join(MASKED[:1] * 60), encoding="utf-8")
            choices = Choices(texts=open_lines([texts]))
            ours, facts = imported(source.folder, tmp_path / f"{family}{kind} fewer", choices)
            kept = (ours.folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
            assert len(kept) < len(entries()) and set(SPECIALS) < set(kept)
            assert facts["removed"]["entries_after"] == len(kept) and not facts["removed"]["changed_tokens"]
            (theirs,), (own,) = answers(source, MASKED[:1]), answers(ours, MASKED[:1])
            np.testing.assert_array_equal(theirs["hidden"], own["hidden"])
            if kind == "ForMaskedLM":
                places = [entries().index(entry) for entry in kept]
                np.testing.assert_allclose(theirs["logits"][places], own["logits"], rtol=0, atol=1e-6)
            assert facts["removed"]["parameters_before"] - facts["removed"]["parameters_after"] == (
                len(entries()) - len(kept)
            ) * (32 + (kind == "ForMaskedLM"))
            assert (
                facts["removed"]["parameters_after"]
                == facts["parameters"]
                == sum(tensor.numel() for tensor in load_file(ours.folder / "model.safetensors").values())
            )


def test_at_most_so_many_entries(tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    texts = open_lines([tmp_path / "texts.txt"])
    singles = sum(len(entry.removeprefix(CONTINUATION)) == 1 for entry in entries())
    _, facts = imported(
        source.folder, tmp_path / "ours", Choices(texts=texts, most_entries=len(SPECIALS) + singles + 3)
    )
    removed = facts["removed"]
    assert removed["entries_after"] == len(SPECIALS) + singles + 3 and 0 < removed["changed_tokens"] < removed["tokens"]
    assert "are entries that are gone" in str(summary(facts)["these texts"])
    with pytest.raises(RecipeError, match="--entries 6 has no room"):
        imported(source.folder, tmp_path / "too few", Choices(texts=texts, most_entries=6))


def test_the_source_and_its_licence_are_recorded(tmp_path: Path) -> None:
    source = publish(tmp_path / "models--owner--name" / "snapshot", "bert")
    card = '---\nlanguage: hu\nlicense: "cc-by-sa-4.0"  # of the texts\ntags:\n- bert\n---\n# A model\n'
    (source.folder / "README.md").write_text(card, encoding="utf-8")
    (source.folder / "LICENSE").write_text("a licence", encoding="utf-8")
    ours, facts = imported(source.folder, tmp_path / "ours")
    assert (facts["source"]["name"], facts["source"]["licence"]) == ("owner/name", "cc-by-sa-4.0")
    named = {file["name"]: file["sha256"] for file in facts["source"]["files"]}
    assert named["model.safetensors"] == sha256(source.folder / "model.safetensors") and "config.json" in named
    assert (ours.folder / "README.md").read_text(encoding="utf-8") == card and (ours.folder / "LICENSE").is_file()
    assert json.loads((ours.folder / "import.json").read_text(encoding="utf-8")) == facts
    _, facts = imported(source.folder, tmp_path / "other", Choices(licence="mit"))
    assert facts["source"]["licence"] == "mit"
    for line in fact_lines(summary(facts), 80):
        assert len(line) <= 80, line


def test_modules_of_sentence_transformers_are_kept(tmp_path: Path) -> None:
    sentences = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    parts = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    source = publish(tmp_path / "network", "bert")
    network = parts.Transformer(str(source.folder))
    pooling = parts.Pooling(32, pooling_mode="cls")
    dense = parts.Dense(32, 8)
    whole = sentences.SentenceTransformer(
        modules=[network, pooling, dense, parts.Normalize()], prompts={"query": "ask: "}, device="cpu"
    )
    whole.save(str(tmp_path / "whole"))
    ours, facts = imported(tmp_path / "whole", tmp_path / "ours")
    assert facts["modules"] == ["Pooling", "Dense", "Normalize"]
    again = sentences.SentenceTransformer(str(ours.folder), device="cpu")
    assert again.prompts["query"] == "ask: "
    for options in ({}, {"prompt_name": "query"}):
        np.testing.assert_array_equal(whole.encode([*TEXTS], **options), again.encode([*TEXTS], **options))


@each_row(
    ("edit", "message"),
    [
        ([{"type": "sentence_transformers.models.Transformer", "path": "../up"}], "not a folder beside it"),
        ([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}], "first"),
        ([{"type": "x.Transformer", "path": ""}, {"type": "x.LSTM", "path": "1"}], "LSTM"),
        ([{"type": "x.Transformer", "path": ""}, {"type": "x.Dense", "path": "2_Dense"}], "cannot read"),
        ({}, "no list of modules"),
    ],
)
def test_damaged_modules_are_refused(edit: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(json.dumps(edit), encoding="utf-8")
    with pytest.raises(ArtifactError, match=message):
        read_modules(tmp_path, tmp_path)


def drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def text(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content, encoding="utf-8") and None


def config(**values: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder, lambda stated: stated.update(values))


def more_rows(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    name = "bert.embeddings.word_embeddings.weight"
    tensors[name] = torch.cat([tensors[name], tensors[name][:9]])
    save_file(tensors, folder / "model.safetensors")


def without_tensor(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["bert.encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors")


def five_entries(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in SPECIALS), encoding="utf-8")


def two_vocabularies(folder: Path) -> None:
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries()[::-1]), encoding="utf-8")


def no_case(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries()), encoding="utf-8")


def wrong_case(folder: Path) -> None:
    no_case(folder)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")


def in_codes(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.1.output.dense.weight"
    save_file(tensors | {name: (tensors[name] * 100).to(torch.int8)}, folder / "model.safetensors")


def half(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


@each_row(
    ("damage", "kind", "message"),
    [
        (drop("config.json"), RecipeError, "--config FILE"),
        (text("config.json", "{"), RecipeError, "cannot read the model configuration"),
        (text("config.json", "[" * 100_000), RecipeError, "cannot read the model configuration"),
        (config(model_type="gpt2"), RecipeError, "gpt2"),
        (config(hidden_size=64), ArtifactError, "is not the BERT"),
        (config(position_embedding_type="relative_key"), RecipeError, "position_embedding_type"),
        (config(tie_word_embeddings=False), RecipeError, "tie_word_embeddings"),
        (config(architectures=["BertForTokenClassification"]), ArtifactError, "no classifier"),
        (drop("tokenizer.json"), RecipeError, "--vocab FILE"),
        (text("tokenizer.json", "{}"), DataError, "tokenizer.json"),
        (more_rows, ArtifactError, "no rounding up"),
        (five_entries, ArtifactError, "5 entries, all of them special"),
        (two_vocabularies, ArtifactError, "two vocabularies"),
        (no_case, RecipeError, "suggests --cased"),
        (wrong_case, ArtifactError, "could never occur"),
        (without_tensor, ArtifactError, "feed_forward.output.weight is absent"),
        (in_codes, ArtifactError, "output.dense.weight is int8: the network is quantised"),
        (half, ArtifactError, "not a complete safetensors file"),
        (drop("model.safetensors"), ArtifactError, "no weights"),
    ],
)
def test_what_does_not_fit_is_refused(
    damage: Callable[[Path], None], kind: type[BertwrightError], message: str, tmp_path: Path
) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM").folder
    damage(source)
    with pytest.raises(kind, match=message):
        read_source(source)


def test_what_the_source_does_not_say_is_given(tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM").folder
    expected = answers(Published(source), MASKED[:1])
    beside = make_folder(tmp_path / "beside")
    for name in ("config.json", "tokenizer.json"):
        (source / name).rename(beside / name)
    (source / "tokenizer_config.json").unlink()
    given = Given(beside / "config.json", beside / "tokenizer.json")
    ours, facts = imported(source / "model.safetensors", tmp_path / "ours", given=given)  # the file alone
    np.testing.assert_array_equal(expected[0]["logits"], answers(ours, MASKED[:1])[0]["logits"])
    with pytest.raises(RecipeError, match="--cased has no effect"):
        read_source(source, Given(beside / "config.json", beside / "tokenizer.json", lower_case=False))
    (beside / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries()), encoding="utf-8")
    (beside / "tokenizer.json").unlink()
    found = read_source(source, Given(beside / "config.json", beside / "vocab.txt", lower_case=False))
    assert not any(found.settings[:2]) and found.entries == entries()
    assert facts["architecture"] == "BertForMaskedLM"


def test_unknown_tensors_are_named(tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM").folder
    tensors = load_file(source / "model.safetensors")
    save_file(tensors | {"adapter.weight": torch.zeros(3)}, source / "model.safetensors")
    found = read_source(source)
    assert found.unknown == ["adapter.weight"]
    ours, facts = imported(source, tmp_path / "ours")
    assert facts["dropped"] == ["adapter.weight"]
    assert load_file(ours.folder / "model.safetensors").keys() == tensors.keys()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_no_numbers_are_refused(value: float, tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM").folder
    tensors = load_file(source / "model.safetensors")
    tensors["bert.encoder.layer.1.output.dense.weight"][0, :2] = value
    save_file(tensors, source / "model.safetensors")
    for use in (lambda: imported(source, tmp_path / "ours"), lambda: load_model(source)):
        with pytest.raises(ArtifactError, match=r"output.dense.weight' has 2 values that are infinite or not a number"):
            use()


def test_codes_of_a_quantised_network_are_no_start(tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM").folder
    in_codes(source)
    with pytest.raises(ArtifactError, match="is int8: the network is quantised"):
        _ = read_pretrained(source).tensors


def test_a_decoder_of_its_own_is_refused(tmp_path: Path) -> None:
    source = publish(tmp_path / "source", "bert", "ForMaskedLM").folder
    tensors = load_file(source / "model.safetensors")
    name = "cls.predictions.decoder.weight"
    copy = tensors["bert.embeddings.word_embeddings.weight"].clone()
    save_file(tensors | {name: copy}, source / "model.safetensors")
    _, facts = imported(source, tmp_path / "equal")
    assert "copy is equal" in facts["tied_decoder"]
    copy[3, 3] += 1
    save_file(tensors | {name: copy}, source / "model.safetensors")
    with pytest.raises(ArtifactError, match="tied decoder"):
        imported(source, tmp_path / "other")


def test_a_checkpoint_of_google_answers_as_its_program_did(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "tensorflow"
    source = with_vocabulary(Path(shutil.copytree(golden / "google", tmp_path / "google")))
    with pytest.raises(RecipeError, match="lower-case"):
        read_source(source)
    ours, facts = imported(source, tmp_path / "ours", given=Given(lower_case=True))
    assert facts["source"]["kind"] == "TensorFlow checkpoint" and "moments of the optimizer" in facts["left_out"]
    inputs, outputs = np.load(golden / "inputs.npz"), np.load(golden / "google" / "outputs.npz")
    network = transformers.BertForPreTraining.from_pretrained(str(ours.folder)).eval()
    ids, mask, segments = (torch.from_numpy(inputs[name]).long() for name in ("ids", "mask", "segments"))
    with torch.inference_mode():
        found = network(input_ids=ids, attention_mask=mask, token_type_ids=segments, output_hidden_states=True)
    real = inputs["mask"] == 1
    np.testing.assert_allclose(found.hidden_states[-1].numpy()[real], outputs["hidden"][real], atol=1e-5)
    np.testing.assert_allclose(found.seq_relationship_logits.log_softmax(1).numpy(), outputs["next"], atol=1e-5)
