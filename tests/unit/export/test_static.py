"""Static tables: model2vec and sentence-transformers read them, and they are what model2vec itself would have made."""

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
from safetensors.numpy import load_file
from tests.rows import each_row
from tests.unit.export.tiny import FAMILIES, TEXTS, publish

from bertwright.export.folder import write_hf_folder
from bertwright.export.runtimes.runtime import Published
from bertwright.export.runtimes.static import DIMENSIONS, SIF, Static, principal_components, table_of
from bertwright.model.saved import load_model
from bertwright.model.text_encoder import Encoder
from bertwright.vocab.entries import CLS, MASK, SEP, SPECIALS, UNK
from bertwright.vocab.split import build_tokenizer

pytestmark = pytest.mark.heavy
pytest.importorskip("model2vec", reason="pip install 'bertwright[static]'")

RUNTIME = Static()
LINES = (*TEXTS, "A ☃ and [SEP] in a text", "word " * 150, "東京 ☃", "")
"""Of the last but one no token has a vector."""
CASES = [(family, kind, lower) for family in FAMILIES for kind, lower in (("", True), ("ForMaskedLM", False))]
cases = pytest.mark.parametrize(("family", "kind", "lower_case"), CASES, ids=["-".join(map(str, row)) for row in CASES])


def write(model: Published, out: Path) -> Path:
    assert RUNTIME.refusal(model) == RUNTIME.missing() == ""
    out.mkdir()
    RUNTIME.write(model, out)
    return out


def expected(out: Path, ids: list[int]) -> NDArray[np.float64]:
    """The vector of tokens, by the definition."""
    mean = load_file(out / "model.safetensors")["embeddings"][ids].astype(np.float64).sum(0)
    length = float(np.linalg.norm(mean))
    return mean / length if length else mean


@cases
def test_the_table_reads_the_ids_of_the_model_and_averages_its_rows(
    family: str, kind: str, lower_case: bool, tmp_path: Path
) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="pip install sentence-transformers")
    model = publish(tmp_path / "hf", family, kind, lower_case=lower_case)
    out = write(model, tmp_path / "static")
    assert {file.name for file in out.iterdir()} == {
        "config.json", "model.safetensors", "modules.json", "tokenizer.json",
    }  # fmt: skip
    tokenizer = transformers.AutoTokenizer.from_pretrained(model.folder)
    theirs = sentence_transformers.SentenceTransformer(str(out), device="cpu", local_files_only=True)
    vectors = theirs.encode(list(LINES))
    with RUNTIME.open(model, out, 1) as reader:
        for line, vector in zip(LINES, vectors, strict=True):
            assert reader.ids(line) == tokenizer(line, truncation=True, max_length=64)["input_ids"]
            found = reader.run(line)["own"]
            assert (found.shape, found.dtype) == ((32,), np.float32)
            whole = tokenizer(line, add_special_tokens=False)["input_ids"]
            np.testing.assert_allclose(found, expected(out, whole), atol=1e-5)
            np.testing.assert_allclose(found, vector, atol=1e-5)


@cases
def test_it_is_the_table_that_the_method_makes(family: str, kind: str, lower_case: bool, tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", family, kind, lower_case=lower_case)
    encoder = Encoder(model.folder)
    entries = encoder.tokenizer.vocabulary
    # In float64 from transformers, by singular values instead of eigenvectors.
    network = transformers.AutoModel.from_pretrained(model.folder).double().eval()
    kept = [i for i, entry in enumerate(entries) if entry not in (CLS, SEP, MASK)]
    ids = torch.tensor([[entries.index(CLS), i, entries.index(SEP)] for i in kept])
    with torch.inference_mode():
        states = network(ids).last_hidden_state.mean(1).numpy()
    for dimensions in (5, 24, DIMENSIONS):
        left, values, _ = np.linalg.svd(states - states.mean(0), full_matrices=False)
        frequency = 1 / np.arange(2, len(kept) + 2)
        weights = SIF / (SIF + frequency / frequency.sum())
        made = (left * values)[:, :dimensions] * weights[:, None]
        found = table_of(encoder, dimensions)
        assert found.shape == (len(entries), min(dimensions, 32))
        assert not found[[entries.index(entry) for entry in (CLS, SEP, MASK, UNK)]].any()
        rows = [row for row, i in enumerate(kept) if entries[i] != UNK]
        ours, made = found[kept][rows], made[rows]
        assert np.abs(ours @ ours.T - made @ made.T).max() < 1e-5 * np.abs(made @ made.T).max()
        assert np.abs(np.abs(ours) - np.abs(made)).max() < 1e-4 * np.abs(made).max()  # the signs are a convention


@each_row("family", FAMILIES)
def test_model2vec_itself_distils_the_same_table(family: str, tmp_path: Path) -> None:
    pytest.importorskip("skeletoken", reason="pip install skeletoken: model2vec needs it to distil")
    from model2vec.distill import distill

    model = publish(tmp_path / family, family)
    encoder = Encoder(model.folder)
    made = distill(str(model.folder), quantize_to="float32", pca_dims=24, device="cpu")
    entries = encoder.tokenizer.vocabulary
    assert set(entries) - set(made.tokens) == {CLS, SEP, MASK}
    rows = [token for token in made.tokens if token != UNK]
    theirs = made.embedding[[made.tokens.index(token) for token in rows]]
    ours = table_of(encoder, 24)[[entries.index(token) for token in rows]]
    assert np.abs(ours - theirs).max() < 1e-4 * np.abs(theirs).max()
    # Where its own tokenizer finds the same tokens, the vectors of texts are equal, too.
    out = write(model, tmp_path / f"{family}-static")
    own = distill(str(model.folder), quantize_to="float32", device="cpu").encode(list(TEXTS))
    with RUNTIME.open(model, out, 1) as reader:
        found = np.stack([reader.run(text)["own"] for text in TEXTS])
    np.testing.assert_allclose(found, own, atol=1e-4)


def test_a_table_of_our_own_export_has_the_ids_of_its_model(trained: Callable[..., Any], tmp_path: Path) -> None:
    made = trained(lower_case=False, extra_rows=3)
    (tmp_path / "hf").mkdir()
    write_hf_folder(tmp_path / "hf", load_model(made.train.path / "model"), made.vocab)
    model = Published(tmp_path / "hf")
    out = write(model, tmp_path / "static")
    encoder = Encoder(model.folder)
    assert load_file(out / "model.safetensors")["embeddings"].shape == (int(made.vocab.counts["entries"]), 24)
    with RUNTIME.open(model, out, 1) as reader:
        decomposed = "A\u0301rvi\u0301ztu\u030bro\u030b"
        for text in (*TEXTS, decomposed):
            flat, _ = encoder.tokenizer.encode_texts([text])
            assert reader.ids(text)[1:-1] == flat.tolist()[:62]
        assert reader.run(decomposed)["own"].tolist() == reader.run("Árvíztűrő")["own"].tolist()


def test_entries_that_no_text_has_keep_their_ids_and_have_no_part_in_the_table(tmp_path: Path) -> None:
    model = publish(tmp_path / "hf", "bert")
    plain = Encoder(model.folder)
    words = plain.tokenizer.vocabulary
    # The rows of the words come after those of five unused entries.
    tensors = dict(plain.model.state_dict())
    name = next(name for name, tensor in tensors.items() if tensor.shape == (len(words), 32))
    more = torch.cat([tensors[name][:5], torch.ones(5, 32), tensors[name][5:]])
    config = plain.model.config.model_copy(update={"vocab_size": len(words) + 5})
    network = type(plain.model)(config)
    network.load_state_dict({**tensors, name: more})
    entries = [*SPECIALS, *(f"[unused{number}]" for number in range(5)), *words[5:]]
    tokenizer = type(plain.tokenizer)(build_tokenizer(entries, False, False))
    table = table_of(Encoder.of(network, tokenizer), 8)
    assert not table[5:10].any()
    np.testing.assert_allclose(np.delete(table, range(5, 10), 0), table_of(plain, 8), atol=1e-6)


def test_fewer_entries_than_dimensions_are_not_reduced_and_signs_are_those_of_the_largest_values() -> None:
    states = np.random.default_rng(0).normal(size=(9, 12)).astype(np.float32)
    assert np.array_equal(principal_components(states, 9), states)
    reduced = principal_components(states, 8)
    assert reduced.shape == (9, 8) and (reduced.max(0) == np.abs(reduced).max(0)).all()
    assert np.array_equal(np.argsort(-reduced.var(0)), np.arange(8))


@each_row("kind", ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"))
def test_a_model_with_a_head_for_a_task_is_refused(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / kind
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": [f"Bert{kind}"]}))
    assert RUNTIME.refusal(Published(folder)) == (
        "a table of vectors has no head; make it from the encoder that the model was fine-tuned from"
    )


def test_the_program_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = Path(__file__).parents[3] / "docs" / "how-to" / "run-in-model2vec.md"
    (program,) = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    write(publish(tmp_path / "hf", "bert"), tmp_path / "wiki-table")
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    near, far = map(float, capsys.readouterr().out.split())
    assert near != far and max(abs(near), abs(far)) <= 1
