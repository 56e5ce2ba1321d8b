"""Each network family end to end at a small size, from the corpus to the exported folder and the page."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.conftest import Call

from bertwright import Recipe, run

MODERN = {
    "vocab_size": 400,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "local_attention": 8,
    "global_attn_every_n_layers": 2,
}
DISTILBERT = {
    "vocab_size": 400,
    "dim": 16,
    "n_layers": 1,
    "n_heads": 2,
    "hidden_dim": 32,
    "max_position_embeddings": 32,
}
FAMILIES = {
    "modern": (MODERN, "modernbert", "ModernBertForMaskedLM"),
    "distilbert": (DISTILBERT, "distilbert", "DistilBertForMaskedLM"),
}
families = pytest.mark.parametrize("kind", FAMILIES)


def overrides(kind: str, folder: Path) -> list[str]:
    """The keys that switch the small recipe to this family, with all the dropout it supports."""
    path = folder / f"{kind}.json"
    path.write_text(json.dumps(FAMILIES[kind][0]))
    return [f"model.kind={kind}", f"model.config={path}", "model.attention_dropout=0.1", "examples.plan=full-sentences"]


@pytest.fixture(scope="module")
def flat(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder without pairs, finished up to the stage examples; all families share it."""
    made = tmp_path_factory.mktemp("flat") / "run"
    run(Recipe.load(small_recipe, ["examples.plan=full-sentences"]), made, ["corpus", "vocab", "examples"])
    return made


@families
@pytest.mark.parametrize("attention", ["sequences", "padded"])
def test_the_whole_road(kind: str, attention: str, small_recipe: Path, flat: Path, tmp_path: Path) -> None:
    _, model_type, architecture = FAMILIES[kind]
    folder = Path(shutil.copytree(flat, tmp_path / "run"))
    more = [f"train.attention={attention}", "train.phases.1.packing=true", "optim.kind=adamw"]
    more += ["train.phases.0.steps=60", "train.phases.0.learning_rate=0.01"]
    done = run(Recipe.load(small_recipe, [*overrides(kind, tmp_path), *more]), folder)
    assert json.loads((folder / "train" / "model" / "config.json").read_text())["model_type"] == kind
    config = json.loads((folder / "export" / "hf" / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == (model_type, [architecture])
    exported = done.artifact("export").counts
    assert exported["mlm_difference"] < 1e-4 and "nsp_difference" not in exported
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["nsp_accuracy"] is None and summary["mlm_loss"] > 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "family" in page and kind in page
    rows = [json.loads(line) for line in (folder / "train" / "metrics.jsonl").read_text().splitlines()]
    first, last = (sum(row["mlm_loss"] for row in some) / 5 for some in (rows[:5], rows[55:60]))
    assert last < first - 0.3, "it learns"


@families
def test_a_stopped_training_goes_on_and_is_looked_at(
    kind: str, small_recipe: Path, flat: Path, tmp_path: Path, call: Call
) -> None:
    """Checkpoints and model folders built from them record the family; a resumed run ends like an uninterrupted one."""
    folder, undisturbed = (Path(shutil.copytree(flat, tmp_path / name)) for name in ("stopped", "undisturbed"))
    words = overrides(kind, tmp_path)
    for out in (undisturbed, folder):
        assert call("train", small_recipe, *words, "--out", out).code == 0
    # Mimics a kill two checkpoints before the last.
    shutil.rmtree(folder / "train" / "model")
    (folder / "train" / "manifest.json").unlink()
    for newer in sorted((folder / "train" / "checkpoints").iterdir())[-2:]:
        shutil.rmtree(newer)
    looked = call("evaluate", small_recipe, *words, "--out", folder)
    assert looked.code == 0, looked.err
    (config,) = folder.glob("unfinished/*/train/model/config.json")
    assert json.loads(config.read_text())["model_type"] == kind
    again = call("train", small_recipe, *words, "--out", folder)
    assert again.code == 0 and "resuming from" in again.err, again.err
    ended, expected = (out / "train" / "model" / "model.safetensors" for out in (folder, undisturbed))
    assert ended.read_bytes() == expected.read_bytes()


def test_a_recipe_of_pairs_is_refused_before_anything_is_made(small_recipe: Path, tmp_path: Path, call: Call) -> None:
    words: list[Any] = [*overrides("modern", tmp_path)[:-1], "--out", tmp_path / "run"]
    for verb in (["run", small_recipe, *words], ["check", small_recipe, *words[:-2]]):
        done = call(*verb)
        assert done.code == 2 and not (tmp_path / "run").exists()
        assert "model.kind: modern has no segments and no next-sentence head" in done.err.replace("\n", " ")
        assert "set examples.plan=full-sentences or doc-sentences" in " ".join(done.err.split())
