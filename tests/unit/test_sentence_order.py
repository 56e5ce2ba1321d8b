"""The order of sentences as a task (Lan et al. 2020 §3.1), the whole road: its head is trained, and has its name."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.rows import each_row
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright import Recipe, RunFolder, run
from bertwright.cli.batch_text import describe_batch
from bertwright.core.errors import Interrupted

pytestmark = pytest.mark.heavy

KEYS = (
    "examples.plan=sentence-order",
    "train.phases.0.length=32",
    "train.phases.0.steps=60",
    "train.phases.0.learning_rate=0.01",
    "train.log_every=1",
)


@pytest.fixture(scope="module")
def ordered(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(Recipe.load(small_recipe, KEYS), tmp_path_factory.mktemp("ordered") / "run")


def test_rows_and_scores_speak_of_sop_and_not_of_nsp(ordered: RunFolder) -> None:
    rows: list[Any] = ordered.metrics
    assert all("sop_loss" in row and "nsp_loss" not in row for row in rows)
    scored = [row for row in rows if "heldout_mlm_loss" in row]
    assert scored and all("heldout_sop_accuracy" in row and "heldout_nsp_accuracy" not in row for row in scored)
    scores: Any = ordered.scores
    assert 0 <= scores["sop_accuracy"] <= 1 and 0.5 <= scores["sop_majority"] <= 1
    assert scores["sop_loss"] > 0 and 0 < scores["sop_label_share"] < 1
    assert all(scores[f"nsp_{name}"] is None for name in ("loss", "accuracy", "majority", "label_share"))
    summary: Any = ordered.summary
    assert (summary["sop_accuracy"], summary["sop_majority"]) == (scores["sop_accuracy"], scores["sop_majority"])
    assert summary["nsp_accuracy"] is None


@each_row("error", [None, RuntimeError])
def test_stopped_or_crashed_and_continued_it_ends_bit_identical(
    error: type[Exception] | None, ordered: RunFolder, small_recipe: Path, tmp_path: Path
) -> None:
    for stage in ("corpus", "vocab", "examples"):
        (tmp_path / stage).symlink_to(ordered.path / stage)
    recipe = Recipe.load(small_recipe, KEYS)
    with pytest.raises(error or Interrupted):
        run(recipe, tmp_path, ["train"], log=Notes(kill_at_row=23, error=error))
    run(recipe, tmp_path, ["train"])
    assert same(weights(RunFolder(tmp_path).artifact("train")), weights(ordered.artifact("train")))
    assert metric_lines(tmp_path / "train") == metric_lines(ordered.path / "train")


def test_page_card_and_batches_name_the_task(ordered: RunFolder) -> None:
    page = (ordered.path / "report.html").read_text(encoding="utf-8")
    assert "sentence-order accuracy" in page and "sentence order" in page and "next-sentence accuracy" not in page
    card = (ordered.path / "export" / "hf" / "README.md").read_text(encoding="utf-8")
    assert "| sentence-order accuracy |" in card and "next-sentence accuracy" not in card
    assert "1 says that the segments are swapped" in card
    shown = [name for name in describe_batch(ordered.path, 0, 1) if name.startswith("sequence ")]
    assert shown and {name[len("sequence 0") :] for name in shown} <= {" (in order)", " (swapped)"}


def test_the_head_learns_from_the_labels(ordered: RunFolder) -> None:
    """Every one of its weights has had gradients, and about half of the pairs are swapped."""
    folder = ordered.path / "train"
    checkpoints = sorted((folder / "checkpoints").iterdir())
    name = "nsp.classifier.weight"
    weights = [load_file(path / "model.safetensors")[name] for path in (checkpoints[0], checkpoints[-1])]
    moments = load_file(checkpoints[-1] / "optimizer.safetensors")
    assert not torch.equal(*weights) and bool((moments[f"exp_avg_sq.{name}"] > 0).all())
    losses: list[Any] = [row["sop_loss"] for row in ordered.metrics]  # type: ignore[typeddict-item]
    assert len(set(losses)) > 50 and sum(losses[-10:]) < sum(losses[:10])
    counts = json.loads((ordered.path / "examples" / "manifest.json").read_text())["counts"]
    assert all(0.3 < of_length["label_share"] < 0.7 for of_length in counts["train"]["sequences"].values())
