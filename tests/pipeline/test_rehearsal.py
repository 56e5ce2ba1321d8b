"""What a rehearsal runs instead of a recipe: equally large, on a sample or prepared data, touching nothing else."""

import bz2
import json
from pathlib import Path

import pytest

from bertwright import Recipe, run
from bertwright.check.machine.computing import computing
from bertwright.core.errors import DataError
from bertwright.core.files import remove
from bertwright.sample import SMALL
from bertwright.trial.shortened_recipe import PREPARED, alone, link, rehearsal

AS_IT_IS = ("length", "batch", "micro_batch", "packing", "learning_rate", "warmup", "schedule", "masking")


def rehearsed(recipe: Recipe, folder: Path) -> tuple[Recipe, str]:
    (folder / "sources").mkdir()
    found = rehearsal(recipe, folder / "run", folder / "sources")
    assert found.made == ()
    return found.recipe, found.text


def test_phases_are_as_large_and_end_after_two_steps(small_recipe: Path, tmp_path: Path) -> None:
    given = ["train.phases.0.steps=", "train.phases.0.epochs=3", "train.phases.0.warmup=40", "train.phases.1.steps=1"]
    given += [
        "train.phases.0.batch_warmup=[[0, 2], [5, 8]]",
        "train.phases.0.masking.rate=[[0, 0.3], [600, 0.15]]",
        "train.phases.0.target_accuracy=0.5",
        "train.evaluate_every=5000",
        "train.guard.spike=10",
        "train.guard.window=5000",
        "train.observers=['tensorboard']",
        "train.mirror=s3://b/r",
    ]
    recipe = Recipe.load(small_recipe, given)
    (tmp_path / "sources").mkdir()
    found = rehearsal(recipe, tmp_path / "run", tmp_path / "sources")
    for before, after in zip(recipe.train.phases, found.recipe.train.phases, strict=True):
        assert all(getattr(before, key) == getattr(after, key) for key in AS_IT_IS)
    first, second = found.recipe.train.phases
    assert (first.end_after, first.steps, first.epochs, first.batch_warmup) == (2, 601, None, ())
    assert first.target_accuracy is None and not found.recipe.train.guard.spike
    found.recipe.check()
    assert (second.end_after, second.steps) == (1, 1)
    assert found.recipe.train.observers == () and found.recipe.train.mirror == ""
    assert [*found.left_out] == ["train.observers", "train.mirror"]
    assert found.recipe.optim == recipe.optim and found.recipe.train.engine == recipe.train.engine


@pytest.mark.parametrize(("engine", "left_out"), [("auto", []), ("single", []), ("zero", ["train.engine"])])
def test_what_only_several_ranks_do_is_not_tried(
    engine: str, left_out: list[str], small_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertwright.trial.shortened_recipe.default_workers", lambda: 1)
    (tmp_path / "sources").mkdir()
    recipe = Recipe.load(small_recipe, [f"train.engine={engine}"])
    found = rehearsal(recipe, tmp_path / "run", tmp_path / "sources")
    assert [*found.left_out] == left_out and found.recipe.train.engine == recipe.train.engine


@pytest.mark.parametrize(("length", "ends"), [("samples=8", 1), ("samples=9", 2), ("tokens=20", 1), ("tokens=900", 2)])
def test_a_phase_of_one_step_in_another_unit_ends_after_it(
    small_recipe: Path, tmp_path: Path, length: str, ends: int
) -> None:
    recipe = Recipe.load(small_recipe, ["train.phases.0.steps=", "train.phases.0.batch=8", f"train.phases.0.{length}"])
    (tmp_path / "sources").mkdir()
    found = rehearsal(recipe, tmp_path / "run", tmp_path / "sources")
    assert found.recipe.train.phases[0].end_after == ends


def test_what_an_average_is_made_of_comes_within_the_few_steps(small_recipe: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(small_recipe, ["train.averaging={kind='last', count=3}", "train.phases.0.steps=200"])
    found, _ = rehearsed(recipe, tmp_path)
    assert found.train.averaging.model_dump() == {"kind": "last", "count": 3, "every": 1, "keep": "better"}
    assert not [verdict.text for verdict in computing(found, ["train"]) if verdict.about == "train.averaging"]
    moving = Recipe.load(small_recipe, ["train.averaging={kind='ema', decay=0.9}"])
    (tmp_path / "moving").mkdir()
    assert rehearsed(moving, tmp_path / "moving")[0].train.averaging == moving.train.averaging


def test_the_network_of_a_sample_has_the_rows_of_the_real_one(small_recipe: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(small_recipe, ["model.config=", "model.size=mini", "vocab.size=31000"])
    found, text = rehearsed(recipe, tmp_path)
    for entries in (500, 31_000):
        assert found.model.resolve(entries, True).vocab_size == recipe.network().vocab_size == 31_000
    assert text == "all sources, because they are small"


@pytest.mark.parametrize("packed", [True, False])
def test_of_a_large_dump_the_beginning_is_taken(packed: bool, small_recipe: Path, tmp_path: Path) -> None:
    text = bz2.decompress(SMALL.read_bytes()).decode()
    many = text.replace("</mediawiki>", text[text.index("<page>") :].replace("</mediawiki>", "") * 12 + "</mediawiki>")
    dump = tmp_path / "dump.xml"
    dump.write_text(many, encoding="utf-8")
    if packed:
        dump = tmp_path / "dump.xml.bz2"
        dump.write_bytes(bz2.compress(many.encode(), 1))
    source = f"corpus.source=[{{path={json.dumps(str(dump))}, weight=2, name='mine'}}]"
    recipe = Recipe.load(small_recipe, [source])
    limit = dump.stat().st_size // 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertwright.trial.shortened_recipe._SAMPLE", limit * (4 if packed else 1))
        found, said = rehearsed(recipe, tmp_path)
    assert found.corpus is not None and said.startswith("the first ")
    (source,) = found.corpus.source
    assert (source.weight, source.name) == (2, "mine")
    assert 0.9 * limit < Path(source.path).stat().st_size <= limit and Path(source.path).name == dump.name
    made = run(found, tmp_path / "made", ["corpus"]).artifact("corpus")
    assert made.counts["kept"] > 5


def test_a_source_that_lies_elsewhere_is_not_fetched(small_recipe: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(
        small_recipe,
        [
            "corpus.source=https://dumps.example/huwiki.xml.bz2",
            "corpus.language=fi",
            "corpus.filter.languages=[]",
            f"corpus.cache_dir={tmp_path}",
        ],
    )
    found, text = rehearsed(recipe, tmp_path)
    assert found.corpus is not None and found.corpus.source[0].path == "sample-small"
    assert text == "the built-in sample, because a source is on another machine and has not been copied yet"
    with pytest.raises(DataError, match=r"nowhere\.xml"):
        rehearsal(Recipe.load(small_recipe, ["corpus.source=nowhere.xml"]), tmp_path / "run", tmp_path / "sources")


def test_what_is_prepared_is_taken_if_it_belongs_to_the_recipe(small_recipe: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(small_recipe)
    folder = run(recipe, tmp_path / "run", list(PREPARED)).path
    (tmp_path / "sources").mkdir()
    found = rehearsal(recipe, folder, tmp_path / "sources")
    assert found.made == PREPARED and found.text == f"the finished stages in {folder} (corpus, vocab, examples)"
    (tmp_path / "place").mkdir()
    link(found.made, folder, tmp_path / "place")
    remove(tmp_path / "place")
    assert not (tmp_path / "place").exists() and all((folder / name / "manifest.json").is_file() for name in PREPARED)
    other = rehearsal(Recipe.load(small_recipe, ["examples.seed=1"]), folder, tmp_path / "sources")
    assert other.made == () and other.recipe.vocab.file == folder / "vocab" / "vocab.txt"
    assert other.text == "all sources, because they are small, with the existing vocabulary"


def test_a_phase_alone_keeps_its_size_and_the_examples_of_all(small_recipe: Path, tmp_path: Path) -> None:
    recipe, _ = rehearsed(Recipe.load(small_recipe), tmp_path)
    first = alone(recipe, 1)
    assert [phase.batch for phase in first.train.phases] == [1, 4] and first.train.phases[1] == recipe.train.phases[1]
    assert first.plan_sets() == recipe.plan_sets()


def test_a_phase_alone_is_sound_beside_one_that_packs_or_finds_its_size(small_recipe: Path, tmp_path: Path) -> None:
    packed = ["train.graph=compiled", "train.phases.0.packing=true", "train.phases.0.micro_batch=2"]
    recipe, _ = rehearsed(Recipe.load(small_recipe, packed), tmp_path)
    alone(recipe, 1).check()
    assert alone(recipe, 0).train.phases[0].packing
    (tmp_path / "auto").mkdir()
    given = ["train.phases.0.micro_batch=auto", "train.memory_limit_gb=4"]
    recipe, _ = rehearsed(Recipe.load(small_recipe, given), tmp_path / "auto")
    assert [alone(recipe, index).train.memory_limit_gb for index in range(2)] == [4, 0]
