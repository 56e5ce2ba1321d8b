"""The exported folder read back: any difference, also one that is no number, is an error that names it."""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import make_folder, read_json, write_json
from bertwright.export.folder import write_hf_folder
from bertwright.export.verify import PROBES, compare_model, compare_tokenizer, rows_of
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import MASK, SEP, SPECIALS, UNK
from bertwright.vocab.run import run as make_vocab
from bertwright.vocab.tokenizer import load_tokenizer

Make = Callable[..., Any]


@pytest.fixture
def written(trained: Make, tmp_path: Path) -> tuple[Path, Any, Any]:
    """The folder, our model and our tokenizer."""
    made = trained()
    model, hf = load_model(made.train.path / "model"), make_folder(tmp_path / "hf")
    write_hf_folder(hf, model, made.vocab)
    return hf, model, load_tokenizer(made.vocab)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3.0])
def test_a_number_that_is_none_is_a_difference(written: tuple[Path, Any, Any], value: float) -> None:
    hf, model, tokenizer = written
    assert compare_model(hf, model, tokenizer, [], 1e-4)["mlm_difference"] < 1e-4
    tensors = load_file(hf / "model.safetensors")
    tensors["cls.predictions.bias"][7] = value
    save_file(tensors, hf / "model.safetensors", {"format": "pt"})
    with pytest.raises(ArtifactError, match=r"mlm_difference of the logits is (nan|inf|\d.*), above export\.tolerance"):
        compare_model(hf, model, tokenizer, [], 1e-4)


def test_an_error_in_the_last_position_shows(written: tuple[Path, Any, Any]) -> None:
    hf, model, tokenizer = written
    tensors = load_file(hf / "model.safetensors")
    tensors["bert.embeddings.position_embeddings.weight"][-1, 0] += 5.0
    save_file(tensors, hf / "model.safetensors", {"format": "pt"})
    with pytest.raises(ArtifactError, match="mlm_difference"):
        compare_model(hf, model, tokenizer, [], 1e-4)


def test_a_tokenizer_without_its_last_entry_is_refused(written: tuple[Path, Any, Any]) -> None:
    hf, _, tokenizer = written
    description = read_json(hf / "tokenizer.json")
    last = max(description["model"]["vocab"], key=description["model"]["vocab"].__getitem__)
    del description["model"]["vocab"][last]
    write_json(hf / "tokenizer.json", description)
    entries = len(tokenizer.vocabulary)
    with pytest.raises(ArtifactError, match=f"its tokenizer has {entries - 1} entries, the vocabulary {entries}"):
        compare_tokenizer(hf, tokenizer, [])


@pytest.mark.parametrize(
    "text", [" ", MASK, f"{MASK}{MASK}", f"a {UNK} b{SEP}c [sep]", "\u202eabc", "東京" * 300, "a\u0301" * 50]
)
def test_texts_of_any_kind_are_compared_and_counted(
    written: tuple[Path, Any, Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    hf, _, tokenizer = written
    assert compare_tokenizer(hf, tokenizer, [text]) == len(PROBES) + 1
    assert not caplog.records


def test_every_sequence_fits_and_has_a_mask(written: tuple[Path, Any, Any]) -> None:
    _, model, tokenizer = written
    positions = model.config.max_position_embeddings
    rows = rows_of(tokenizer, [*PROBES, "szó " * 500], positions)
    assert len(rows[0][0]) + len(rows[0][1]) == positions
    assert all(len(a) + len(b) <= positions and tokenizer.ids(MASK) in a for a, b in rows)


def test_rows_of_padding_leave_the_folder_and_the_numbers_stay(trained: Make, tmp_path: Path) -> None:
    made = trained(extra_rows=5)
    model = load_model(made.train.path / "model")
    size = write_hf_folder(make_folder(tmp_path / "hf"), model, made.vocab)
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    assert size["vocab_size"] == len(tensors["cls.predictions.bias"]) == int(made.vocab.counts["entries"])
    assert size["parameters"] == sum(tensor.numel() for tensor in tensors.values())
    difference = compare_model(tmp_path / "hf", model, load_tokenizer(made.vocab), ["A Duna."], 1e-4)
    assert torch.isfinite(torch.tensor(difference["mlm_difference"]))


OTHERS = ("BertTokenizer", "BertTokenizerFast", "BertTokenizerLegacy", "DistilBertTokenizer", "DistilBertTokenizerFast")
TEXTS = ("সময়, বাড়ি ও সময়।", "ΟΔΟΣ και οδος", "a৽b a؝b", "क़लम שּׁ", "Å 5 kΩ", "a\u0085b a\u2028b a\u00adb")


@pytest.fixture(params=[False, True])
def many_scripts(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """An exported folder whose vocabulary has every character of `TEXTS` in NFC, and our tokenizer."""
    written = "".join(text.lower() if request.param else text for text in TEXTS)
    letters = sorted(set(unicodedata.normalize("NFC", written)) - {"\xad"})
    pieces = [letter for letter in letters if not letter.isspace()]
    entries = [*SPECIALS, *pieces, *(f"##{piece}" for piece in pieces), "সময"]
    (tmp_path / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries), encoding="utf-8")
    config = VocabConfig(file=tmp_path / "vocab.txt", size=None, lower_case=request.param)
    vocab = make_vocab(config, None, tmp_path / "vocab")
    network = BertConfig(
        vocab_size=len(entries), hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    write_hf_folder(hf := make_folder(tmp_path / "hf"), PreTrainingModel(network), vocab)
    return hf, load_tokenizer(vocab)


def test_every_tokenizer_of_transformers_agrees_or_refuses(many_scripts: tuple[Path, Any]) -> None:
    hf, ours = many_scripts
    assert compare_tokenizer(hf, ours, TEXTS) == len(PROBES) + len(TEXTS)
    classes = [getattr(transformers, name) for name in OTHERS if hasattr(transformers, name)]
    refusals = 0
    for each in classes:
        try:
            theirs = each.from_pretrained(str(hf), local_files_only=True)
        except TypeError:
            refusals += 1
            continue
        for text in TEXTS:
            assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode_texts([text])[0].tolist()
    assert refusals >= 2, "those with a normalization of their own"


def test_a_loading_tokenizer_with_other_ids_is_an_error(many_scripts: tuple[Path, Any]) -> None:
    hf, ours = many_scripts
    settings = read_json(hf / "tokenizer_config.json")
    write_json(hf / "tokenizer_config.json", {**settings, "never_split": None, "tokenize_chinese_chars": True})
    with pytest.raises(ArtifactError, match=r"its tokenizer \(\w*Bert\w+\) gives different ids from ours"):
        compare_tokenizer(hf, ours, TEXTS)


@pytest.mark.parametrize(
    "lack",
    ["unable to mmap 25 bytes from file <model.safetensors>: Cannot allocate memory (12)", "can't start new thread"],
)
def test_a_lack_of_memory_or_threads_is_no_difference(
    written: tuple[Path, Any, Any], lack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(lack)

    hf, model, tokenizer = written
    monkeypatch.setattr(transformers.PreTrainedModel, "from_pretrained", fail)
    with pytest.raises(DataError, match="run out of memory or of threads"):
        compare_model(hf, model, tokenizer, [], 1e-4)
