"""End to end without next-sentence prediction: no pairs, no head for them, and no invented scores."""

import json
from pathlib import Path

from tests.pipeline.command import RECIPES

from bertwright import Recipe, run

FEW = ["train.phases.0.steps=2", "train.phases.1.steps=2", "train.heldout_sequences=16", "evaluate.max_sequences=16"]


def test_the_road_without_pairs(tmp_path: Path) -> None:
    recipe = Recipe.load(RECIPES / "smoke.toml", ["examples.plan=doc-sentences", "corpus.workers=1", *FEW])
    folder = run(recipe, tmp_path / "run").path
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["nsp_accuracy"] is None and summary["mlm_loss"] > 0
    config = json.loads((folder / "export" / "hf" / "config.json").read_text())
    assert config["architectures"] == ["BertForMaskedLM"]
    assert "next-sentence accuracy" not in (folder / "export" / "hf" / "README.md").read_text()
    rows = [json.loads(line) for line in (folder / "train" / "metrics.jsonl").read_text().splitlines()]
    assert not any("heldout_nsp_accuracy" in row for row in rows)


def test_another_vocabulary_in_the_same_process_is_not_taken_for_the_first(tmp_path: Path) -> None:
    """A tokenizer cached between tasks by path alone built a store of the old words under the new fingerprint."""
    stages = ["corpus", "vocab", "examples"]
    counts = []
    for size in (600, 1200, 600):
        recipe = Recipe.load(RECIPES / "smoke.toml", [f"vocab.size={size}", "corpus.workers=1", "examples.workers=1"])
        counts.append(run(recipe, tmp_path / "one", stages).artifact("examples").counts["train"]["tokens"])
    fresh = Recipe.load(RECIPES / "smoke.toml", ["vocab.size=1200", "corpus.workers=1", "examples.workers=1"])
    alone = run(fresh, tmp_path / "two", stages).artifact("examples").counts["train"]["tokens"]
    assert counts[1] == alone < counts[0] == counts[2]
