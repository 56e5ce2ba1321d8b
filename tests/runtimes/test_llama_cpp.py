"""llama.cpp computes the hidden states of the GGUF files that its own converter writes, and the ids of BERT but for
kinds of texts that are known."""

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from tests.rows import each_row
from tests.unit.export.tiny import TEXTS, publish
from transformers.activations import GELUActivation

from bertwright.core.errors import ArtifactError, DataError, MissingExtraError
from bertwright.core.files import read_json, write_json
from bertwright.export.certify.compare import Texts, compare_ids
from bertwright.export.certify.shapes import Row
from bertwright.export.folder import write_hf_folder
from bertwright.export.runtimes import llama_cpp_converter as converter
from bertwright.export.runtimes.differences import LOWER
from bertwright.export.runtimes.llama_cpp import LlamaCpp
from bertwright.export.runtimes.llama_cpp_words import DIFFERENCES, MENDED, explain, unsupported
from bertwright.export.runtimes.runtime import Published, Reader
from bertwright.model.saved import load_model
from bertwright.vocab.entries import TextSettings

pytestmark = pytest.mark.heavy
xllamacpp = pytest.importorskip("xllamacpp", reason="pip install 'bertwright[llama-cpp]'")
if converter.sources() is None:
    pytest.skip(f"`make .venv/llama.cpp` unpacks llama.cpp's converter, or {converter.GET}", allow_module_level=True)

LINES = (
    *TEXTS, "A [MASK] a Duna.", "ŐŰ[MASK]x [SEP] [mask] [UNK]", "a\u00a0\x07b\u200dc\tÁ", "東京 ☃ über naïve Győr", "-"
    "... (ő), 'ű'?", "", "word " * 150,
)  # fmt: skip
"""With special entries, control characters, other scripts, none, and more tokens than positions."""
INDIC, HANGUL = "का", "각"


class Opened(NamedTuple):
    """A model that llama.cpp has opened."""

    model: Published
    out: Path
    reader: Reader
    settings: TextSettings


MODELS: dict[str, tuple[str, str, TextSettings]] = {
    "bert": ("bert", "ForMaskedLM", TextSettings(False, False)),
    "distilbert": ("distilbert", "", TextSettings(True, False)),
    "modernbert": ("modernbert", "ForMaskedLM", TextSettings(True, True)),
}
"""Each family, each way to treat case and accents: the vocabularies of a conversion, which takes seconds."""


@pytest.fixture(scope="module", params=MODELS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    family, kind, settings = MODELS[request.param]
    folder = tmp_path_factory.mktemp(family)
    model = publish(
        folder / "hf", family, kind, lower_case=settings.lower_case, strip_accents=settings.strip_accents,
        texts=(*TEXTS, INDIC, HANGUL),
    )  # fmt: skip
    out = write(model, folder / "gguf")
    with LlamaCpp().open(model, out, threads=1) as reader:
        yield Opened(model, out, reader, settings)


def write(model: Published, out: Path, runtime: LlamaCpp | None = None) -> Path:
    runtime = runtime or LlamaCpp()
    assert runtime.refusal(model) == runtime.missing() == ""
    out.mkdir()
    runtime.write(model, out)
    assert [file.name for file in out.iterdir()] == [runtime.file]
    return out


class TableGelu(torch.nn.Module):
    """llama.cpp's GELU on a CPU: the approximation with tanh, of half-precision numbers and rounded to them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = torch.nn.functional.gelu(x.half().float(), approximate="tanh").half().float()
        return torch.where(x.abs() < 10, table, torch.relu(x))


def hidden_of(model: Published, ids: list[int], table: bool = False) -> NDArray[np.float32]:
    """[T, H] as transformers computes it, or with llama.cpp's GELU."""
    network = transformers.AutoModel.from_pretrained(model.folder, local_files_only=True, dtype=torch.float32).eval()
    replaced = [
        (parent, name)
        for parent in network.modules()
        for name, child in parent.named_children()
        if table and isinstance(child, GELUActivation)
    ]
    assert bool(replaced) == table
    for parent, name in replaced:
        setattr(parent, name, TableGelu())
    with torch.inference_mode():
        hidden_TH: NDArray[np.float32] = network(torch.tensor([ids])).last_hidden_state[0].numpy()
    return hidden_TH


def test_ids_are_those_of_the_tokenizer(opened: Opened) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(opened.model.folder, local_files_only=True)
    for line in LINES:
        assert opened.reader.ids(line) == tokenizer(line, truncation=True, max_length=64)["input_ids"], line


def test_hidden_states_are_those_of_transformers(opened: Opened) -> None:
    for line in LINES[:-1]:
        outputs, ids = opened.reader.run(line), opened.reader.ids(line)
        expected_TH = hidden_of(opened.model, ids)
        np.testing.assert_allclose(outputs["vector"], outputs["hidden"].mean(0), atol=1e-6)
        off_T = np.abs(outputs["hidden"] - expected_TH).max(1)
        if opened.model.family == "modernbert":
            assert off_T.max() < 1e-5, line
            continue
        # Half precision has 11 bits. What remains with the same table is where a number lies between two of its
        # entries, and goes to one in torch and to the other here: not for every token.
        assert 1e-5 < off_T.max() < 2e-2, line
        table_T = np.abs(outputs["hidden"] - hidden_of(opened.model, ids, table=True)).max(1)
        assert table_T.min() < 1e-5, line


def test_other_ids_are_explained(opened: Opened) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(opened.model.folder, local_files_only=True)
    tried = [difference for difference in DIFFERENCES if difference.settings == opened.settings]
    assert tried
    for difference in tried:
        text = difference.example
        ours, theirs = tokenizer(text)["input_ids"], opened.reader.ids(text)
        assert ours != theirs, text
        assert difference.reason in LlamaCpp().explain(opened.model, f"An old mill {text}"), text
    for build, difference in MENDED.items():
        assert tokenizer(difference.example)["input_ids"] == opened.reader.ids(difference.example)
        found = difference.reason in explain(difference.example, opened.settings, build - 1)
        assert found == (opened.settings == difference.settings or (build == 9713 and opened.settings == LOWER))
    for line in LINES:
        assert LlamaCpp().explain(opened.model, line) == "", line


def test_the_page_runs(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As users get vectors, with the pooling that the file says."""
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "run-in-llama-cpp.md"
    (code,) = re.findall(r"```python\n(.*?)\n```", guide.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "wiki-gguf").symlink_to(opened.out)
    monkeypatch.chdir(tmp_path)
    values: dict[str, Any] = {}
    exec(code, values)
    assert capsys.readouterr().out == "32\n"
    vector_H = opened.reader.run("The mill by the river.")["vector"]
    np.testing.assert_allclose(values["mill"], vector_H / np.linalg.norm(vector_H), atol=2e-3)


def test_a_connection_that_the_server_has_closed_is_opened_again(opened: Opened) -> None:
    """As after a pause of some seconds."""
    reader: Any = opened.reader
    before = reader.ids("Duna")
    reader._connection.sock.shutdown(socket.SHUT_RDWR)
    assert reader.ids("Duna") == before


def test_a_certificate_names_the_reason(tmp_path: Path) -> None:
    """Of lines that are all hard, without the numbers."""
    row: Row = {"runtime": "gguf", "title": "llama.cpp", "version": "", "status": "agrees", "why": ""}
    model, expected = publish(tmp_path / "hf", "bert"), [[2, 5, 3], [2, 5, 6, 3], [2, 5, 3]]
    texts = Texts(model, ["e\u0301", "a\vb", "Duna"], expected, [])
    known = compare_ids(row, LlamaCpp(), texts, [[2, 1, 3], [2, 5, 7, 3], [2, 5, 3]])
    assert (known["status"], known["why"]) == ("known", "2 of 3 lines get other ids, all for known reasons")
    assert [example["reason"].rpartition(": ")[2] for example in known["examples"]] == [
        repr("e\u0301") + ".",
        "'\\x0b'.",
    ]
    other = compare_ids(row, LlamaCpp(), texts, [[2, 1, 3], [2, 5, 7, 3], [2, 4, 3]])
    assert other["status"] == "differs" and other["why"].endswith(
        "3 lines get other ids, 1 of them for no known reason"
    )
    assert [example["text"] for example in other["examples"]] == ["Duna"]


def test_versions_and_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = publish(tmp_path / "hf", "bert")
    for version, shown, reasons in (
        ("2026.5.9294", "2026.5.9294 (llama.cpp b9294)", ["lower-cases every text: 'Győr'.", "of every text: 'Győr'."]),
        ("2026.6.9538", "2026.6.9538 (llama.cpp b9538)", ["strips the accents of every text: 'Győr'."]),
        ("2026.10.11549.1", "2026.10.11549.1 (llama.cpp b11549)", []),
    ):
        monkeypatch.setattr("bertwright.export.runtimes.runtime.installed", lambda package, version=version: version)
        assert LlamaCpp().version() == shown
        explained = LlamaCpp().explain(model, "duna Győr")
        assert explained.count("llama.cpp") == len(reasons) and all(reason in explained for reason in reasons)


def test_a_text_that_is_no_unicode_is_an_error(opened: Opened) -> None:
    with pytest.raises(DataError, match="llama.cpp cannot read this text: .*surrogate"):
        opened.reader.ids("a\ud800")


def test_its_own_export_with_long_texts_in_8_bits(trained: Callable[..., Any], tmp_path: Path) -> None:
    """The reader starts with room for 512 tokens."""
    from tests.unit.export.test_families import modern

    made = trained(
        network=lambda rows: modern(rows, hidden_size=32, num_attention_heads=2, max_position_embeddings=700)
    )
    (folder := tmp_path / "published").mkdir()
    write_hf_folder(folder, load_model(made.train.path / "model"), made.vocab)
    model, runtime = Published(folder), LlamaCpp("q8_0")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    with runtime.open(model, write(model, tmp_path / "out", runtime), threads=2) as reader:
        for text in ("A folyó a Duna.", "Duna, a folyó. " * 300, "Győr"):
            ids, hidden_TH = reader.ids(text), reader.run(text)["hidden"]
            assert ids == tokenizer(text, truncation=True, max_length=700)["input_ids"]
            expected_TH = hidden_of(model, ids)
            cosine = (hidden_TH * expected_TH).sum() / np.linalg.norm(hidden_TH) / np.linalg.norm(expected_TH)
            assert hidden_TH.shape == expected_TH.shape and 0.99 < cosine < 0.9999999
        assert reader.run(TEXTS[1])["hidden"].shape[0] == len(reader.ids(TEXTS[1]))


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("bert", "ForSequenceClassification", {}, "a BertForSequenceClassification would lose its head"),
    ("bert", "", {"model_type": "roberta"}, "not roberta"),
    ("bert", "", {"hidden_act": "relu"}, "gelu_fast in this network, not 'relu'"),
    ("distilbert", "", {"activation": "quick_gelu"}, "gelu_fast in this network, not 'quick_gelu'"),
    ("modernbert", "", {"hidden_activation": "relu"}, "gelu or silu in this network, not 'relu'"),
    ("bert", "", {"position_embedding_type": "relative_key"}, "absolute positions only"),
    ("modernbert", "", {"mlp_bias": True}, "this one has mlp_bias"),
    ("modernbert", "", {"layer_types": ["full_attention", "full_attention", "sliding_attention"]}, "each n-th layer"),
    ("modernbert", "", {"layer_types": ["sliding_attention"] * 4}, "full attention in layer 0"),
]


@each_row(("family", "kind", "changed", "reason"), REFUSED)
def test_what_it_cannot_compute_is_refused(
    family: str, kind: str, changed: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    model = publish(tmp_path / "hf", family, kind)
    write_json(model.folder / "config.json", {**model.config, **changed})
    model = Published(model.folder)
    assert reason in LlamaCpp().refusal(model)
    (tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match="cannot be converted"):
        LlamaCpp().write(model, tmp_path / "out")
    assert not any((tmp_path / "out").iterdir())


def test_the_layers_of_older_and_newer_files() -> None:
    layers = converter.layer_types({"num_hidden_layers": 5, "global_attn_every_n_layers": 2})
    assert [layer[0] for layer in layers] == ["f", "s", "f", "s", "f"]
    assert converter.full_attention_every(layers) == 2
    assert converter.full_attention_every(["full_attention"] * 3) == 1
    assert converter.full_attention_every(["full_attention", "sliding_attention"]) == 2


TOKENIZERS: list[tuple[dict[str, Any], str]] = [
    ({"model": {"type": "Unigram", "vocab": []}}, "is Unigram, not WordPiece"),
    ({"model": {"type": "WordPiece", "continuing_subword_prefix": "@@", "vocab": {}}}, "continuations with '@@'"),
    ({"normalizer": {"type": "NFKC"}}, "has the normalization NFKC"),
    (
        {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace"}]}},
        "has the normalization Replace",
    ),
    ({"normalizer": {"type": "BertNormalizer", "handle_chinese_chars": False}}, "handle_chinese_chars = false"),
    ({"pre_tokenizer": {"type": "Whitespace"}}, "splits texts by Whitespace"),
    ({"pre_tokenizer": None}, "splits texts by None"),
    ({"model": {"type": "WordPiece", "vocab": {"##": 0}}}, "stored as ''"),
    ({"model": {"type": "WordPiece", "vocab": {"##\u2581": 0}}}, "stored as '\u2581'"),
    ({"model": {"type": "WordPiece", "vocab": {"a": 0, "##\u2581a": 1}}}, "stored as '\u2581a'"),
]


@each_row(("changed", "reason"), TOKENIZERS)
def test_tokenizers_that_its_format_cannot_hold_are_refused(
    changed: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    model = publish(tmp_path / "hf", "bert")
    tokenizer = read_json(model.folder / "tokenizer.json")
    assert not unsupported(tokenizer) and not LlamaCpp().refusal(model)
    write_json(model.folder / "tokenizer.json", {**tokenizer, **changed})
    assert unsupported({**tokenizer, **changed}) in LlamaCpp().refusal(model)
    assert reason in LlamaCpp().refusal(model)


def test_what_the_converter_refuses_is_an_error_in_its_words(tmp_path: Path) -> None:
    """A vocabulary of BPE that is not in its list."""
    from tokenizers import Tokenizer, models

    model = publish(tmp_path / "hf", "modernbert")
    entries = read_json(model.folder / "tokenizer.json")["model"]["vocab"]
    Tokenizer(models.BPE(entries, [], unk_token="[UNK]")).save(str(model.folder / "tokenizer.json"))
    (out := tmp_path / "out").mkdir()
    assert LlamaCpp().refusal(model) == ""
    with pytest.raises(ArtifactError, match="cannot convert .*BPE pre-tokenizer was not recognized"):
        LlamaCpp().write(model, out)
    assert not any(out.iterdir())


def test_a_folder_without_a_tensor_is_an_error(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "modernbert")
    tensors = load_file(model.folder / "model.safetensors")
    del tensors["layers.1.mlp.Wi.weight"]
    save_file(tensors, model.folder / "model.safetensors", {"format": "pt"})
    (out := tmp_path / "out").mkdir()
    with pytest.raises(ArtifactError, match=r"has no tensor layers\.1\.mlp\.Wi\.weight"):
        LlamaCpp().write(model, out)
    assert not any(out.iterdir())


def test_a_file_that_is_no_gguf_is_an_error(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert")
    (tmp_path / "model-F32.gguf").write_bytes(b"GGUF")
    with pytest.raises(ArtifactError, match="llama.cpp cannot load"), LlamaCpp().open(model, tmp_path, threads=1):
        pass


def test_what_is_not_there_is_named_before_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = publish(tmp_path / "hf", "bert")
    (out := tmp_path / "out").mkdir()
    monkeypatch.setenv(converter.VARIABLE, str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"is no llama.cpp of June .*pip download .* export LLAMA_CPP="):
        LlamaCpp().write(model, out)
    monkeypatch.delenv(converter.VARIABLE)
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"llama.cpp's converter is not found; get it with its sources"):
        LlamaCpp().write(model, out)
    monkeypatch.setattr("bertwright.export.runtimes.runtime.installed", lambda package: "")
    with pytest.raises(MissingExtraError, match=re.escape("pip install 'bertwright[llama-cpp]'")):
        LlamaCpp().write(model, out)
    assert LlamaCpp().version() == "" and not any(out.iterdir())


def test_the_sources_are_a_checkout_or_the_unpacked_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(converter.VARIABLE, str(tmp_path / "package"))
    for home in (tmp_path / "package/vendor/llama.cpp", tmp_path / "package"):
        for file, code in (("conversion/bert.py", ""), ("gguf-py/gguf/vocab.py", "lower_case")):
            (home / file).parent.mkdir(parents=True)
            (home / file).write_text(code)
        assert converter.sources() is None, "one that loses accents"
        (home / "gguf-py/gguf/vocab.py").write_text("strip_accents")
        assert converter.sources() == home
