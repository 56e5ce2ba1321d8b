"""A certificate: runtimes that agree, and each way in which one does not, on folders of real networks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from tests.unit.export.conftest import _bert
from tests.unit.export.test_families import distilbert, modern
from tests.warm import _runtimes as _runtimes
from tests.warm import warm_runtimes as warm_runtimes

from bertwright.core.errors import DataError, MissingExtraError, RecipeError
from bertwright.core.files import make_folder
from bertwright.export.certify.compare import Texts, compare_ids, difference, differing_ids, same_first
from bertwright.export.certify.lines import LINES, NASTY, Lines, read_lines, vocabulary_lines, with_mask
from bertwright.export.certify.run import certify
from bertwright.export.certify.shapes import SHAPE, Certificate, Row
from bertwright.export.certify.table import HEAD, cells, certificate_section, explanations
from bertwright.export.config import Format, unwritable
from bertwright.export.folder import write_hf_folder
from bertwright.export.runtimes.members import RUNTIMES, runtime_named
from bertwright.export.runtimes.runtime import Published
from bertwright.model.model import build_model
from bertwright.model.saved import load_network
from bertwright.page.markup import markdown
from bertwright.vocab.load import read_vocabulary

warm = pytest.mark.usefixtures("warm_runtimes")
"""All but `test_runtimes_that_agree`, whose processes are new ones as they are for users."""
TEXTS = ("Az árvíztűrő tükörfúrógép Győrben készült.", "The river flows through the old town.")


@pytest.fixture
def folder(tmp_path: Path, trained: Callable[..., Any]) -> Path:
    """A published BERT with a next-sentence head."""
    made = trained()
    hf = make_folder(tmp_path / "published" / "hf")
    write_hf_folder(hf, load_network(made.train.path / "model"), made.vocab)
    return hf


def rows_of(certificate: Certificate) -> dict[str, Row]:
    return {row["runtime"]: row for row in certificate["rows"]}


def test_runtimes_that_agree(folder: Path) -> None:
    names = [name for name in ("sentence-transformers", "onnx") if not runtime_named(name).missing()]
    if not names:
        pytest.skip("neither sentence-transformers nor ONNX Runtime is installed")
    certificate = certify(folder, Lines("these", TEXTS), names)
    assert SHAPE.validate_python(json.loads(json.dumps(certificate))) == certificate
    rows = rows_of(certificate)
    assert list(rows) == ["transformers", *names]
    for name in names:
        row = rows[name]
        assert (row["status"], row["why"]) == ("agrees", ""), row
        assert row["lines"] == row["compared"] == len(NASTY) + len(TEXTS) and row["other_ids"] == 0
        assert all(each["largest"] <= 1e-5 and each["cosine"] > 0.99999 for each in row["outputs"].values())
        assert row["same_first"] == 1 and row["milliseconds"] > 0
    assert rows["transformers"]["status"] == "reference" and not rows["transformers"]["other_ids"]
    table = markdown(certificate_section(certificate))
    (note,) = explanations(certificate)
    assert "transformers" in table and note.startswith("Words behind [MASK] that are the best guess")
    assert all(len(cells(row)) == len(HEAD) for row in certificate["rows"])


@warm
def test_each_way_in_which_a_runtime_answers_otherwise(folder: Path) -> None:
    names = ("sentence-transformers", "onnx", "static")
    if missing := [why for name in names if (why := runtime_named(name).missing())]:
        pytest.skip(missing[0])
    # A model whose texts are lower-cased before its tokenizer, a network of other weights, and a file that is no model.
    settings = folder / "sentence_bert_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"do_lower_case": True}))
    runtime_named("onnx").write(Published(folder), make_folder(folder / "onnx"))
    _change_weights(folder)
    (folder / "static").mkdir()
    (folder / "static/model.safetensors").write_bytes(b"no model")
    certificate = certify(folder, Lines("these", TEXTS), names)
    cut, other, none = (rows_of(certificate)[name] for name in names)
    assert cut["status"] == "differs" and 0 < cut["other_ids"] < cut["lines"]
    assert cut["compared"] == cut["lines"] - cut["other_ids"], "texts that are read alike are still compared"
    assert all(each["largest"] <= 1e-5 for each in cut["outputs"].values())
    example = cut["examples"][0]
    assert example["given"] != example["expected"] and "cut at" not in example["reason"]
    assert other["status"] == "differs" and "differ by" in other["why"] and other["other_ids"] == 0
    assert none["status"] == "failed" and none["why"] and "outputs" not in none
    notes = "\n".join(explanations(certificate))
    assert repr(example["text"]) in notes and none["why"] in notes and other["why"] in notes


@pytest.mark.parametrize("text", [*NASTY, "", "word", "漢字だけの文", "a" * 300 + " b c d"])
def test_every_line_has_one_mask_that_cutting_does_not_lose(text: str) -> None:
    for positions in (16, 64, 512):
        masked, replaced = with_mask(text, positions)
        assert masked.replace("[MASK]", replaced) == text.replace("[MASK]", " ")
        assert masked.count("[MASK]") == 1 and masked.index("[MASK]") <= min(41, positions // 2)


def test_lines_of_a_vocabulary_meet_words_and_their_ends() -> None:
    lines = vocabulary_lines(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fa", "kapu", "##ban", "##hoz"])
    assert lines == vocabulary_lines(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fa", "kapu", "##ban", "##hoz"])
    assert len(lines.texts) == LINES and all(5 <= len(line.split()) <= 30 for line in lines.texts)
    assert {word for line in lines.texts for word in line.split()} == {
        begin + end for begin in ("fa", "kapu") for end in ("", "ban", "hoz")
    }


def test_a_file_of_lines(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("first\n\n  \nwith\u2028separator\x85inside\nlast", encoding="utf-8")
    assert read_lines(tmp_path / "lines.txt").texts == ("first", "with\u2028separator\x85inside", "last")
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(DataError, match="no lines"):
        read_lines(tmp_path / "empty.txt")


def test_differences_are_those_of_numpy() -> None:
    random = np.random.default_rng(0)
    expected = [random.normal(size=(n, 4)).astype(np.float32) * 5 for n in (2, 3)]
    given = [each + random.normal(size=each.shape).astype(np.float32) * 1e-3 for each in expected]
    flat = [np.concatenate([each.ravel() for each in of]).astype(np.float64) for of in (expected, given)]
    found, scale = difference(expected, given), np.abs(flat[0]).max()
    assert found["largest"] == pytest.approx(np.abs(flat[0] - flat[1]).max() / scale)
    assert found["mean"] == pytest.approx(np.abs(flat[0] - flat[1]).mean() / scale)
    cosines = [
        float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())) for a, b in zip(expected, given, strict=True)
    ]
    assert found["cosine"] == pytest.approx(np.mean(cosines), rel=1e-6)
    scores = [np.array([value], np.float32) for value in (0.01, -2.0, 3.0)]
    assert difference(scores, [scores[0] - 0.02, *scores[1:]])["cosine"] > 0.999, "one sign among three numbers"
    with pytest.raises(DataError, match="shape"):
        difference(expected, expected[::-1])
    assert differing_ids([[1, 2], [3]], [[1, 2], [4]]) == [1]


def test_the_same_best_answer_by_head() -> None:
    rows = [np.array([0.1, 0.9], np.float32), np.array([0.8, 0.3], np.float32)]
    flipped = [rows[0], rows[1][::-1]]
    assert same_first("sequence", {"logits": rows}, {"logits": rows}) == 1
    assert same_first("masked", {"logits": rows}, {"logits": flipped}) == 0.5
    spans = [np.array([[0.1, 0.9], [0.8, 0.3]], np.float32)]
    assert same_first("span", {"logits": spans}, {"logits": [spans[0][:, ::-1]]}) == 0
    assert same_first("token", {"logits": spans}, {"logits": [np.array([[0, 1], [0, 1]], np.float32)]}) == 0.5
    assert same_first("sequence", {"logits": [np.ones(1, np.float32)]}, {"logits": [np.ones(1, np.float32)]}) is None
    near = [np.array(v, np.float32) for v in ([1, 0], [1, 0.1], [0, 1], [0.1, 1])]
    own = [np.array(v, np.float32) for v in ([5, 5, 0], [5, 4, 0], [0, 0, 5], [0, 1, 5])]
    assert same_first("encoder", {"vector": near}, {"own": own}) == 1


def test_a_runtime_that_is_not_installed_is_named_before_any_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        type(runtime_named("static")), "missing", lambda _: "model2vec is not installed: pip install it"
    )
    with pytest.raises(MissingExtraError, match="model2vec"):
        certify(folder, Lines("these", TEXTS), ["static"])
    with pytest.raises(RecipeError, match="no runtime 'abacus'"):
        certify(folder, Lines("these", TEXTS), ["abacus"])


@warm
def test_what_lacks_a_part_is_not_tried_and_the_others_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp's converter comes with no package."""
    gguf, f16 = runtime_named("gguf"), runtime_named("gguf-f16")
    if missing := gguf.missing():
        pytest.skip(missing)
    monkeypatch.setenv("LLAMA_CPP", "nowhere")
    chosen = ("transformers", "sentence-transformers", "gguf", "gguf-f16")
    monkeypatch.setattr("bertwright.export.certify.run.RUNTIMES", tuple(runtime_named(name) for name in chosen))
    certificate = certify(folder, Lines("these", TEXTS))
    rows = rows_of(certificate)
    assert rows["sentence-transformers"]["status"] == "agrees"
    assert [rows[name]["status"] for name in chosen[2:]] == ["missing"] * 2
    assert cells(rows["gguf"])[-1] == "not tried"
    notes = [note for note in explanations(certificate) if "LLAMA_CPP=nowhere is no llama.cpp" in note]
    assert len(notes) == 1 and notes[0].startswith(f"{gguf.title}; {f16.title}: ")
    assert "nowhere" not in markdown(certificate_section(certificate)), "a card is not about this machine"
    with pytest.raises(MissingExtraError, match="LLAMA_CPP=nowhere is no llama.cpp"):
        certify(folder, Lines("these", TEXTS), ["gguf"])
    (make_folder(folder / gguf.folder) / gguf.file).write_bytes(b"no model")
    assert rows_of(certify(folder, Lines("these", TEXTS), ["gguf"]))["gguf"]["status"] == "failed", "written already"


def test_each_format_of_a_recipe_is_written_by_a_runtime_of_that_name() -> None:
    assert set(get_args(Format)) == {runtime.name for runtime in RUNTIMES if runtime.reads == runtime.name}
    places = [(runtime.folder, runtime.file) for runtime in RUNTIMES if runtime.reads == runtime.name]
    assert len(set(places)) == len(places), "two runtimes write the same file"
    assert all(runtime_named(runtime.reads).reads == runtime.reads for runtime in RUNTIMES if runtime.reads)


def _change_weights(published: Path) -> None:
    from safetensors.numpy import load_file, save_file

    file = published / "model.safetensors"
    tensors = load_file(file)
    tensors["bert.embeddings.LayerNorm.weight"] = tensors["bert.embeddings.LayerNorm.weight"] * 1.01
    save_file(tensors, file, {"format": "pt"})


@warm
def test_servers_that_cannot_be_run_are_shown_by_their_rules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertwright.export.certify.run.RUNTIMES", (runtime_named("transformers"),))
    certificate = certify(folder, Lines("these", TEXTS))
    assert SHAPE.validate_python(json.loads(json.dumps(certificate))) == certificate
    rows = rows_of(certificate)
    assert list(rows) == ["transformers", "text-embeddings-inference", "vLLM", "candle"]
    for row in list(rows.values())[1:]:
        assert row["status"] == "loads" and "outputs" not in row and "milliseconds" not in row
        assert row["why"].startswith("not run; by the rules in its sources: loads") and row["version"]
        assert cells(row)[-1] == "by rules" and set(cells(row)[1:-1]) == {""}
    assert "vector is the mean of all tokens" in markdown(certificate_section(certificate))


@pytest.mark.parametrize("labels", [(), ("O", "B-PER", "I-PER"), ("good", "bad")], ids=["masked", "token", "sequence"])
@pytest.mark.parametrize("family", ["bert", "distilbert", "modern"])
def test_a_recipe_is_refused_for_the_formats_that_refuse_its_network(
    family: str, labels: tuple[str, ...], trained: Callable[..., Any], tmp_path: Path
) -> None:
    vocab = trained().vocab
    entries = len(read_vocabulary(vocab.file("vocab.txt")))
    network = {"bert": _bert(entries, False), "distilbert": distilbert(entries), "modern": modern(entries)}[family]
    if labels:
        network = network.model_copy(update={"labels": labels, "head": "token" if len(labels) == 3 else "sequence"})
    hf = make_folder(tmp_path / "hf")
    write_hf_folder(hf, build_model(network), vocab)
    for name in get_args(Format):
        refused = runtime_named(name).refusal(Published(hf))
        assert bool(refused) == bool(unwritable(name, network)), (name, refused)


@warm
@pytest.mark.parametrize("family", ["bert", "distilbert", "modern"])
def test_vectors_of_length_1_are_certified_where_vectors_are_computed(
    family: str, trained: Callable[..., Any], tmp_path: Path
) -> None:
    vocab = trained().vocab
    entries = len(read_vocabulary(vocab.file("vocab.txt")))
    network = {"bert": _bert(entries, False), "distilbert": distilbert(entries), "modern": modern(entries)}[family]
    hf = make_folder(tmp_path / "hf")
    write_hf_folder(hf, build_model(network.model_copy(update={"head": "vector"})), vocab)
    assert Published(hf).unit_vectors and Published(hf).head == "encoder"
    for name in get_args(Format):
        refused = runtime_named(name).refusal(Published(hf))
        assert bool(refused) == bool(unwritable(name, network)), (name, refused)
    if family != "bert":  # of the others, tests/unit/test_embeddings.py compares the vectors
        return
    names = [name for name in ("sentence-transformers", "onnx") if not runtime_named(name).missing()]
    if not names:
        pytest.skip("neither sentence-transformers nor ONNX Runtime is installed")
    rows = rows_of(certify(hf, Lines("these", TEXTS), names))
    for name in names:
        row = rows[name]
        assert (row["status"], row["why"]) == ("agrees", ""), row
        assert row["outputs"].keys() >= {"hidden", "vector"}
        assert all(each["largest"] <= 1e-5 and each["cosine"] > 0.99999 for each in row["outputs"].values())


def test_other_ids_of_a_text_are_shown_from_the_first_that_differs(tmp_path: Path) -> None:
    row: Row = {"runtime": "static", "title": "model2vec", "version": "", "status": "agrees", "why": ""}
    texts = Texts(Published(tmp_path), ["long text", "short", "same"], [[0, 1, 2], [0, 1, 2], [0, 2]], ["a", "b", "c"])
    found = compare_ids(row, runtime_named("static"), texts, [[0, 1], [3, 1, 2], [0, 2]])
    assert (found["status"], found["why"], found["other_ids"]) == ("differs", "2 of 3 lines get other ids", 2)
    assert [(each["text"], each["expected"], each["given"]) for each in found["examples"]] == [
        ("short", ["a", "b", "c"], ["id 3", "b", "c"]),
        ("long text", ["c"], []),
    ]


@warm
@pytest.mark.parametrize("kind", ["roberta", "bpe"])
def test_a_folder_of_another_family_or_vocabulary(kind: str, tmp_path: Path) -> None:
    """Its ids are taken as transformers gives them, and what cannot run it says so."""
    names = [name for name in ("sentence-transformers", "onnx", "static") if not runtime_named(name).missing()]
    published_elsewhere(tmp_path, kind)
    certificate = certify(tmp_path, Lines("these", TEXTS), names)
    rows = rows_of(certificate)
    assert "taken as right" in rows["transformers"]["why"]
    if "sentence-transformers" in rows:
        assert rows["sentence-transformers"]["status"] == "agrees", rows["sentence-transformers"]
    for name in ("onnx", "static"):
        if name in rows:
            expected = "agrees" if (kind, name) == ("bpe", "onnx") else "refused"
            assert rows[name]["status"] == expected, rows[name]


def published_elsewhere(folder: Path, kind: str) -> None:
    """A tiny RoBERTa, with 66 positions of which 64 are read, or a ModernBERT, both with BPE and the token <mask>."""
    import torch
    import transformers
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.processors import TemplateProcessing
    from tokenizers.trainers import BpeTrainer

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe = Tokenizer(BPE(unk_token="<unk>"))
    bpe.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=ByteLevel.alphabet())
    bpe.train_from_iterator([*TEXTS, *NASTY], trainer)
    bpe.post_processor = TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", cls_token="<s>", pad_token="<pad>", eos_token="</s>", sep_token="</s>",
        unk_token="<unk>", mask_token="<mask>", model_max_length=64, model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    size = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 48, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
    }  # fmt: skip
    torch.manual_seed(0)
    if kind == "roberta":
        network = transformers.RobertaForMaskedLM(transformers.RobertaConfig(**size, max_position_embeddings=66))
    else:
        config = transformers.ModernBertConfig(**size, max_position_embeddings=64, cls_token_id=0, sep_token_id=2)
        network = transformers.ModernBertForMaskedLM(config)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
