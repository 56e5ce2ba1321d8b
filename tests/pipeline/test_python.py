"""The package used from Python: scripts, standard input and notebooks, mistakes, and what a run returns."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_type_hints
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
import torch
from tests.pipeline.command import ENVIRONMENT, RECIPES, ROOT
from tests.pipeline.test_documentation import blocks

import bertwright
from bertwright import SILENT, Batch, Encoder, Recipe, RunFolder, load_model, load_tokenizer, run
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.evaluate.shapes import Counts as Scores
from bertwright.report.shapes import Summary
from bertwright.train.shapes import MetricsRow

(SNIPPET,) = (block for block in blocks(ROOT / "docs" / "index.md", "python") if "import Recipe" in block)


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    (tmp_path / "recipes").symlink_to(RECIPES)
    return tmp_path


@pytest.mark.parametrize("way", ["file", "standard input", "notebook"])
def test_the_python_of_the_start_page_runs(way: str, workplace: Path) -> None:
    (workplace / "mine.py").write_text(SNIPPET, encoding="utf-8")
    command = {"file": ["mine.py"], "standard input": ["-"], "notebook": ["-m", "IPython", "-c", SNIPPET]}[way]
    if way == "notebook":
        pytest.importorskip("IPython", reason="IPython is not installed: pip install ipython")
    done = subprocess.run(
        [sys.executable, *command],
        cwd=workplace,
        env={**ENVIRONMENT, "IPYTHONDIR": str(workplace / "ipython")},
        input=SNIPPET if way == "standard input" else "",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (workplace / "runs" / "mine" / "examples" / "manifest.json").is_file()
    assert done.stdout.count("'entries': 1500") == 1, "no worker has run the script once more"


def test_mistakes_in_python_read_like_those_of_a_file(tmp_path: Path) -> None:
    values = {
        "corpus": {"source": "a.txt", "langauge": "hu"},
        "model": {"size": "mini"},
        "train": {"phases": [{"length": 128, "batch": 8, "learning_rate": 1e-3}]},
    }
    with pytest.raises(RecipeError) as caught:
        Recipe(**values)
    assert str(caught.value).splitlines() == [
        "Recipe: corpus.language: this key is required.",
        "Recipe: corpus.langauge: unknown key 'langauge'; did you mean 'language'?",
        "Recipe: train.phases.0: give exactly one of steps, epochs, samples, tokens; given: none",
    ]


def test_a_section_alone_says_its_own_name() -> None:
    from bertwright.optim.config import AdamWConfig

    with pytest.raises(RecipeError, match=r"^AdamWConfig: weight_decoy: unknown key 'weight_decoy'; did you mean"):
        AdamWConfig(weight_decoy=0.1)


def test_a_run_hands_back_metrics_scores_and_summary(finished: Path) -> None:
    folder = RunFolder(finished)
    assert [row["total_steps"] for row in folder.metrics] == list(range(1, 19))
    for shape, given in ((MetricsRow, folder.metrics[-1]), (Scores, folder.scores), (Summary, folder.summary)):
        assert given.keys() <= get_type_hints(shape).keys()
    assert folder.summary["mlm_loss"] == folder.scores["mlm_loss"]


def test_a_run_hands_back_its_documents_and_those_that_it_dropped(finished: Path) -> None:
    folder = RunFolder(finished)
    kept, dropped = list(folder.documents()), list(folder.documents(dropped=True))
    counts = folder.artifact("corpus").counts
    assert len(kept) == counts["kept"]
    assert len(dropped) == sum(counts["dropped"].values()) + counts["duplicates"]
    assert {each["title"] for each in kept}.isdisjoint(each["title"] for each in dropped)
    assert all(each["text"] and each["source"] == "mintawiki" for each in [*kept, *dropped])
    assert {each["reason"] for each in dropped} >= set(counts["dropped"])


def test_the_curves_of_a_run_are_pictures(
    finished: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    curves = RunFolder(finished).curves
    assert next(iter(curves)) == "Loss of masked tokens" and "word frequencies" in curves["Loss of masked tokens"]
    assert all(fromstring(svg).tag.endswith("svg") for svg in curves.values())
    training = small_examples(tmp_path / "run")
    (training / "train").mkdir()
    rows = (finished / "train" / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (training / "train" / "metrics.jsonl").write_text("".join(rows[:6]), encoding="utf-8")
    assert list(RunFolder(training).curves) == list(curves), "while it trains"


def test_what_is_not_measured_yet_names_the_verb_that_does(tmp_path: Path) -> None:
    for part, verb in (("metrics", "train"), ("scores", "evaluate"), ("summary", "report")):
        with pytest.raises(ArtifactError, match=f"Make it first: bertwright {verb} RECIPE --out"):
            getattr(RunFolder(tmp_path), part)


def test_the_public_names_are_listed_before_they_are_imported() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "import bertwright; print(*dir(bertwright))"], capture_output=True, text=True, check=True
    )
    assert set(listed.stdout.split()) == set(bertwright.__all__) and {"Recipe", "run"} <= set(bertwright.__all__)
    assert all(getattr(bertwright, name) is not None for name in bertwright.__all__)


def test_a_name_and_texts_are_enough_and_progress_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = run("smoke", stages="corpus")
    said = capsys.readouterr()
    assert folder.path == tmp_path / "runs" / "smoke" and said.out == ""
    assert "corpus: reading sample-small" in said.err and "same text as an earlier one" in said.err
    assert RunFolder("runs/smoke").artifact("corpus").manifest == folder.artifact("corpus").manifest
    Recipe.load("smoke").write("mine.toml")
    assert run("mine.toml", stages=[]).path == tmp_path / "runs" / "mine"
    silent = run(Recipe.load("smoke"), "runs/silent", ["corpus"], log=SILENT)
    assert silent.artifact("corpus").fingerprint == folder.artifact("corpus").fingerprint
    assert capsys.readouterr().err == ""


def test_a_loaded_recipe_needs_a_run_folder() -> None:
    with pytest.raises(RecipeError, match=r'^out is missing: .* Give the run folder, such as "runs/mine"\.$'):
        run(Recipe.load("smoke"))


TEXTS = ["A házi kenyér lisztből készül.", "Kovász", "Egy hosszú szöveg. " * 40, ""]


def test_a_trained_model_encodes_texts_as_transformers_does(finished: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    hf = finished / "export" / "hf"
    theirs = transformers.AutoModel.from_pretrained(hf, add_pooling_layer=False).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(hf)(TEXTS, padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        states, mask = theirs(**tokens).last_hidden_state, tokens["attention_mask"][..., None]
    expected = ((states * mask).sum(1) / mask.sum(1)).numpy()
    for path in (str(finished), finished / "train", finished / "export", str(hf)):
        vectors = Encoder(path).encode(TEXTS, batch=2)
        assert vectors.shape == expected.shape and vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, expected, atol=2e-5)
    assert Encoder(finished).encode([]).shape == (0, expected.shape[1])


def test_a_trained_model_fills_a_mask_as_transformers_does(finished: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pipeline = transformers.pipeline("fill-mask", str(finished / "export" / "hf"), top_k=3)
    text = "A házi [MASK] lisztből készül."
    ours = Encoder(str(finished)).fill_mask(text, top=3)
    assert [entry for entry, _ in ours] == [each["token_str"] for each in pipeline(text)]
    assert [p for _, p in ours] == pytest.approx([each["score"] for each in pipeline(text)], abs=1e-5)
    for wrong in ("nothing to fill", "[MASK] and [MASK]"):
        with pytest.raises(RecipeError, match=r"has [02] \[MASK\] in the tokens that the model reads"):
            Encoder(finished).fill_mask(wrong)
    with pytest.raises(RecipeError, match="has no classes"):
        Encoder(finished).classify(["one"])


def test_the_batches_of_a_run_train_a_model_in_a_plain_loop(finished: Path) -> None:
    folder, model = RunFolder(finished), load_model(finished).train()
    batches = list(folder.batches(1))
    assert len(batches) == folder.artifact("train").counts["phase_steps"][1] and isinstance(batches[0], Batch)
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-3), []
    for batch in (batch.map(torch.from_numpy) for batch in batches):
        logits, _ = model(batch)
        loss = torch.nn.functional.cross_entropy(logits, batch.labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(np.isfinite(losses))
    with pytest.raises(RecipeError, match="there is no phase 2; the training has the phases 0 to 1"):
        next(folder.batches(2))


def test_tokenizers_of_a_run_and_its_export_agree(finished: Path) -> None:
    found = [load_tokenizer(path) for path in (finished, finished / "vocab", finished / "train", finished / "export")]
    ids = [tokenizer.encode_texts(TEXTS)[0].tolist() for tokenizer in found]
    assert ids[0] and all(each == ids[0] for each in ids)


def test_what_has_no_model_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="give a finished train folder, or a folder in the format of transformers"):
        load_model(tmp_path)
    (tmp_path / "recipe.toml").write_text("", encoding="utf-8")
    with pytest.raises(ArtifactError, match="is not finished. Finish it with `bertwright run"):
        Encoder(str(tmp_path))
