"""ONNX files of every family and head: transformers' numbers, in each precision, for texts and for padded rows."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.unit.export.tiny import publish

from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, write_json
from bertwright.export.onnx.graph import save
from bertwright.export.onnx.model import onnx_model
from bertwright.export.runtimes.onnx_runtime import ONNX, ONNX_FP16, ONNX_INT8, OnnxRuntime
from bertwright.export.runtimes.runtime import HEADS, Outputs, Published
from bertwright.model.text_encoder import load_model, load_tokenizer
from bertwright.vocab.entries import CLS, MASK, SEP, SPECIALS
from bertwright.vocab.split import build_tokenizer

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

ENTRIES = [*SPECIALS, "az", "árvíztűrő", "tükörfúró", "##gép", "a", "főváros", "##os", "ház", ".", ",", "old", "mill"]
TEXTS = ("Az árvíztűrő [MASK] a fővárosos ház , old mill .", "old [MASK]", "a ház [MASK] " + "az old mill . " * 20)
NUMBERS = {
    "vocab_size": len(ENTRIES), "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 40, "initializer_range": 0.3,
}  # fmt: skip
PLACES = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
DISTIL = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 40}
FAMILIES: dict[str, Any] = {
    "Bert": lambda: transformers.BertConfig(**NUMBERS),
    "DistilBert": lambda: transformers.DistilBertConfig(vocab_size=len(ENTRIES), initializer_range=0.3, **DISTIL),
    "ModernBert": lambda: transformers.ModernBertConfig(**NUMBERS, **PLACES, local_attention=8),
}
CLASSES = [
    family + head for family in FAMILIES for head in HEADS if head != "ForPreTraining" or family == "Bert"
]  # fmt: skip


def published(folder: Path, name: str) -> tuple[Published, Any]:
    """A folder that transformers wrote, of random weights, and its network."""
    family = next(family for family in FAMILIES if name.removeprefix(family) in HEADS)
    config = FAMILIES[family]()
    config.num_labels = 2 if name.endswith("ForQuestionAnswering") else 3
    torch.manual_seed(0)
    network = getattr(transformers, name)(config).eval()
    for parameter in network.parameters():
        if parameter.ndim == 1:  # transformers starts with biases of 0
            torch.nn.init.normal_(parameter, float(parameter.detach().mean().round()), 0.3)
    network.save_pretrained(folder)
    build_tokenizer(ENTRIES, lower_case=False, strip_accents=False).save(str(folder / "tokenizer.json"))
    return Published(folder), network


@pytest.fixture(params=CLASSES)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Published, Any]:
    return published(tmp_path, request.param)


def computed(runtime: OnnxRuntime, model: Published, texts: tuple[str, ...] = TEXTS) -> list[tuple[list[int], Outputs]]:
    """The ids and outputs of texts in a runtime."""
    out = model.folder / "onnx"
    out.mkdir()
    assert runtime.missing() == "" and runtime.refusal(model) == ""
    runtime.write(model, out)
    assert [path.name for path in out.iterdir()] == [runtime.file]
    with runtime.open(model, out, 1) as reader:
        return [(reader.ids(text), reader.run(text)) for text in texts]


def expected(network: Any, head: str, ids: list[int], outputs: Outputs) -> Iterator[tuple[Any, Any]]:
    """Pairs of what a runtime computes, and what transformers does."""
    row = torch.tensor(ids)[(None, None) if head == "choice" else None]
    with torch.inference_mode():
        found = network(input_ids=row, output_hidden_states=True)
    if head in ("encoder", "masked"):
        hidden_TH = (found.last_hidden_state if head == "encoder" else found.hidden_states[-1])[0]
        yield outputs["hidden"], hidden_TH.numpy()
        yield outputs["vector"], hidden_TH.mean(0).numpy()
    if head == "span":
        yield outputs["logits"], torch.stack([found.start_logits, found.end_logits], -1)[0].numpy()
    elif head != "encoder":
        logits = (found.prediction_logits if "prediction_logits" in found else found.logits)[0].numpy()
        yield outputs["logits"], logits[ids.index(ENTRIES.index(MASK))] if head == "masked" else logits


def test_every_head_has_the_numbers_of_transformers(model: tuple[Published, Any]) -> None:
    folder, network = model
    tokenizer = load_tokenizer(folder.folder)
    for text, (ids, outputs) in zip(TEXTS, computed(ONNX, folder), strict=True):
        pieces, _ = tokenizer.encode_texts([text])
        assert ids == [tokenizer.ids(CLS), *pieces[:38].tolist(), tokenizer.ids(SEP)]
        for ours, theirs in expected(network, folder.head, ids, outputs):
            assert ours.shape == theirs.shape and ours.dtype == np.float32
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("runtime", "least"), [(ONNX_FP16, 0.99999), (ONNX_INT8, 0.995)], ids=["float16", "int8"])
def test_fewer_bits_are_close(model: tuple[Published, Any], runtime: OnnxRuntime, least: float) -> None:
    folder, network = model
    for ids, outputs in computed(runtime, folder):
        for ours, theirs in expected(network, folder.head, ids, outputs):
            cosine = np.vdot(ours, theirs) / (np.linalg.norm(ours) * np.linalg.norm(theirs))
            assert cosine > least
            assert np.abs(ours - theirs).max() > 0, "the bits are fewer"


@pytest.mark.parametrize("family", FAMILIES)
def test_padded_rows_have_the_numbers_of_their_texts(tmp_path: Path, family: str) -> None:
    folder, network = published(tmp_path, f"{family}ForMaskedLM")
    ONNX.write(folder, tmp_path)
    session = onnxruntime.InferenceSession(str(tmp_path / ONNX.file), providers=["CPUExecutionProvider"])
    ids = torch.randint(5, len(ENTRIES), (3, 31), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(31) < torch.tensor([[31], [4], [17]])).long()
    given = {"input_ids": ids, "attention_mask": mask}
    if family == "Bert":
        given["token_type_ids"] = (torch.arange(31) > torch.tensor([[9], [2], [50]])).long()
    with torch.inference_mode():
        theirs = network(**given).logits.numpy()
    (ours,) = session.run(["logits"], {name: value.numpy() for name, value in given.items()})
    np.testing.assert_allclose(ours[mask.bool()], theirs[mask.bool()], rtol=1e-4, atol=1e-4)


def test_names_and_dimensions_are_those_that_programs_expect(tmp_path: Path) -> None:
    folder, _ = published(tmp_path, "BertForPreTraining")
    ONNX.write(folder, tmp_path)
    graph = onnx.load(tmp_path / ONNX.file)
    onnx.checker.check_model(graph)
    assert [(each.domain, each.version) for each in graph.opset_import] == [("", 17), ("com.microsoft", 1)]
    batch = ["batch_size", "sequence_length"]
    assert named(graph.graph.input) == dict.fromkeys(["input_ids", "attention_mask", "token_type_ids"], batch)
    assert named(graph.graph.output) == {
        "logits": [*batch, len(ENTRIES)],
        "last_hidden_state": [*batch, 32],
        "seq_relationship_logits": [batch[0], 2],
    }


def named(values: Any) -> dict[str, list[Any]]:
    return {each.name: [d.dim_param or d.dim_value for d in each.type.tensor_type.shape.dim] for each in values}


def test_tensors_beyond_a_file_are_beside_it(tmp_path: Path) -> None:
    folder, _ = published(tmp_path, "BertModel")
    network = load_model(tmp_path)
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    ((_, whole),) = computed(ONNX, folder, TEXTS[:1])
    out = tmp_path / "large"
    out.mkdir()
    save(onnx_model(network.config, tensors, "float32"), out / ONNX.file, most_bytes=10_000)
    assert sorted(path.name for path in out.iterdir()) == ["model.onnx", "model.onnx_data"]
    assert (out / "model.onnx").stat().st_size < (out / "model.onnx_data").stat().st_size
    with ONNX.open(folder, out, 1) as reader:
        np.testing.assert_array_equal(reader.run(TEXTS[0])["hidden"], whole["hidden"])


@pytest.mark.parametrize("family", FAMILIES)
def test_sums_and_norms_are_left_apart(tmp_path: Path, family: str) -> None:
    """ONNX Runtime's operator for both takes seven times as long on a CPU."""
    folder, _ = published(tmp_path, f"{family}Model")
    ONNX.write(folder, tmp_path)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "run.onnx")
    options.log_severity_level = 3  # it says that such a file is for this machine
    onnxruntime.InferenceSession(str(tmp_path / ONNX.file), options, providers=["CPUExecutionProvider"])
    kinds = {node.op_type for node in onnx.load(tmp_path / "run.onnx").graph.node}
    assert {"LayerNormalization", "MultiHeadAttention"} < kinds and "SkipLayerNormalization" not in kinds


def test_a_classifier_of_means_is_refused(tmp_path: Path) -> None:
    folder, _ = published(tmp_path, "ModernBertForSequenceClassification")
    assert ONNX.refusal(folder) == ""
    write_json(tmp_path / "config.json", {**folder.config, "classifier_pooling": "mean"})
    assert "reads the mean of all tokens (classifier_pooling" in ONNX.refusal(Published(tmp_path))
    with pytest.raises(RecipeError, match="classifier_pooling"):
        load_model(tmp_path)


def test_another_network_is_refused_in_a_sentence(tmp_path: Path) -> None:
    folder, _ = published(tmp_path, "BertModel")
    write_json(tmp_path / "config.json", {**folder.config, "hidden_act": "relu"})
    assert "hidden_act" in ONNX.refusal(Published(tmp_path))
    write_json(tmp_path / "config.json", {**folder.config, "architectures": ["BertForSomething"]})
    assert "is a BertForSomething; known are networks" in ONNX.refusal(Published(tmp_path))


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    model = publish(make_folder(tmp_path / "wiki"), "bert")
    ONNX.write(model, make_folder(tmp_path / "wiki" / "onnx"))
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "run-in-onnx-runtime.md"
    (code,) = re.findall(r"```python\n(.*?)\n```", guide.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    values: dict[str, Any] = {}
    exec(code, values)
    assert capsys.readouterr().out.startswith("(1, 32)")
    with ONNX.open(model, tmp_path / "wiki" / "onnx", 1) as reader:
        assert values["ids"][0].tolist() == reader.ids("The mill by the river.")
        np.testing.assert_allclose(values["hidden"][0], reader.run("The mill by the river.")["hidden"], atol=1e-6)
