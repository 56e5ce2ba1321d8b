"""Imported examples end to end: a recipe without a corpus trains on NVIDIA-format files written by a run."""

import json
import shutil
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call
from tests.pipeline.few_packages import FEW, printed

from bertwright import Recipe
from bertwright.cli.conversion import ConvertOptions, convert
from bertwright.core.artifact import open_artifact
from bertwright.core.files import read_json, sha256
from bertwright.formats.format import Kind
from bertwright.formats.target import Target
from bertwright.pipeline.run_folder import RunFolder
from bertwright.train.settings.phases import resolve_phases

RECIPE = """
[vocab]
file = {vocab}

[texts]
language = "hu"
licence = "Apache-2.0"

[model]
config = {model}

[optim]
kind = "lamb"

[[train.phases]]
length = 16
batch = 8
learning_rate = 4e-3
steps = 12
data = {first}

[[train.phases]]
length = 32
batch = 4
micro_batch = 2
learning_rate = 2e-3
steps = 6
data = {second}

[train]
heldout_sequences = 16
checkpoint_every = 4
log_every = 1
device = "cpu"
"""

TRAINED = """
from bertwright import Recipe, RunFolder, run

run(Recipe.load(folder / "recipe.toml", unread=RunFolder(folder).unread), folder, ["train"])
"""


@pytest.fixture(scope="module")
def recipe(finished: Path, small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe whose data are the examples of the finished run in NVIDIA's format."""
    return converted(finished, small_recipe, tmp_path_factory.mktemp("elsewhere"), "hdf5")


def converted(finished: Path, small_recipe: Path, folder: Path, kind: Kind) -> Path:
    """A recipe in `folder` whose data are the examples of the finished run, written there in that format."""
    convert(finished, folder / kind, Target(kind), ConvertOptions(files=2))
    first, second = sorted(path for path in (folder / kind).iterdir() if path.is_dir())[-2:]
    shutil.copy(finished / "vocab" / "vocab.txt", folder)
    paths = {
        "vocab": folder / "vocab.txt",
        "model": small_recipe.parent / "bert.json",
        "first": first,
        "second": second,
    }
    text = RECIPE.format(**{name: json.dumps(str(path)) for name, path in paths.items()})
    (folder / "data.toml").write_text(text)
    return folder / "data.toml"


def test_the_road_without_a_corpus(recipe: Path, finished: Path, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "run"
    checked = call("check", recipe)
    assert checked.code == 0 and "held out: 1 file for testing (" in " ".join(checked.out.split())
    done = call("run", recipe, "--out", out)
    assert done.code == 0, done.err
    assert not (out / "corpus").exists()
    summary = read_json(out / "summary.json")
    assert list(summary["stages"]) == ["vocab", "examples", "train", "evaluate", "export", "report"]
    assert summary["mlm_loss"] > 0 and summary["nsp_accuracy"] is not None and summary["steps"] == 18
    own = open_artifact(finished / "examples").counts["heldout"]["rows"]
    assert open_artifact(out / "examples").counts["heldout"]["rows"] == own, "what the run held out is held out here"
    page = (out / "report.html").read_text()
    assert 'id="corpus"' not in page and "examples made elsewhere, in the language <b>hu</b>" in page
    assert "sequences from held-out examples, which training never saw" in page
    card = (out / "export" / "hf" / "README.md").read_text()
    file = next(recipe.parent.rglob("*_training_1.hdf5"))
    assert 'language: ["hu"]\n' in card and "Licence of the texts: Apache-2.0." in card and sha256(file) in card
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != ".lock"}
    again = call("run", recipe, "--out", out)
    assert again.code == 0, again.err
    assert {path: path.stat().st_mtime_ns for path in before} == before, "the same command again does nothing"
    for look in (["inspect", out], ["inspect", out, "--verify"], ["inspect", out, "--batch", "3"]):
        assert call(*look).code == 0
    assert "corpus" not in call("inspect", out).out


def test_each_stage_is_a_verb_and_another_licence_makes_another_card_alone(
    recipe: Path, tmp_path: Path, call: Call
) -> None:
    out = tmp_path / "run"
    refused = call("corpus", recipe, "--out", out)
    assert refused.code and "the recipe has no [corpus]" in refused.err
    for stage in ("vocab", "examples", "train", "evaluate", "export", "report"):
        done = call(stage, recipe, "--out", out)
        assert done.code == 0, done.err
    other = call("run", recipe, "texts.licence=CC0", "--out", out)
    assert other.code == 0 and "texts.licence: 'Apache-2.0' -> 'CC0'" in " ".join(other.err.split())
    assert "Licence of the texts: CC0." in (out / "export" / "hf" / "README.md").read_text()
    assert other.err.count("built again") == 1


@pytest.mark.parametrize("kind", ["hdf5", pytest.param("lddl", marks=pytest.mark.slow)])
def test_prepared_data_is_trained_without_the_files_it_was_made_from(
    kind: Kind, finished: Path, small_recipe: Path, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "made").mkdir()
    recipe, out, copy = converted(finished, small_recipe, tmp_path / "made", kind), tmp_path / "run", tmp_path / "copy"
    assert call("run", recipe, "--out", out, "--until", "examples").code == 0
    shutil.copytree(out, copy)
    shutil.rmtree(tmp_path / "made" / kind)
    done = call("train", out / "recipe.toml", "--out", out)
    assert done.code == 0, done.err
    printed(FEW + TRAINED, copy)
    first, second = (RunFolder(folder).artifact("train") for folder in (out, copy))
    assert first.counts["weights"] == second.counts["weights"]
    refused = call("run", recipe, "--out", tmp_path / "other")
    assert refused.code and "does not exist; give an examples folder, or files of examples" in refused.err


def test_any_ranks_see_the_same_and_an_unfinished_run_can_be_looked_at(
    recipe: Path, tmp_path: Path, call: Call
) -> None:
    out = tmp_path / "run"
    assert call("run", recipe, "--out", out, "--until", "examples").code == 0
    loaded = Recipe.load(recipe)
    folder = RunFolder(out)
    phases = resolve_phases(loaded.train, folder.artifact("examples"), folder.artifact("vocab"))
    for phase in phases:
        for step in (0, 3):
            whole = sum(batch.counts.tokens for batch in phase.loader.step(step))
            parts = [phase.loader.step(step, rank, 2) for rank in (0, 1)]
            assert sum(batch.counts.tokens for part in parts for batch in part) == whole
    done = call("train", recipe, "train.phases.1.end_after=2", "--out", out)
    assert done.code == 0, done.err
    newest = max((out / "train" / "checkpoints").glob("step-*"))
    (out / "train" / "manifest.json").unlink()
    shown = call("report", recipe, "train.phases.1.end_after=4", "--out", out)
    assert shown.code == 0, shown.err
    assert "examples made elsewhere" in (out / "unfinished" / f"after-{newest.name}" / "report.html").read_text()
