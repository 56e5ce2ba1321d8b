"""A classifier with the features of any training: several ranks, bfloat16, comparison and rehearsal."""

import json
import shutil
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call
from tests.pipeline.test_lost_ranks import said, start_two
from tests.pipeline.test_ranks import metrics
from tests.unit.test_classification import recipe, texts

from bertwright import Recipe, RunFolder
from bertwright.check.recipe import packages
from bertwright.core.errors import MissingExtraError

TRAINED = ("train.phases.0.epochs=4", "train.log_every=1")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The path of a classifier recipe without dropout."""
    recipe(tmp_path, 'labels = ["poor", "fine"]', texts())
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path / "recipe.toml"


def losses(folder: Path, name: str = "classification_loss") -> list[float]:
    return [row[name] for row in metrics(folder) if name in row]


def test_without_deepspeed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = packages.find_spec
    monkeypatch.setattr(packages, "find_spec", lambda name: None if name == "deepspeed" else found(name))
    verdicts = list(packages.packages(Recipe.load("azure-glue", ["preset=bert-large-deepspeed"]), ["train"]))
    (missing,) = (verdict for verdict in verdicts if verdict.about == "train.engine")
    assert missing.kind is MissingExtraError and missing.text.endswith("pip install 'bertwright[deepspeed]'.")
    assert not [v for v in packages.packages(Recipe.load("azure-glue"), ["train"]) if v.about == "train.engine"]


def test_two_ranks_train_as_one_process(written: Path, tmp_path: Path, call: Call) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert call("run", written, *TRAINED, "--until", "examples", "--out", alone).code == 0
    shutil.copytree(alone, together)
    one = call("train", written, *TRAINED, "--out", alone)
    assert one.code == 0, one.err
    ranks = start_two(written, together, *TRAINED)
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(together, 0) + said(together, 1)
    for name in ("classification_loss", "heldout_classification_loss", "heldout_classification_accuracy", "heldout_f1"):
        assert losses(together, name) == pytest.approx(losses(alone, name), abs=1e-6)
    assert len(losses(alone)) == 18 and len(set(losses(alone))) == 18


def test_bfloat16_learns_as_float32_does(written: Path, tmp_path: Path, call: Call) -> None:
    full, half = tmp_path / "full", tmp_path / "half"
    assert call("run", written, *TRAINED, "--until", "train", "--out", full).code == 0
    done = call(
        "run", written, *TRAINED, 'train.precision={kind="bf16",allow_slow=true}', "--until", "train", "--out", half
    )
    assert done.code == 0, done.err
    assert losses(half) != losses(full)
    assert losses(half) == pytest.approx(losses(full), abs=0.05)


def test_classifiers_are_compared(written: Path, tmp_path: Path, call: Call) -> None:
    for seed in (1, 2):
        done = call(
            "run", written, *TRAINED, f"train.seed={seed}", "--until", "evaluate", "--out", tmp_path / f"{seed}"
        )
        assert done.code == 0, done.err
    scores = RunFolder(tmp_path / "1").scores
    assert "mlm_loss" not in scores and scores["accuracy"] >= scores["majority"]
    shown = tmp_path / "shown"
    done = call("report", tmp_path / "1", tmp_path / "2", "--out", shown, "--json")
    assert done.code == 0, done.err
    first, second = json.loads(done.out)["runs"]
    assert first["accuracy"] == scores["accuracy"] and "mlm_loss" not in first
    assert first["classification_loss"] != second["classification_loss"]
    page = (shown / "comparison.html").read_text(encoding="utf-8")
    for wanted in ("loss of classes (nats)", "Matthews' correlation", "Held-out accuracy of classes"):
        assert wanted in page
    assert "masked-token" not in page and "train.seed" in page


def test_of_an_unfinished_classifier_the_last_scores_are_compared(written: Path, tmp_path: Path, call: Call) -> None:
    for seed in (1, 2):
        command = ("run", written, *TRAINED, f"train.seed={seed}", "--until", "train", "--out", tmp_path / f"{seed}")
        assert call(*command).code == 0
    done = call("report", tmp_path / "1", tmp_path / "2", "--out", tmp_path / "shown", "--json")
    assert done.code == 0, done.err
    (first, _) = json.loads(done.out)["runs"]
    assert first["accuracy"] == losses(tmp_path / "1", "heldout_classification_accuracy")[-1]


@pytest.mark.slow
def test_a_classifier_is_rehearsed(written: Path, tmp_path: Path, call: Call) -> None:
    done = call("run", written, "--rehearse", "--json", "--out", tmp_path / "run")
    assert done.code == 0, (done.out, done.err)
    parts = {part["part"]: part["outcome"] for part in json.loads(done.out)["parts"]}
    assert {parts[name] for name in ("vocab", "examples", "train", "resume", "evaluate", "export", "report")} == {"ok"}
    assert not (tmp_path / "run").exists()
