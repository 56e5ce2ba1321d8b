"""The walk: nothing is made of what other settings made, and nothing is touched before a trained model is safe."""

import json
import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import small_text

from bertwright import SILENT, Recipe, RunFolder, run
from bertwright.core.artifact import open_artifact, seal
from bertwright.core.config import Identity
from bertwright.core.errors import ArtifactError, DataError, MissingExtraError, RecipeError
from bertwright.core.files import sha256
from bertwright.core.tasks import Pool
from bertwright.core.work_split import FolderLock, WorkSplit
from bertwright.corpus.sources.source import open_source
from bertwright.pipeline.lineage import lineage
from bertwright.pipeline.run import run_stage
from bertwright.pipeline.stage import STAGES

Load = Callable[..., Recipe]


def state(folder: Path) -> dict[str, tuple[int, str]]:
    return {str(p): (p.stat().st_mtime_ns, sha256(p)) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_lineage_says_beforehand_what_the_stages_seal(trained: Path, load: Load) -> None:
    expected = lineage(load(), trained, "train").identities
    assert list(expected) == ["corpus", "vocab", "examples", "train"]
    for stage, identity in expected.items():
        assert open_artifact(trained / stage).fingerprint == identity.fingerprint, stage


def test_a_run_folder_given_as_a_recipe_is_its_own_run_folder(trained: Path, tmp_path: Path) -> None:
    with chdir(tmp_path):
        assert run(str(trained), stages=("vocab",), log=SILENT).path == trained
        assert run("smoke", stages=(), log=SILENT).path == tmp_path / "runs" / "smoke"


def test_every_stage_names_its_inputs_in_travel_order() -> None:
    order = list(STAGES)
    for name, stage in STAGES.items():
        assert stage.name == name and stage.runs == f"bertwright.{name}.run:run"
        for inputs in (stage.inputs, stage.without_corpus or ()):
            assert all(order.index(each) < order.index(name) for each in inputs)
        assert "corpus" not in (stage.without_corpus or ())


@pytest.mark.parametrize(
    ("stage", "override", "says"),
    [
        ("train", "examples.passes=1", r"examples was made with other settings \(examples.passes: 2 -> 1\)"),
        ("train", "vocab.size=150", r"vocab was made with other settings \(vocab.size: 160 -> 150\)"),
        ("evaluate", "train.seed=7", r"train was made with other settings \(train.seed: 42 -> 7\)"),
        ("examples", "corpus.seed=7", r"corpus was made with .* \(corpus.seed: 12345 -> 7\)"),
    ],
)
def test_a_stage_refuses_inputs_that_other_settings_made(
    stage: str, override: str, says: str, trained: Path, load: Load
) -> None:
    with pytest.raises(ArtifactError, match=says) as caught:
        run_stage(stage, load(override), RunFolder(trained))
    before = state(trained)
    with pytest.raises(ArtifactError):
        run(load(override), trained, [stage])
    assert state(trained) == before, "recipe.toml still describes what is there"
    until = max(STAGES[stage].inputs, key=list(STAGES).index)
    assert f"Make it first: bertwright run RECIPE --until {until} --out {trained}" in str(caught.value)


def test_what_an_earlier_version_trained_is_refused(trained: Path, load: Load) -> None:
    seal(trained / "train", Identity("train", 0, {}, {}), {}, 0.0)
    with pytest.raises(ArtifactError, match=r"train was made with other settings \(the stage's version changed: 0 -> "):
        run_stage("evaluate", load(), RunFolder(trained))


@pytest.mark.parametrize("stage", ["corpus", "train"])
def test_weights_of_an_earlier_version_are_kept_without_advice_to_restore_settings(
    stage: str, trained: Path, load: Load
) -> None:
    if stage == "train":
        shutil.rmtree(trained / "train" / "checkpoints")
    seal(trained / stage, Identity(stage, 0, {}, {}), {}, 0.0)
    with pytest.raises(ArtifactError, match="stage's version changed: 0 -> ") as caught:
        run(load(), trained, ["train"])
    assert "continue with that version, or train in another folder (--out DIR), or move" in str(caught.value)
    assert "Restore these settings" not in str(caught.value)


def test_the_command_that_is_told_can_be_typed(tmp_path: Path) -> None:
    folder = tmp_path / "my run"
    for asked in (lambda: RunFolder(folder).artifact("examples"), lambda: RunFolder(folder).summary):
        with pytest.raises(
            ArtifactError, match=f"Make it first: bertwright (examples|report) RECIPE --out '{folder}'$"
        ):
            asked()


def test_a_missing_input_names_its_verb(trained: Path, load: Load) -> None:
    shutil.rmtree(trained / "examples")
    with pytest.raises(ArtifactError, match=r"examples is not finished\. Make it first: bertwright examples RECIPE"):
        run_stage("train", load(), RunFolder(trained))


def test_changed_settings_are_refused_before_anything_is_touched(trained: Path, load: Load) -> None:
    before = state(trained)
    with pytest.raises(ArtifactError, match=r"holds checkpoints trained with other settings.*vocab.size: 160 -> 150"):
        run(load("vocab.size=150"), trained, ["corpus", "vocab", "examples", "train"])
    assert state(trained) == before
    run(load("vocab.size=150"), trained, ["corpus", "vocab"])
    remade = open_artifact(trained / "vocab")  # without train nothing is in danger
    assert remade.manifest["config"]["vocab"]["size"] == 150


def test_longer_phases_go_on(trained: Path, load: Load) -> None:
    run(load("train.phases.0.steps=4"), trained, ["train"])
    assert open_artifact(trained / "train").counts["steps"] == 4
    done = state(trained / "train")
    run(load("train.phases.0.steps=4"), trained, ["corpus", "vocab", "examples", "train"])
    assert state(trained / "train") == done


def test_scores_of_a_shorter_training_are_not_those_of_the_run(trained: Path, load: Load) -> None:
    recipe, longer, folder = load(), load("train.phases.0.steps=4"), RunFolder(trained)
    run(recipe, trained, ["evaluate"])
    assert folder.scores["mlm_loss"]
    run(longer, trained, ["train"])
    with pytest.raises(ArtifactError, match=r"scores of an earlier model .*: bertwright evaluate RECIPE --out"):
        _ = folder.scores
    run(longer, trained, ["evaluate"])
    assert folder.scores["mlm_loss"]


def test_a_stage_after_the_corpus_does_not_need_the_source(trained: Path, load: Load, tmp_path: Path) -> None:
    gone = load(f"corpus.source.path={tmp_path / 'gone.txt'}")
    run(gone, trained, ["train"])
    shutil.rmtree(trained / "corpus")
    run(gone, trained, ["train"])
    with pytest.raises(DataError, match="cannot read .*gone.txt"):
        run(gone, trained, ["corpus"])
    shutil.rmtree(trained / "vocab")
    with pytest.raises(ArtifactError, match="vocab is not finished"):
        run_stage("train", gone, RunFolder(trained))


def test_a_stage_after_the_corpus_copies_no_source(
    trained: Path, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a stage after the corpus went to the network")

    monkeypatch.setattr("bertwright.core.remote.ask", never)
    monkeypatch.setattr("bertwright.core.servers.file_system", never)
    for url in ("https://host/a.txt", "s3://texts/*.txt"):
        remote = load(f"corpus.source.path={url}", f"corpus.cache_dir={tmp_path / 'downloads'}")
        run(remote, trained, ["train"])
    assert not (tmp_path / "downloads").exists()


def test_a_missing_package_is_found_before_any_work(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "bertwright.check.recipe.packages.find_spec", lambda name: None if name == "transformers" else name
    )
    with pytest.raises(MissingExtraError, match=r"pip install 'bertwright\[hf\]'"):
        run(load(), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run(load(), tmp_path / "run", ["corpus"])


def test_unknown_stages_and_preparing_on_several_ranks_are_refused(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RecipeError, match="there is no stage 'exprot'"):
        run(load(), tmp_path, ["exprot"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RecipeError, match="several ranks can only run the stage train"):
        run(load(), tmp_path, ["corpus"])


def test_without_the_source_changed_corpus_settings_are_still_noticed(
    trained: Path, load: Load, tmp_path: Path
) -> None:
    gone = f"corpus.source.path={tmp_path / 'gone.txt'}"
    with pytest.raises(ArtifactError, match=r"corpus.deduplicate.documents: True -> False"):
        run(load(gone, "corpus.deduplicate.documents=false"), trained, ["train"])


def test_a_finished_model_without_checkpoints_is_never_trained_over(trained: Path, load: Load) -> None:
    shutil.rmtree(trained / "train" / "checkpoints")
    before = state(trained)
    run(load(), trained, ["corpus", "vocab", "examples", "train"])
    assert state(trained) == before
    for other in ("train.seed=7", "train.phases.0.steps=9"):
        with pytest.raises(ArtifactError, match=r"holds a model trained with other settings|Restore them to continue"):
            run(load(other), trained, ["corpus", "vocab", "examples", "train"])
        assert (trained / "train" / "model" / "model.safetensors").is_file()
        assert state(trained) == before


def test_a_refused_recipe_does_not_replace_the_one_that_was_run(trained: Path, load: Load) -> None:
    before = (trained / "recipe.toml").read_bytes()
    with pytest.raises(ArtifactError, match="may become longer, but not shorter"):
        run(load("train.phases.0.steps=2"), trained, ["train"])
    assert (trained / "recipe.toml").read_bytes() == before


def test_nor_does_one_that_a_stage_refuses_by_what_its_sources_are(
    small_recipe: Path, load: Load, tmp_path: Path
) -> None:
    (tmp_path / "texts.jsonl").write_text(json.dumps({"text": (small_recipe.parent / "text.txt").read_text()}) + "\n")
    source = f"corpus.source={tmp_path / 'texts.jsonl'}"
    run(load(source), tmp_path / "run", ["corpus"])
    before = (tmp_path / "run" / "recipe.toml").read_bytes()
    with pytest.raises(RecipeError, match=r"corpus\.keep_disambiguation applies only to dumps of wikis"):
        run(load(source, "corpus.keep_disambiguation=true"), tmp_path / "run", ["corpus"])
    assert (tmp_path / "run" / "recipe.toml").read_bytes() == before


def test_an_error_inside_the_walk_is_not_taken_for_a_foreign_lock(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **where: object) -> None:
        raise BlockingIOError("a pipe is full")

    monkeypatch.setattr("bertwright.corpus.run.run", busy)
    with pytest.raises(BlockingIOError, match="a pipe is full"):
        run(load(), tmp_path / "run", ["corpus"])


def test_only_the_stage_that_reads_sources_opens_them(
    trained: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []

    def noted(*arguments: Any, **where: Any) -> Any:
        opened.append(arguments)
        return open_source(*arguments, **where)

    monkeypatch.setattr("bertwright.corpus.run.open_source", noted)
    walked = run(load(), trained, ["corpus", "vocab", "examples", "train"])
    assert len(opened) == 1, "once, by the corpus"
    run(load(), trained, ["train"])
    assert run_stage("vocab", load(), walked) == open_artifact(trained / "vocab")
    assert len(opened) == 1


def test_settings_of_a_walk_are_compared_again_by_the_next(trained: Path, load: Load) -> None:
    walked = run(load(), trained, ["corpus", "vocab", "examples"])
    with pytest.raises(ArtifactError, match=r"corpus was made with other settings \(corpus.seed: 12345 -> 7\)"):
        run_stage("vocab", load("corpus.seed=7"), walked)


def test_what_a_source_holds_is_looked_at_by_the_corpus_alone(trained: Path, load: Load, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(small_text(100))
    before = state(trained)
    run(load(f"corpus.source.path={other}"), trained, ["train"])
    assert {name: at for name, at in state(trained).items() if not name.endswith("recipe.toml")} == {
        name: at for name, at in before.items() if not name.endswith("recipe.toml")
    }
    with pytest.raises(
        ArtifactError, match="holds checkpoints trained with other settings.*its input examples changed"
    ):
        run(load(f"corpus.source.path={other}"), trained, ["corpus", "vocab", "examples", "train"])
    assert list((trained / "train" / "checkpoints").glob("step-*")), "weights are never thrown away"


def test_a_key_that_begins_to_name_a_file_is_another_setting(trained: Path, load: Load, tmp_path: Path) -> None:
    words = tmp_path / "vocab.txt"
    shutil.copy(trained / "vocab" / "vocab.txt", words)
    with pytest.raises(ArtifactError, match=r"vocab was made with other settings \(.*vocab.file: None -> 'given'"):
        run(load(f"vocab.file={words}", "vocab.size=", "vocab.alphabet_coverage="), trained, ["examples"])


def test_the_rank_of_another_launcher_does_not_keep_the_folder_unlocked(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    with FolderLock(tmp_path), pytest.raises(ArtifactError, match="another process is working"):
        run(load(), tmp_path, ["corpus"])
    for rank in (0, 1):
        run(load(), tmp_path, ["corpus"], share=WorkSplit(rank, 2))
    assert (tmp_path / "recipe.toml").is_file() and (tmp_path / "corpus" / "manifest.json").is_file()


def test_a_relative_folder_is_the_same_one_for_workers_elsewhere(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    class Elsewhere(Pool):
        def map(self, *arguments: Any) -> list[Any]:
            with chdir(elsewhere):
                return super().map(*arguments)

    monkeypatch.chdir(tmp_path)
    walked = run(load(), "run", ["corpus", "vocab", "examples"], executor=Elsewhere(1))
    assert walked.path == tmp_path / "run" and not list(elsewhere.iterdir())
    assert open_artifact(tmp_path / "run" / "examples").counts["documents"]
