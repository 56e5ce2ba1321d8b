"""One flipped bit in any file of a finished run is detected by `inspect --verify` and by everything that uses it."""

import re
import shutil
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call

from bertwright.core.artifact import MANIFEST

MADE_FROM_THE_REST = ("recipe.toml", "report.html", "summary.json")
"""Files outside the artifacts: no stage reads them, and the same command rewrites them."""


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def test_verify_misses_a_stage_that_the_summary_tells_of(folder: Path, call: Call) -> None:
    (folder / "evaluate").rename(folder / "elsewhere")
    done = call("inspect", folder, "--verify")
    assert done.code == 4 and f"{folder / 'evaluate'} has no manifest.json" in done.err


def test_inspect_says_that_the_recipe_is_not_the_one_of_the_report(folder: Path, call: Call) -> None:
    text = (folder / "recipe.toml").read_text()
    (folder / "recipe.toml").write_text(text.replace('title = ""', 'title = "other"'))
    assert "changed since the report was written" in call("inspect", folder).out
    (folder / "recipe.toml").write_text(text)
    assert "changed since" not in call("inspect", folder).out


def test_verify_finds_a_flipped_bit_in_any_file_of_any_artifact(folder: Path, call: Call) -> None:
    whole = call("inspect", folder, "--verify")
    assert whole.code == 0, whole.err
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.stat().st_size and p.parent != folder]
    assert len(paths) > 40 and sum(p.name == MANIFEST for p in paths) > 8
    for path in paths:
        data = path.read_bytes()
        for number, at in enumerate((0, len(data) // 3, len(data) - 2)):
            flip(path, at, bit=(3 * number + 1) % 8)
            done = call("inspect", folder, "--verify")
            assert done.code == 4, f"bit at byte {at:,} of {path} was not found"
            assert str(path) in done.err and done.out == ""
            path.write_bytes(data)
    assert call("inspect", folder, "--verify").code == 0


@pytest.mark.parametrize("name", MADE_FROM_THE_REST)
def test_what_is_made_from_the_rest_is_mended_by_the_same_command(
    name: str, folder: Path, call: Call, small_recipe: Path
) -> None:
    path = folder / name
    data = path.read_bytes()
    flip(path, len(data) // 2)
    done = call("run", small_recipe, "--out", folder)
    assert done.code == 0, done.err
    assert without_time(path.read_bytes()) == without_time(data)


def without_time(page: bytes) -> bytes:
    """The page without the time at which it was written."""
    return re.sub(rb"<time .*?</time>", b"", page)


@pytest.mark.parametrize(
    ("damaged", "override"),
    [
        ("examples/store/train.tokens", "train.phases.1.steps=8"),
        ("examples/plans/train/32/00.rows", "train.phases.1.steps=8"),
        ("train/model/model.safetensors", "evaluate.samples=1"),
        ("evaluate/predictions.json", "export.name=other"),
        ("vocab/manifest.json", "evaluate.samples=1"),
        ("vocab/vocab.txt", "evaluate.samples=1"),
        ("examples/plans/heldout/16/00.rows", "evaluate.samples=1"),
        ("examples/store/heldout.hashes", "evaluate.samples=1"),
    ],
)
def test_a_stage_refuses_a_damaged_input(
    damaged: str, override: str, folder: Path, call: Call, small_recipe: Path
) -> None:
    path = folder / damaged
    flip(path, path.stat().st_size // 2)
    done = call("run", small_recipe, override, "--out", folder)
    assert done.code == 4
    assert f"{path} is damaged" in done.err or f"cannot read {path}" in done.err
    assert str(path.parent) in done.err


@pytest.mark.parametrize(
    ("damaged", "override"),
    [("corpus/shards/00000.txt.zst", "vocab.size=300"), ("vocab/tokenizer.json", "examples.passes=2")],
)
def test_preparing_anew_refuses_a_damaged_input(
    damaged: str, override: str, folder: Path, call: Call, small_recipe: Path
) -> None:
    path = folder / damaged
    flip(path, path.stat().st_size // 2)
    done = call("run", small_recipe, override, "--until", "examples", "--out", folder)
    assert done.code == 4 and f"{path} is damaged" in done.err


@pytest.mark.parametrize("name", ["corpus/shards/00000.jsonl.zst", "examples/store/train.tokens", "vocab/vocab.txt"])
def test_a_missing_or_shortened_file_is_noticed_even_when_nothing_is_to_do(
    name: str, folder: Path, call: Call, small_recipe: Path
) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-1])
    short = call("run", small_recipe, "--out", folder)
    assert short.code == 4 and str(path) in short.err
    path.unlink()
    missing = call("run", small_recipe, "--out", folder)
    assert missing.code == 4 and str(path) in missing.err


def test_training_falls_back_to_the_newest_whole_checkpoint_and_says_so(
    folder: Path, call: Call, small_recipe: Path
) -> None:
    steps = sorted((folder / "train" / "checkpoints").iterdir())
    assert len(steps) >= 3
    for step, name in ((steps[-1], "model.safetensors"), (steps[-2], "state.json")):
        flip(step / name, 20)
    done = call("run", small_recipe, "train.phases.1.steps=8", "--until", "train", "--out", folder)
    assert done.code == 0, done.err
    assert f"train: skipping the damaged checkpoint {steps[-1].name}" in done.err
    assert f"train: skipping the damaged checkpoint {steps[-2].name}" in done.err
    assert f"train: resuming from {steps[-3].name}" in done.err


def test_training_never_starts_from_zero_because_all_checkpoints_are_damaged(
    folder: Path, call: Call, small_recipe: Path
) -> None:
    checkpoints = folder / "train" / "checkpoints"
    for step in checkpoints.iterdir():
        flip(step / "optimizer.safetensors", 100)
    metrics = (folder / "train" / "metrics.jsonl").read_bytes()
    done = call("run", small_recipe, "train.phases.1.steps=8", "--until", "train", "--out", folder)
    assert done.code == 4
    assert f"checkpoints in {checkpoints} is complete" in done.err and "Restore one from a copy" in done.err
    assert (folder / "train" / "metrics.jsonl").read_bytes() == metrics


def test_damaged_checkpoints_are_replaced_as_training_passes_them(folder: Path, call: Call, small_recipe: Path) -> None:
    steps = sorted((folder / "train" / "checkpoints").iterdir())
    for step in steps[-2:]:
        flip(step / "model.safetensors", 100)
    longer = ("train.phases.1.steps=8", "train.checkpoint_every=1", "train.keep_checkpoints=1")
    done = call("run", small_recipe, *longer, "--until", "train", "--out", folder)
    assert done.code == 0, done.err
    assert {"step-000000012", "step-000000020"} <= {p.name for p in steps[-1].parent.iterdir()}
    assert call("inspect", folder / "train", "--verify").code == 0
