"""A DistilBERT that learns from a finished BERT, end to end, from a BERT run folder and from its export."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.conftest import Call
from tests.pipeline.test_families import overrides
from tests.pipeline.test_lost_ranks import said, start_two
from tests.pipeline.test_ranks import assert_same_training, metrics

from bertwright import Recipe, RunFolder, run

MORE = ("optim.kind=adamw", "train.phases.0.steps=90", "train.phases.0.learning_rate=0.01")


def beside(teacher: Path, *keys: str) -> str:
    """The override that makes a run learn from `teacher`."""
    return f'train.objective={{kind="distillation", teacher="{teacher}"{"".join(f", {key}" for key in keys)}}}'


@pytest.fixture(scope="module")
def teaching(small_recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a finished BERT that has learnt something."""
    return run(Recipe.load(small_recipe, MORE), tmp_path_factory.mktemp("teaching") / "run").path


@pytest.fixture(scope="module")
def distilled(small_recipe: Path, teaching: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("distilled")
    words = [*overrides("distilbert", folder), *MORE, "model.attention_dropout=0"]
    return run(Recipe.load(small_recipe, [*words, beside(teaching / "train")]), folder / "run")


def test_the_whole_road(distilled: RunFolder) -> None:
    folder = distilled.path
    config = json.loads((folder / "export" / "hf" / "config.json").read_text())
    assert config["architectures"] == ["DistilBertForMaskedLM"]
    assert distilled.artifact("export").counts["mlm_difference"] < 1e-4, "as transformers loads it"
    rows: list[Any] = distilled.metrics
    for name in ("mlm", "soft", "hidden"):
        first, last = (sum(row[f"{name}_loss"] for row in some) / 5 for some in (rows[:5], rows[85:90]))
        assert last < first, f"{name} is learnt"
    assert "heldout_soft_accuracy" in rows[-1] and "heldout_hidden_loss" in rows[-1]
    page = (folder / "report.html").read_text(encoding="utf-8")
    # On the page and the model card, with its name and meaning.
    for said_there in ("Loss of the teacher", "Angle to the teacher", "Loss of masked tokens"):
        assert said_there in page
    card = (folder / "export" / "hf" / "README.md").read_text(encoding="utf-8")
    assert (
        "It learned from the predictions of another network as well as from text" in card
        and "not distilled" not in card
    )
    assert "| same best guess as the teacher |" in card and "| cosine with the teacher's hidden states |" in card


def test_an_exported_folder_teaches_the_same(
    small_recipe: Path, teaching: Path, distilled: RunFolder, tmp_path: Path
) -> None:
    """The same weights under other names give the same training, although the input differs."""
    folder = tmp_path / "run"
    for stage in ("corpus", "vocab", "examples"):
        shutil.copytree(distilled.path / stage, folder / stage)
    shutil.copy(distilled.path / "recipe.toml", folder)
    words = [*overrides("distilbert", tmp_path), *MORE, "model.attention_dropout=0"]
    done = run(Recipe.load(small_recipe, [*words, beside(teaching / "export" / "hf")]), folder, ["train"])
    ours, theirs = distilled.artifact("train"), done.artifact("train")
    assert ours.counts["weights"] == theirs.counts["weights"]
    assert ours.manifest["inputs"]["train.objective.teacher"] != theirs.manifest["inputs"]["train.objective.teacher"]
    artifact = beside(teaching / "export")
    assert run(Recipe.load(small_recipe, [*words, artifact]), tmp_path / "checked", []).path


def test_two_ranks_learn_from_the_teacher_as_one(
    small_recipe: Path, teaching: Path, distilled: RunFolder, tmp_path: Path, call: Call
) -> None:
    folders = tmp_path / "alone", tmp_path / "together"
    for folder in folders:
        for stage in ("corpus", "vocab", "examples"):
            shutil.copytree(distilled.path / stage, folder / stage)
    words = [*overrides("distilbert", tmp_path)[:2], "examples.plan=full-sentences", "model.dropout=0"]
    words += ["model.attention_dropout=0", "train.phases.0.steps=8", beside(teaching / "train")]
    one = call("train", small_recipe, *words, "--out", folders[0])
    assert one.code == 0, one.err
    ranks = start_two(small_recipe, folders[1], *words)
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0], said(folders[1], 0) + said(folders[1], 1)
    assert_same_training(metrics(folders[1]), metrics(folders[0]))
    for row, other in zip(metrics(folders[1]), metrics(folders[0]), strict=True):
        for name in ("soft_loss", "hidden_loss"):
            assert row[name] == pytest.approx(other[name], rel=1e-5)


def test_check_says_what_is_known_of_the_teacher_before_any_work(
    small_recipe: Path, teaching: Path, distilled: RunFolder, tmp_path: Path, call: Call
) -> None:
    words: list[Any] = [small_recipe, *overrides("distilbert", tmp_path), "--out", tmp_path / "run"]

    def checked(*more: str) -> tuple[int, str]:
        done = call("check", *words[:-2], *more, *words[-2:])
        assert not (tmp_path / "run").exists()
        return done.code, " ".join((done.out + done.err).split())

    code, text = checked(beside(teaching / "train"))
    assert code == 0 and "warning train.objective.teacher" in text and "is not trained yet, and must then" in text
    assert f"Set vocab.file={teaching / 'train' / 'model' / 'vocab.txt'}" in text
    given = f"vocab.file={teaching / 'export' / 'hf' / 'vocab.txt'}"
    code, text = checked(beside(teaching / "export" / "hf"), given, "vocab.size=")
    assert (
        code == 0
        and "ok train.objective.teacher" in text
        and "hf: BERT, 9,904 parameters, with the vocabulary of this run" in text
    )
    other = tmp_path / "vocab.txt"
    other.write_text((teaching / "vocab" / "vocab.txt").read_text().rpartition("\n")[0].rpartition("\n")[0])
    code, text = checked(beside(teaching / "train"), f"vocab.file={other}", "vocab.size=")
    assert code == 2 and "train.objective.teacher" in text and " there and absent here" in text
    code, text = checked(beside(small_recipe.parent))
    assert (
        code == 2 and "has no config.json and no model.safetensors" in text and "give a finished train folder" in text
    )
    code, text = checked(beside(teaching / "train", "layers=[2]"))
    assert code == 2 and "train.objective.layers: [2] must be 1 numbers from 0 to 1" in text


def test_another_vocabulary_in_the_run_folder_is_refused_by_check_and_by_run(
    small_recipe: Path, teaching: Path, distilled: RunFolder, tmp_path: Path, call: Call
) -> None:
    """A teacher whose last vocabulary entry differs; nothing is trained."""
    teacher = Path(shutil.copytree(teaching / "export" / "hf", tmp_path / "teacher"))
    entries = (teacher / "vocab.txt").read_text().splitlines()
    (teacher / "vocab.txt").write_text("\n".join([*entries[:-1], "other"]) + "\n")
    folder = tmp_path / "run"
    for stage in ("corpus", "vocab", "examples"):
        shutil.copytree(distilled.path / stage, folder / stage)
    shutil.copy(distilled.path / "recipe.toml", folder)
    words: list[Any] = [small_recipe, *overrides("distilbert", tmp_path), beside(teacher), "--out", folder]
    for verb in ("check", "train"):
        done = call(verb, *words)
        text = " ".join((done.out + done.err).split())
        assert done.code == 4 and "has another vocabulary than" in text, text
        assert f"entry 399 is 'other' there and '{entries[-1]}' here" in text and "Set vocab.file=" in text
    assert not (folder / "train").exists()
