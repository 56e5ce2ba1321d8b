"""What a run was made with is what is sealed, whatever recipe.toml says by now."""

import json
import re
import shutil
from pathlib import Path

import pytest

from bertwright.cli.batch_text import describe_batch
from bertwright.cli.compare import compare
from bertwright.cli.conversion import convert
from bertwright.cli.describe import describe
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import sha256_of
from bertwright.core.log import Silent
from bertwright.formats.target import Target
from bertwright.pipeline.run_folder import is_trained, recorded_recipe


class Heard(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def edit(run: Path, **values: str) -> None:
    """Put other values in the place of those of recipe.toml."""
    text = (run / "recipe.toml").read_text()
    for key, value in values.items():
        text, changed = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert changed, key
    (run / "recipe.toml").write_text(text)


DIFFERENT = [
    "examples.passes: 2 -> 3",
    "train.phases.0.batch: 8 -> 4",
    "train.phases.0.masking.rate: 0.15 -> 0.16",
    "train.seed: 42 -> 43",
]


def test_a_recipe_that_was_not_touched_is_what_was_sealed(trained: Path) -> None:
    recipe, different = recorded_recipe(trained)
    assert different == [] and recipe.train.seed == 42
    assert not {"recipe.toml", "recipe.toml differs"} & describe(trained).keys()


def test_of_checkpoints_the_newest_whole_one_is_asked(trained: Path) -> None:
    (trained / "train" / "manifest.json").unlink()
    newest = max((trained / "train" / "checkpoints").glob("step-*"))
    shutil.copytree(newest, newest.with_name("step-999999999"))
    (newest.with_name("step-999999999") / "manifest.json").write_text("{")
    assert is_trained(trained) and recorded_recipe(trained)[1] == []


@pytest.mark.parametrize("finished", [True, False])
def test_an_edited_recipe_changes_nothing_and_is_named(trained: Path, finished: bool) -> None:
    if not finished:  # the newest checkpoint has the settings too
        (trained / "train" / "manifest.json").unlink()
    before = describe_batch(trained, 0, 2)
    edit(trained, seed="43", rate="0.16", batch="4", passes="3")
    recipe, different = recorded_recipe(trained)
    assert [line for line in different if not re.match(r"(corpus|vocab|examples)\.seed", line)] == DIFFERENT
    assert (recipe.train.seed, recipe.train.phases[0].masking.rate, recipe.examples.passes) == (42, 0.15, 2)
    after = describe_batch(trained, 0, 2)
    assert "train.seed: 42 -> 43" in after.pop("recipe.toml differs")
    assert after == before
    assert "train.seed: 42 -> 43" in describe(trained)["recipe.toml differs"]


def test_sealed_settings_of_another_version_are_refused(trained: Path) -> None:
    manifest = trained / "train" / "manifest.json"
    assert manifest.read_text().count('"static": false')
    other = json.loads(manifest.read_text().replace('"static": false', '"frozen": false'))
    del other["sha256"]
    manifest.write_text(json.dumps({**other, "sha256": sha256_of(other)}))
    with pytest.raises(ArtifactError, match=r"train\.phases\.0\.masking\.frozen: Extra inputs .* make a new run"):
        recorded_recipe(trained)


def test_convert_writes_the_examples_that_were_trained_on(trained: Path, tmp_path: Path) -> None:
    convert(trained, tmp_path / "before", Target("tfrecord"))
    edit(trained, seed="43", rate="0.16", batch="4")
    log = Heard()
    convert(trained, tmp_path / "after", Target("tfrecord"), log=log)
    assert (
        "convert: recipe.toml differs from the settings that the run was made with; those settings are used:"
        in log.said[0]
    )
    assert "train.phases.0.masking.rate: 0.15 -> 0.16" in log.said[0]
    names = sorted(p.relative_to(tmp_path / "before") for p in (tmp_path / "before").rglob("*") if p.is_file())
    assert len(names) > 2
    for name in names:
        assert (tmp_path / "after" / name).read_bytes() == (tmp_path / "before" / name).read_bytes(), name


def test_before_training_convert_says_whose_masks_they_are(trained: Path, tmp_path: Path) -> None:
    shutil.rmtree(trained / "train")
    log = Heard()
    convert(trained, tmp_path / "made", Target("tfrecord"), log=log)
    assert log.said == ["convert: nothing is trained yet, so seed, batches and masks are those of recipe.toml"]
    assert not is_trained(trained)


def test_data_of_its_own_is_no_matter_of_the_recipe(trained: Path) -> None:
    text = (trained / "recipe.toml").read_text().replace("[[train.phases]]", '[[train.phases]]\ndata = "/nowhere"')
    (trained / "recipe.toml").write_text(text)
    recipe, different = recorded_recipe(trained)
    assert recipe.train.phases[0].data is None
    assert different == ["train.phases.0.data: None -> '/nowhere'"]


def test_a_lost_manifest_is_a_fault(trained: Path) -> None:
    assert describe(trained, verify=True)["verified_files"] > 10
    for name in ("corpus", "vocab", "examples", "train", *(f"train/checkpoints/step-00000000{n}" for n in (2, 3))):
        path = trained / name / "manifest.json"
        data = path.read_bytes()
        path.unlink()
        with pytest.raises(ArtifactError, match=f"{re.escape(str(trained / name))} has no manifest.json"):
            describe(trained, verify=True)
        path.write_bytes(data)
    assert describe(trained, verify=True)


def test_training_under_way_has_no_manifest_yet(trained: Path) -> None:
    (trained / "train" / "manifest.json").unlink()
    shutil.rmtree(trained / "train" / "model")
    assert describe(trained, verify=True)["verified_files"]


def test_recorded_settings_need_no_source_files(trained: Path) -> None:
    written = trained / "recipe.toml"
    before, hash_before = written.read_text(), describe_batch(trained, 0, 1)["hash"]
    written.write_text(re.sub(r'(?m)^config = ".*"$', 'config = "/nowhere/bert.json"', before))
    assert "nowhere" in written.read_text() and recorded_recipe(trained)[1] == []
    assert describe_batch(trained, 0, 1)["hash"] == hash_before
    assert compare(trained, trained)["settings"] == "the same"


def test_a_folder_without_a_recipe_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=rf"^{re.escape(str(tmp_path))} is no run folder: it has no recipe.toml\."):
        describe_batch(tmp_path, 0, 1)
