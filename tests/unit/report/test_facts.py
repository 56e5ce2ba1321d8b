"""What the page is made of: read from folders that may be damaged, and of runs that are not finished."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.report.facts import Facts, read_facts
from bertwright.tasks.pretraining.section import SUMMARY, label_share, scored_length

Make = Callable[..., Path]
STAGES = ("corpus", "vocab", "examples", "train", "evaluate", "export")
FINISHED_TRAINING = STAGES[:4]


def opened(folder: Path, *names: str) -> dict[str, Artifact]:
    return {name: open_artifact(folder / name) for name in names or STAGES}


def counted(artifact: Artifact, **counts: object) -> Artifact:
    """The artifact with other counts in its manifest."""
    return Artifact(artifact.path, {**artifact.manifest, "counts": {**artifact.counts, **counts}})


def classifying(train: Artifact, *labels: str) -> Artifact:
    """The training as if its task were to tell these classes apart."""
    config = train.manifest["config"]
    objective = {"kind": "classification", "labels": list(labels)}
    return Artifact(
        train.path, {**train.manifest, "config": {**config, "train": {**config["train"], "objective": objective}}}
    )


def facts(folder: Path, *names: str, title: str = "") -> Facts:
    return read_facts(folder, opened(folder, *names), title)


def test_a_row_that_is_none_is_named_with_its_line(run_folder: Make) -> None:
    folder = run_folder()
    rows = (folder / "train" / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    train = open_artifact(folder / "train")
    under_way = Artifact(folder / "train", {**train.manifest, "files": {}})
    for damage in (b'{"step": 1}\n', b"[]\n", b"\xff\n", b'{"phase": 0, "step": 1', b"\n"):
        (folder / "train" / "metrics.jsonl").write_bytes(b"".join([*rows[:2], damage]))
        with pytest.raises(ArtifactError, match=r"metrics\.jsonl:3 is not a row of metrics\. Restore the file\."):
            read_facts(folder, {**opened(folder, "corpus", "vocab", "examples"), "train": under_way}, "")


def test_rows_are_checked_against_the_manifest(run_folder: Make) -> None:
    folder = run_folder()
    with (folder / "train" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"phase": 9, "step": 1}\n')
    with pytest.raises(ArtifactError, match=r"metrics\.jsonl"):
        facts(folder)


def test_a_recipe_that_is_missing_or_no_text_is_named(run_folder: Make) -> None:
    folder = run_folder()
    (folder / "recipe.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ArtifactError, match=r"cannot read .*recipe\.toml: .*utf-8"):
        facts(folder)
    (folder / "recipe.toml").unlink()
    with pytest.raises(ArtifactError, match=r"recipe\.toml.*The command that makes the stages writes it\."):
        facts(folder)


def test_the_title_is_that_of_the_settings_or_the_folder(run_folder: Make) -> None:
    folder = run_folder()
    assert (facts(folder).name, facts(folder).title) == ("próba", "") and facts(folder, title="<Ő>").title == "<Ő>"


def test_before_evaluation_scores_are_those_of_training(run_folder: Make) -> None:
    folder = run_folder()
    under_way, finished = facts(folder, *FINISHED_TRAINING), facts(folder)
    rows = [row for row in under_way.metrics if "heldout_mlm_loss" in row]
    assert under_way.scores["mlm_loss"] == rows[-1]["heldout_mlm_loss"] and under_way.scores["step"] == 900
    assert under_way.scores["unigram_loss"] == 5.91, "of the examples: training does not count words"
    assert under_way.scores["most_common_token_accuracy"] is None and set(SUMMARY) <= set(under_way.scores)
    assert under_way.predictions == () and len(finished.predictions) == 2
    assert finished.scores["mlm_loss"] == 2.31 and finished.scores["unigram_loss"] == 5.9
    assert (scored_length(under_way), scored_length(finished)) == (64, 64)


def test_a_training_that_was_never_scored_has_no_scores_yet(run_folder: Make) -> None:
    folder = run_folder()
    train, path = open_artifact(folder / "train"), folder / "train" / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()[:5]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    artifacts = opened(folder, "corpus", "vocab", "examples")
    unscored = read_facts(folder, {**artifacts, "train": Artifact(train.path, {**train.manifest, "files": {}})}, "")
    assert unscored.scores["mlm_loss"] is None and unscored.scores["step"] is None
    assert len(unscored.metrics) == 5 and scored_length(unscored) == 64, "of the first phase"


def test_label_shares_are_found_by_length(run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder)
    sequences = {"128-2": {"label_share": 0.4}, "64-1": {"label_share": None}, "512": {"label_share": 0.5}}
    artifacts["examples"] = counted(artifacts["examples"], train={"sequences": sequences})
    run = read_facts(folder, artifacts, "")
    assert [label_share(run, "train", length) for length in (512, 128, 64, 1, 12)] == [0.5, 0.4, None, None, None]


@pytest.mark.parametrize(
    ("phases", "unit"),
    [
        ({}, "documents"),
        ({"train.phases.0": {"documents": 3}}, "documents"),
        ({"train.phases.0": {"documents": 3}, "train.phases.1": {"examples": 5}}, "examples"),
    ],
)
def test_what_is_held_out_is_called_what_it_is(phases: dict[str, object], unit: str, run_folder: Make) -> None:
    folder = run_folder()
    artifacts = opened(folder)
    held_out = {**artifacts["examples"].counts["heldout"], "phases": phases}
    artifacts["examples"] = counted(artifacts["examples"], heldout=held_out)
    examples = artifacts["examples"].counts
    assert read_facts(folder, artifacts, "").section.unit(examples) == unit
    artifacts["train"] = classifying(artifacts["train"], "a", "b")
    assert read_facts(folder, artifacts, "").section.unit(examples) == "texts"


def test_the_language_comes_from_the_corpus_or_the_export(run_folder: Make) -> None:
    folder = run_folder()
    assert facts(folder).language == "hu"
    artifacts = opened(folder, "vocab", "examples", "train", "evaluate")
    assert read_facts(folder, artifacts, "").language == ""
    export = open_artifact(folder / "export")
    told = Artifact(export.path, {**export.manifest, "config": {"texts": {"language": "ltg"}}})
    assert read_facts(folder, {**artifacts, "export": told}, "").language == "ltg"
