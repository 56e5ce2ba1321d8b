"""The end-to-end benchmark on the small built-in sample."""

from pathlib import Path

import pytest
from benchmarks.road import main

SMALL = (
    "corpus.filter.languages=['hu', 'en']",
    "vocab.size=400",
    "examples.heldout=0.2",
    "examples.passes=1",
    "train.phases.0.length=32",
    "train.phases.0.steps=4",
    "train.heldout_sequences=16",
    "train.device=cpu",
)


def test_every_row_has_its_number(small_recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main("sample-small", "hu", f'model={{config="{small_recipe.parent / "bert.json"}"}}', *SMALL)
    title, _, *table = capsys.readouterr().out.splitlines()
    assert title.startswith("### sample-small, ")
    cells = dict(line.strip("| ").split(" | ") for line in table if not line.startswith("|---"))
    assert cells["training"].startswith("4 steps, ")
    assert cells["held-out accuracy"].count("%") == 2 and "commonest token" in cells["held-out accuracy"]
    assert cells["export"].startswith("transformers agrees to ") and cells["whole road"].endswith(" s")
