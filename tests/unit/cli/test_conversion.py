"""`bertwright convert` and `inspect` on examples: a run's, and anyone's."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.reference.mlperf import picked
from tests.rows import each_row
from tests.unit.formats.test_imported_data import Notes

from bertwright.cli.conversion import ConvertOptions, convert
from bertwright.cli.describe import Examples, describe
from bertwright.core.errors import DataError, RecipeError
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import MicroBatching, PlanSet
from bertwright.examples.instances import Instances, concatenate
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import heldout_batches, open_loader
from bertwright.formats.detect import detect
from bertwright.formats.export import draw, instances
from bertwright.formats.format import Kind
from bertwright.formats.known import format_of
from bertwright.formats.target import Target, kind_of
from bertwright.pipeline.run import run as run_stages
from bertwright.pipeline.run_folder import RunFolder
from bertwright.recipe import Recipe
from bertwright.vocab.load import read_vocabulary

pytestmark = pytest.mark.heavy

FOLDER = "hdf5_lower_case_0_seq_len_16_max_pred_2_masked_lm_prob_0.15_random_seed_12345_dupe_factor_2"


def contents(folder: Path, split: str, entries: list[str]) -> list[tuple[bytes, ...]]:
    """Every example of a split, sorted: tokens, second segment, positions, labels, next-sentence label."""
    (found,) = (
        each for each in detect(folder) if (each.split == "test" or "test" in each.folder.name) == (split == "test")
    )
    blocks = [block for file in found.files for block in format_of(found.kind).read(file, entries)]
    return rows(concatenate(blocks))


def rows(every: Instances) -> list[tuple[bytes, ...]]:
    columns = ("token_ids", "second", "positions", "labels", "next_sentence_labels")
    singles = (every.take(np.array([i])) for i in range(len(every)))
    return sorted(tuple(getattr(one, name).tobytes() for name in columns) for one in singles)


@pytest.fixture
def entries(trained: Path) -> list[str]:
    return read_vocabulary(trained / "vocab" / "vocab.txt")


@pytest.mark.parametrize("kind", ["hdf5", "hdf5-varlen", "tfrecord", "lddl", "datasets"])
def test_a_run_becomes_what_static_masks_train_on(
    trained: Path, entries: list[str], tmp_path: Path, kind: Kind
) -> None:
    note = convert(trained, tmp_path / "out", Target(kind), ConvertOptions(files=3))
    recipe, run = Recipe.load(trained / "recipe.toml"), RunFolder(trained)
    phase = recipe.train.phases[0]
    static = phase.masking.model_copy(update={"static": True})
    settings = LoaderSettings(16, static, 8, MicroBatching(8), recipe.train.seed, "0")
    loader = open_loader(run.artifact("examples"), PlanSet(length=16), settings)
    drawn = [instances(batch) for step in range(-(-loader.total // 8)) for batch in loader.step(step)]
    expected = rows(concatenate([instances(loader.batch(i, i + 1)) for i in range(loader.total)]))
    assert contents(tmp_path / "out", "training", entries) == expected
    assert set(expected) <= set(rows(concatenate(drawn)))
    held = heldout_batches(run.artifact("examples"), 16, 2, 0.15, 5)
    assert contents(tmp_path / "out", "test", entries) == rows(concatenate([instances(batch) for batch in held]))
    assert note["examples"] == len(expected) + len(contents(tmp_path / "out", "test", entries))
    assert len(note["files"]) == (5 if kind == "lddl" else 4) and note["left_out"] == 0


def test_blocks_of_files_do_not_depend_on_the_batch_of_the_phase(trained: Path, tmp_path: Path) -> None:
    """A block for each step of 8 examples made writing 30 times as slow, and Parquet files 3 times as large."""
    convert(trained, tmp_path / "out", Target("datasets"), ConvertOptions(files=2))
    files = list((tmp_path / "out" / "seq_16" / "train").glob("*.arrow"))
    assert len(files) == 2
    for file in files:
        assert [len(block) for block in format_of("datasets").read(file)] == [detect(file)[0].examples]


def test_nvidias_folders_and_files(trained: Path, tmp_path: Path) -> None:
    convert(trained, tmp_path / "out", Target("hdf5"), ConvertOptions(files=2))
    made = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.hdf5"))
    names = ("corpus_en_test_0", "corpus_en_training_0", "corpus_en_training_1")
    assert made == [f"{FOLDER}/corpus_en/{name}.hdf5" for name in names]


def test_the_evaluation_set_is_every_so_manyth_example(trained: Path, entries: list[str], tmp_path: Path) -> None:
    """MLPerf: example int(i·(n/m)) of n, for i below m."""
    convert(trained, tmp_path / "all", Target("hdf5"), ConvertOptions(files=1))
    convert(trained, tmp_path / "some", Target("hdf5"), ConvertOptions(files=1, heldout=7))
    (whole,), (some,) = (
        [block for path in (tmp_path / name).rglob("*_test_0.hdf5") for block in format_of("hdf5").read(path)]
        for name in ("all", "some")
    )
    assert len(some) == 7 < len(whole)
    assert rows(some) == rows(whole.take(np.array(picked(len(whole), 7))))


def test_what_belongs_to_the_other_kind_of_source_is_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="its recipe sets vocabulary, length and predictions"):
        convert(trained, tmp_path / "out", Target("hdf5", length=128))
    convert(trained, tmp_path / "out", Target("hdf5"))
    with pytest.raises(RecipeError, match="is not a run folder"):
        convert(tmp_path / "out", tmp_path / "again", Target("tfrecord"), ConvertOptions(files=3))
    with pytest.raises(RecipeError, match="already exists"):
        convert(trained, tmp_path / "out", Target("hdf5"))
    with pytest.raises(RecipeError, match="no format 'csv'.* hdf5, hdf5-varlen, tfrecord, lddl, datasets"):
        kind_of("csv")


@each_row("kind", ["hdf5", "tfrecord"])
def test_phases_of_one_length_do_not_overwrite_each_other(small_recipe: Path, tmp_path: Path, kind: Kind) -> None:
    text = small_recipe.read_text()
    phase = text[text.index("[[train.phases]]") : text.index("[train]")]
    shares = [phase + f"document_range = {share}\n\n" for share in ("[0.0, 0.5]", "[0.5, 1.0]", "[0.5, 1.0]")]
    (tmp_path / "three.toml").write_text(text.replace(phase, "".join(shares)))
    run_stages(Recipe.load(tmp_path / "three.toml"), tmp_path / "run", ["corpus", "vocab", "examples"])
    note = convert(tmp_path / "run", tmp_path / "out", Target(kind), ConvertOptions(files=1))
    rows = RunFolder(tmp_path / "run").artifact("examples").counts
    first, second = (sum(rows["train"]["rows"][name]) for name in ("16-0.0-0.5", "16-0.5-1.0"))
    (heldout,) = rows["heldout"]["rows"]["16"]
    assert note["examples"] == first + 2 * second + 3 * heldout
    sets = [found for found in detect(tmp_path / "out") if found.trains]
    assert sorted(sum(len(b) for b in format_of(kind).read(*found.files)) for found in sets) == sorted(
        [first, second, second]
    )


def test_phases_with_their_own_data_are_left_out(two_phases: Path, tmp_path: Path) -> None:
    """Said in the log; a run of such phases alone has nothing to convert."""
    convert(two_phases.parent / "own", tmp_path / "data", Target("tfrecord"), ConvertOptions(files=1))
    given = [f'train.phases.{i}.data="{tmp_path / "data"}"' for i in range(2)]
    notes = Notes()
    run_stages(Recipe.load(two_phases, given[:1]), tmp_path / "one", ["corpus", "vocab", "examples"])
    note = convert(tmp_path / "one", tmp_path / "out", Target("tfrecord"), ConvertOptions(files=1), log=notes)
    assert [Path(name).parts[0] for name in note["files"]] == ["seq_32", "seq_32"]
    assert any("phase 0 has its own data" in line for line in notes.said)
    run_stages(Recipe.load(two_phases, given), tmp_path / "both", ["corpus", "vocab", "examples"])
    with pytest.raises(RecipeError, match="every phase of .* has its own data"):
        convert(tmp_path / "both", tmp_path / "none", Target("tfrecord"))
    assert not (tmp_path / "none").exists()


@each_row(("kind", "plan"), [("tfrecord", "sentence-order"), ("lddl", "next-sentence")])
def test_order_labels_are_reported_once(two_phases: Path, tmp_path: Path, kind: Kind, plan: str) -> None:
    notes = Notes()
    recipe = Recipe.load(two_phases, [f"examples.plan={plan}"])
    run_stages(recipe, tmp_path / "run", ["corpus", "vocab", "examples"])
    convert(tmp_path / "run", tmp_path / "out", Target(kind), ConvertOptions(files=1), log=notes)
    said = [each for each in notes.said if "sentence order" in each]
    assert len(said) == (plan == "sentence-order")
    assert all("next-sentence labels" in each and "examples.plan=sentence-order" in each for each in said)
    convert(tmp_path / "run", tmp_path / "documents", Target("megatron"), log=notes)
    assert len([each for each in notes.said if "sentence order" in each]) == len(said), "documents have no labels"


def test_pairs_without_label_are_left_out_if_the_format_needs_one(
    small_recipe: Path, entries: list[str], tmp_path: Path
) -> None:
    run_stages(Recipe.load(small_recipe, ["examples.heldout=1e-9"]), tmp_path / "one", ["corpus", "vocab", "examples"])
    notes = Notes()
    note = convert(tmp_path / "one", tmp_path / "out", Target("lddl"), log=notes)
    assert note["examples"] == len(contents(tmp_path / "out", "training", entries)) > 0
    assert not (tmp_path / "out" / "seq_16" / "test").exists()
    (said,) = (each for each in notes.said if "held-out examples have no label" in each)
    assert "a random pair needs two held-out documents" in said
    convert(tmp_path / "one", tmp_path / "all", Target("hdf5"), log=notes)
    assert contents(tmp_path / "all", "test", entries)


def test_examples_without_pairs_are_refused_before_writing(small_recipe: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(small_recipe, ["examples.plan=doc-sentences"])
    run_stages(recipe, tmp_path / "run", ["corpus", "vocab", "examples"])
    with pytest.raises(RecipeError, match=r"LDDL holds only pairs .* \(examples\.plan=doc-sentences\)"):
        convert(tmp_path / "run", tmp_path / "out", Target("lddl"))


def test_no_file_is_empty_and_no_room_is_beyond_what_is_read(trained: Path, tmp_path: Path) -> None:
    """However many files and predictions are asked for."""
    recipe = Recipe.load(trained / "recipe.toml", ["train.phases.0.masking.max_predictions=99"])
    recipe.write(trained / "recipe.toml")
    shutil.rmtree(trained / "train")  # or its own settings would count
    note = convert(trained, tmp_path / "out", Target("hdf5"), ConvertOptions(files=10_000))
    assert all(note["files"].values())
    assert all(found.shape.predictions == 16 and not found.damaged for found in detect(tmp_path / "out"))


def test_settings_that_would_do_nothing_are_refused(trained: Path, tmp_path: Path) -> None:
    for target in (Target("hdf5", compress=True), Target("lddl", length=16), Target("datasets", predictions=2)):
        with pytest.raises(RecipeError, match="Leave"):
            convert(trained, tmp_path / "out", target)
    with pytest.raises(RecipeError, match="does not exist"):
        convert(tmp_path / "nothing", tmp_path / "out", Target("hdf5"))


def test_inspect_asks_for_the_vocabulary_of_word_pieces(trained: Path, tmp_path: Path) -> None:
    convert(trained, tmp_path / "out", Target("lddl"), ConvertOptions(files=1))
    with pytest.raises(RecipeError, match=r"contains word pieces .* give the vocab.txt"):
        describe(tmp_path / "out")


def test_inspect_describes_foreign_examples(trained: Path, tmp_path: Path) -> None:
    convert(trained, tmp_path / "out", Target("tfrecord"), ConvertOptions(files=2))
    facts = describe(tmp_path / "out", examples=Examples(trained / "vocab" / "vocab.txt", world=4))
    _, train = sorted(facts["set"], key=lambda each: each["examples"])
    assert train["files"] == 2 and train["mask_rate"] > 0.1 and train["unknown_rate"] == 0
    assert any("2 files for 4 ranks" in fault for fault in train["faults"])
    with pytest.raises(
        DataError, match="it was not made by bertwright, or is not finished. .*no training data in a known format"
    ):
        describe(empty(tmp_path))


def empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_blocks_are_cut_only_where_the_mask_rate_changes(trained: Path, entries: list[str], tmp_path: Path) -> None:
    """Drawing each step of 8 examples by itself cost half the time of small batches."""
    given = ["train.phases.0.masking.rate=[[0, 0.3], [3, 0.15]]", "train.phases.0.masking.max_predictions=5"]
    given += ["train.phases.0.steps=4"]
    Recipe.load(trained / "recipe.toml", given).write(trained / "recipe.toml")
    recipe, run = Recipe.load(trained / "recipe.toml"), RunFolder(trained)
    static = recipe.train.phases[0].masking.model_copy(update={"static": True})
    settings = LoaderSettings(16, static, 8, MicroBatching(8), recipe.train.seed, "0")
    loader = open_loader(run.artifact("examples"), PlanSet(length=16), settings)
    asked, whole = list[tuple[int, int]](), loader.batch

    def noted(first: int, stop: int) -> MicroBatch:
        asked.append((first, stop))
        return whole(first, stop)

    loader.batch = noted  # type: ignore[method-assign]
    (block,) = draw(loader, 0, loader.total)
    assert asked == [(0, 24), (24, loader.total)]
    assert rows(block) == rows(concatenate([instances(whole(i, i + 1)) for i in range(loader.total)]))
