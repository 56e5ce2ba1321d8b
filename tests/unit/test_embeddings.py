"""Recipes that train vectors of texts: trained, scored, exported, and answered alike by sentence-transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference.teachers import SPECIALS
from tests.unit.export.conftest import run_card
from tests.unit.resumed import assert_resumes

from bertwright import Encoder, Recipe, RunFolder, run
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import read_json
from bertwright.core.log import SILENT
from bertwright.exams.retrieval import Retrieval

pytestmark = pytest.mark.heavy

PLACES = ("london", "rome", "paris", "oslo", "bern", "riga", "lima", "doha")
KINDS = ("park", "river", "museum", "bridge")
ENTRIES = (*SPECIALS, *PLACES, *KINDS, "the", "of", "where", "is", "?", ".", "in", "lies", "query", ":")
RECIPE = """
vocab.file = {vocab}
vocab.lower_case = true
model = {{{model}}}
optim.kind = "adamw"

[train]
device = "cpu"
objective = {{kind = "embedding", dimensions = [16, 64], symmetric = true}}

[[train.phases]]
length = 16
batch = 16
micro_batch = 4
learning_rate = 2e-3
epochs = {epochs}
data = {data}
"""


def pairs() -> list[dict[str, Any]]:
    """A question and its answer for each place and kind; every second one with a hard negative."""
    found = []
    for place in PLACES:
        for kind in KINDS:
            other = PLACES[(PLACES.index(place) + 1) % len(PLACES)]
            pair: dict[str, Any] = {
                "anchor": f"where is the {kind} of {place} ?",
                "positive": f"{kind} lies in {place}.",
            }
            if len(found) % 2:
                pair["negatives"] = [f"{kind} lies in {other}."]
            found.append(pair)
    return found


def recipe(folder: Path, model: str, epochs: int, *more: str) -> Recipe:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for name in ("train", "dev"):
        (data / f"{name}.jsonl").write_text("\n".join(map(json.dumps, pairs())) + "\n", encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    paths = {name: json.dumps(str(folder / file)) for name, file in (("vocab", "vocab.txt"), ("data", "data"))}
    text = RECIPE.format(model=f'kind = "{model}", size = "tiny"', epochs=epochs, **paths)
    (folder / "recipe.toml").write_text(text)
    return Recipe.load(folder / "recipe.toml", list(more))


@pytest.mark.parametrize("model", ["bert", "distilbert", "modern"])
def test_positives_are_found_and_sentence_transformers_gives_the_same_vectors(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence_transformers = pytest.importorskip(
        "sentence_transformers", reason="the extra 'sentence-transformers' is not installed"
    )
    out = tmp_path / "run"
    run(recipe(tmp_path, model, 30, 'train.objective.anchor_prompt="query: "'), out, log=SILENT)
    scores, summary = read_json(out / "evaluate" / "scores.json"), read_json(out / "summary.json")
    assert scores["sequences"] == scores["repeated"] == 32 and scores["chance"] == pytest.approx(1 / 32)
    assert scores["recall_at_1"] == summary["recall_at_1"] > 0.5 and not scores["untrained"]
    assert list(scores["sizes"]) == ["128", "64", "16"] and scores["sizes"]["128"]["mrr"] == scores["mrr"]
    row = [row for row in RunFolder(out).metrics if "heldout_recall_at_1" in row][-1]
    assert row["heldout_recall_at_1"] == scores["recall_at_1"]
    hf = out / "export" / "hf"
    theirs, ours = sentence_transformers.SentenceTransformer(str(hf), device="cpu"), Encoder(out)
    texts = [text for pair in pairs() for text in (f"query: {pair['anchor']}", pair["positive"])]
    vectors = ours.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(theirs.encode(texts), vectors, atol=1e-5)
    np.testing.assert_allclose(Encoder(hf).encode(texts), vectors, atol=1e-5)
    queries = theirs.encode_query([pair["anchor"] for pair in pairs()])
    np.testing.assert_allclose(queries, vectors[::2], atol=1e-5)
    found = (theirs.similarity(queries, theirs.encode_document(texts[1::2])).argmax(1).numpy() == np.arange(32)).mean()
    assert found == pytest.approx(scores["recall_at_1"])
    for encoder in (ours, Encoder(hf)):
        (score, *_) = Retrieval(data=tmp_path / "data" / "dev.jsonl").take(encoder)
        assert score.value == pytest.approx(scores["recall_at_1"]), "the exam reads the prompts, too"
    short = sentence_transformers.SentenceTransformer(str(hf), device="cpu", truncate_dim=16).encode(texts)
    assert short.shape == (64, 16)
    card = (hf / "README.md").read_text(encoding="utf-8")
    assert 'pipeline_tag: "sentence-similarity"' in card and 'library_name: "sentence-transformers"' in card
    monkeypatch.chdir(hf)
    shown = run_card(hf, capsys, lines=7)
    assert shown
    assert "recall@1" in (out / "report.html").read_text(encoding="utf-8")


def test_a_stopped_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    assert_resumes(recipe(tmp_path, "bert", 4, "train.log_every=1", "model.dropout=0.1"), tmp_path, 5)


def test_vectors_start_from_a_network_trained_before_without_its_heads(tmp_path: Path) -> None:
    first, log = tmp_path / "first", list[str]()
    run(recipe(tmp_path, "bert", 1), first, ("vocab", "examples", "train"), SILENT)
    again = recipe(tmp_path, "bert", 1, f"train.init_from={first / 'train'}")
    run(again, tmp_path / "second", ("vocab", "examples", "train"), SILENT)
    assert read_json(tmp_path / "second" / "train" / "manifest.json")["counts"]["init"]["folder"]
    assert not log


def test_pairs_that_cannot_be_learned_from_are_refused(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, "bert", 1)
    alike = [{**pair, "negatives": [], "group": "one"} for pair in pairs()]
    for name in ("train", "dev"):
        (tmp_path / "data" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, alike)))
    with pytest.raises(DataError, match="of one group and have no negatives"):
        run(wanted, tmp_path / "run", ("vocab", "examples"), SILENT)


def test_sizes_larger_than_the_vectors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="dimensions has 500, but the vectors of"):
        run(recipe(tmp_path, "bert", 1, "train.objective.dimensions=[500]"), tmp_path / "run", log=SILENT)
