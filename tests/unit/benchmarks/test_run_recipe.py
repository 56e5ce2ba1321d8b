"""Recipes run by benchmarks: in a process of its own each, from stages that are linked whole."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import run_recipe as program
from run_recipe import MADE, Refused, linked, run_recipe

pytestmark = pytest.mark.heavy


def test_stages_are_linked_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that was killed half way is no stage: it is made again."""
    for stage in MADE:
        (tmp_path / "made" / stage / "inner").mkdir(parents=True)
        for name in ("a", "inner/b"):
            (tmp_path / "made" / stage / name).write_text(f"{stage} {name}")
    real, run = program.os.link, tmp_path / "run"

    def killed(source: str, place: str) -> None:
        if "vocab" in str(source) and str(source).endswith("b"):
            raise KeyboardInterrupt
        real(source, place)

    monkeypatch.setattr(program.os, "link", killed)
    with pytest.raises(KeyboardInterrupt):
        linked(tmp_path / "made", run)
    assert (run / "corpus").exists() and not (run / "vocab").exists()
    monkeypatch.setattr(program.os, "link", real)
    linked(tmp_path / "made", run)
    assert (run / "vocab" / "inner" / "b").read_text() == "vocab inner/b"
    assert sorted(path.name for path in run.iterdir()) == sorted(MADE)
    (run / "corpus" / "a").unlink()
    linked(tmp_path / "made", run)
    assert not (run / "corpus" / "a").exists(), "what is there is left alone"


def test_a_recipe_is_run_in_a_process_of_its_own_and_its_refusal_is_told(small_recipe: Path, tmp_path: Path) -> None:
    run_recipe(small_recipe, ["vocab.size=150"], tmp_path, "vocab")
    assert (tmp_path / "vocab" / "manifest.json").is_file() and not (tmp_path / "examples").exists()
    with pytest.raises(Refused, match=r"vocab.size"):
        run_recipe(small_recipe, ["vocab.size=-1"], tmp_path, "vocab")
    with pytest.raises(SystemExit, match=r"bertwright run small.toml ended with exit code [13-9]\d*: .*nowhere"):
        run_recipe(small_recipe, [f"corpus.source={{path='{tmp_path}/nowhere'}}"], tmp_path / "other", "vocab")
