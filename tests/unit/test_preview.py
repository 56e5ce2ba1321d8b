"""An unfinished run is looked at without being touched, and what is made of it is never taken for the result."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from bertwright import Recipe, RunFolder, run
from bertwright.core.artifact import open_artifact
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import read_json, sha256
from bertwright.core.log import Silent
from bertwright.core.work_split import FolderLock
from bertwright.train import run as loop

Load = Callable[..., Recipe]


def state(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file of a run but those of `unfinished/`."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and "unfinished" not in p.relative_to(folder).parts)
    return {str(p): (p.stat().st_mtime_ns, sha256(p)) for p in files}


@pytest.fixture
def stopped(trained: Path) -> Path:
    """A run killed after step 3 of 3, whose newest checkpoint is that of step 2."""
    train = trained / "train"
    (train / "manifest.json").unlink()
    shutil.rmtree(train / "model")
    shutil.rmtree(train / "checkpoints" / "step-000000003")
    return trained


def test_a_run_that_is_under_way_is_scored_exported_and_shown(stopped: Path, load: Load) -> None:
    before = state(stopped)
    with FolderLock(stopped):  # as the running training has it
        folder = run(load(), stopped, ["evaluate", "export", "report"])
    assert state(stopped) == before
    assert folder.path == stopped / "unfinished" / "after-step-000000002"
    note = {"checkpoint": "step-000000002", "step": 2, "steps": 3, "phase": 0}
    for place in ("train/manifest.json", "evaluate/manifest.json", "export/manifest.json"):
        assert read_json(folder.path / place)["counts"]["unfinished"] == note
    assert folder.scores["unfinished"] == folder.summary["unfinished"] == note  # type: ignore[typeddict-item]
    assert [row["total_steps"] for row in folder.metrics] == [1, 2]
    page = (folder.path / "report.html").read_text(encoding="utf-8")
    card = (folder.path / "export" / "hf" / "README.md").read_text(encoding="utf-8")
    assert "<b>Unfinished.</b>" in page and "step-000000002</code>: step 2 of 3" in page and "2 of 3</td>" in page
    assert "**Unfinished.** This is the checkpoint `step-000000002`" in card and "step 2 of 3" in card
    again = state(folder.path)
    assert run(load(), stopped, ["evaluate"]).path == folder.path and state(folder.path) == again


def test_the_finished_result_is_made_anew(stopped: Path, load: Load, _trained: Path) -> None:
    looked = run(load(), stopped, ["evaluate"])
    done = run(load(), stopped, ["train", "evaluate"])
    assert done.artifact("train").fingerprint == open_artifact(_trained / "train").fingerprint, "not disturbed"
    for stage in ("train", "evaluate"):
        assert looked.artifact(stage).fingerprint != done.artifact(stage).fingerprint
    assert "unfinished" not in done.artifact("train").counts and "unfinished" not in done.scores
    assert run(load(), stopped, ["evaluate"]).path == stopped


def test_scores_need_no_corpus(stopped: Path, load: Load) -> None:
    shutil.rmtree(stopped / "corpus")
    assert "mlm_loss" in run(load(), stopped, ["evaluate"]).scores
    with pytest.raises(ArtifactError, match="corpus"):
        run(load(), stopped, ["report"])


def test_a_page_alone_shows_what_training_scored(stopped: Path, load: Load) -> None:
    folder = run(load(), stopped, ["report"])
    page = (folder.path / "report.html").read_text(encoding="utf-8")
    assert "Scores are those measured during training on held-out documents at step 2." in page
    assert "The stage evaluate has not run yet" in page and "export/hf" not in page
    assert not (folder.path / "evaluate").exists()


def test_checkpoints_of_other_settings_are_not_looked_at(stopped: Path, load: Load) -> None:
    with pytest.raises(ArtifactError, match=r"holds checkpoints trained with other settings.*train.seed: 42 -> 7"):
        run(load("train.seed=7"), stopped, ["report"])
    assert not (stopped / "unfinished").exists()


def test_a_damaged_checkpoint_is_passed_over(stopped: Path, load: Load) -> None:
    (stopped / "train" / "checkpoints" / "step-000000002" / "model.safetensors").write_bytes(b"")
    assert run(load(), stopped, ["report"]).path.name == "after-step-000000001"


class Watching(Silent):
    """Reads the page of the run at each row of metrics."""

    def __init__(self, folder: Path) -> None:
        self.page, self.seen, self.said = folder / "report.html", list[str](), list[str]()

    def record(self, row: dict[str, Any]) -> None:
        self.seen.append(self.page.read_text(encoding="utf-8") if self.page.is_file() else "")

    def say(self, message: str) -> None:
        self.said.append(message)


def test_the_page_is_there_from_the_first_checkpoint(trained: Path, load: Load, _trained: Path) -> None:
    shutil.rmtree(trained / "train")
    watching = Watching(trained)
    done = run(load(), trained, ["train"], watching)
    assert ["step 1 of 3" in page for page in watching.seen] == [False, True, False]
    assert "step 2 of 3" in watching.seen[2] and "Written <time" in watching.seen[2]
    assert done.artifact("train").counts["weights"] == open_artifact(_trained / "train").counts["weights"]
    assert not (trained / "summary.json").exists(), "which only a finished run has"


def test_a_training_that_diverges_says_so_on_its_page(
    trained: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(trained / "train")
    right, recipe, taken = loop.train_step, load("train.guard.patience=2"), list[int]()

    def train_step(trained: Any, batches: Any, totals: Any, update: Any) -> Any:
        taken.append(1)
        return right(trained, batches, totals, replace(update, norm_limit=0.0) if len(taken) > 1 else update)

    monkeypatch.setattr(loop, "train_step", train_step)
    with pytest.raises(DataError, match=r"in 2 steps in a row \(phase 0, step 3\): training has diverged") as caught:
        run(recipe, trained, ["train"])
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert f"<b>Training has stopped:</b> {escape(str(caught.value))}</p>" in page
    assert "step-000000002</code>: step 2 of 3" in page
    rows = (trained / "train" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["total_steps"] for row in rows] == [1, 2, 3]
    assert [row["total_steps"] for row in RunFolder(trained).metrics] == [1, 2], "no step of its own"
    monkeypatch.undo()
    run(recipe, trained, ["train"])
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert "Training has stopped" not in page and [r["total_steps"] for r in RunFolder(trained).metrics] == [1, 2, 3]


def test_a_page_that_cannot_be_written_is_only_logged(trained: Path, load: Load) -> None:
    shutil.rmtree(trained / "train")
    (trained / "report.html").unlink(missing_ok=True)
    (trained / "report.html").mkdir()
    watching = Watching(trained)
    run(load(), trained, ["train"], watching)
    assert [m for m in watching.said if m.startswith("report: no page was made at step-000000001: cannot write")]


def test_nor_does_a_fault_of_the_page_end_it(trained: Path, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("mlm_loss")

    monkeypatch.setattr("bertwright.report.run.write_page", broken)
    shutil.rmtree(trained / "train")
    watching = Watching(trained)
    done = run(load(), trained, ["train"], watching)
    assert done.artifact("train").counts["steps"] == 3
    assert "report: no page was made at step-000000003: KeyError: 'mlm_loss'" in watching.said
