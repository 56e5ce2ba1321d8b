"""Memory is checked for the texts that there are: rows are as long as the longest, or full if that is not known."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.rows import each_row
from tests.unit.test_choices import recipe as choosing
from tests.unit.test_classification import recipe as classifier
from tests.unit.test_classification import texts

from bertwright import Recipe, run
from bertwright.check.machine import resources
from bertwright.check.machine.resources import memory
from bertwright.check.verdict import Verdict
from bertwright.estimate.example_lengths import counted_examples
from bertwright.estimate.known_data import NOTHING_KNOWN, examples_of, known_before
from bertwright.estimate.machine import HardwareConfig, machine_of
from bertwright.estimate.memory import memory_of
from bertwright.estimate.work import works_of
from bertwright.plan.plan import make_plan

Load = Callable[..., Recipe]
SHARED = Path(os.environ.get("BERTWRIGHT_SHARED", Path(__file__).parents[4] / "shared"))
COLA = SHARED / "data" / "eval" / "cola"
PRESETS = ("bert-large", "bert-base", "distilbert")
V100 = HardwareConfig(gpu="v100", gpus=8, nodes=2)
RANKS = 16


def short_texts(folder: Path) -> Path:
    """A folder of sentences of 4 to 33 tokens, in the layout of CoLA."""
    folder.mkdir()
    sentences = [f"The miller sold {'his old grey horse and ' * (n % 6)}the bread." for n in range(500)]
    lines = [f"own\t{n % 2}\t\t{sentence}\n" for n, sentence in enumerate(sentences)]
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder


def azure(preset: str, data: Path) -> Recipe:
    return Recipe.load("azure-glue", [f"preset={preset}", f"train.phases.0.data={data}"])


def checked(recipe: Recipe, out: Path, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """The verdict on one of 16 ranks, each with a GPU of 32 GB."""
    monkeypatch.setattr(resources, "training_gpus", lambda recipe: (32 * 10**9,))
    (verdict,) = memory(recipe, ["train"], RANKS, known_before(recipe, out))
    return verdict


@each_row("preset", [name + more for name in PRESETS for more in ("", "-deepspeed")])
def test_published_settings_for_32_gb_fit_short_texts(
    preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for data in (short_texts(tmp_path / "own"), *([COLA] if COLA.is_dir() else [])):
        recipe = azure(preset, data)
        assert checked(recipe, tmp_path / "run", monkeypatch).level == "ok"
        plan = make_plan(recipe, {}, machine_of(V100))
        assert plan["fits"] and not plan["remedies"]
    unknown = azure(preset, tmp_path / "nowhere")
    assert known_before(unknown, tmp_path / "run").basis == "nothing"
    # Rows may be full then: those of DistilBERT just fit, and some others need more than twice the memory.
    full, level = make_plan(unknown, {}, machine_of(V100)), checked(unknown, tmp_path / "run", monkeypatch).level
    assert full["memory_bytes"] > 4 * plan["memory_bytes"]
    assert full["fits"] == (level == "ok") == (preset == "distilbert")


def test_a_question_is_as_long_as_all_its_choices(tmp_path: Path) -> None:
    recipe, out = choosing(tmp_path, "bert", 1), tmp_path / "run"
    before = examples_of(recipe, 0, known_before(recipe, out))
    run(recipe, out, ("vocab", "examples"))
    after = examples_of(recipe, 0, known_before(recipe, out))
    assert after.per_pass == before.per_pass == (100,)
    assert 24 < after.mean_length < 48 and after.longest > recipe.train.phases[0].length
    assert before.mean_length == pytest.approx(after.mean_length, rel=0.3) and before.longest >= after.longest


def test_labelled_texts_are_known_before_and_after_the_examples(tmp_path: Path) -> None:
    recipe, out = classifier(tmp_path, 'labels = ["poor", "fine"]', texts()), tmp_path / "run"
    before = examples_of(recipe, 0, known_before(recipe, out))
    run(recipe, out, stages=("vocab", "examples"))
    # The texts need not be here any more, as where a run is continued on another machine.
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    after = examples_of(recipe, 0, known_before(recipe, out))
    assert before.per_pass == after.per_pass == (36,)
    # 23 bytes, or six words and marks, with [CLS] and [SEP].
    assert (before.longest, after.longest) == (8, 8)


def test_own_examples_are_known_once_they_exist(trained: Path, load: Load, tmp_path: Path) -> None:
    recipe = load()
    assert known_before(recipe, tmp_path / "new").basis == "sources"
    found = examples_of(recipe, 0, known_before(recipe, trained))
    assert (found.longest, found.mean_length) == (16, 16.0)
    other = load(f"train.phases.0.data={trained / 'examples'}")
    assert examples_of(other, 0, known_before(other, tmp_path / "new")) == found, "those of another run"
    (trained / "examples" / "manifest.json").write_text("{")
    assert known_before(recipe, trained).basis == "corpus", "the training reports it"


@each_row(
    ("counts", "longest"),
    [
        ({"mean_length": 6.0, "lengths": [0, 5, 0, 0], "deviation": 1.0, "longest": 8}, 8),
        ({"mean_length": 6.0}, 16),
        ({}, 16),
    ],
)
def test_imported_examples_without_lengths_count_as_full(
    counts: dict[str, Sequence[float]], longest: int, load: Load, tmp_path: Path
) -> None:
    recipe = load(f"train.phases.0.data={tmp_path}")
    made = {"train": {"sequences": {"imported/0": counts}}, "imported": {"train.phases.0": {"examples": 5}}}
    _, imported = counted_examples(recipe, made)
    assert imported[0].longest == longest and imported[0].per_pass == (5,)


def test_short_texts_spare_nothing_where_rows_are_full(tmp_path: Path) -> None:
    """A compiled network pads every row."""
    classifier(tmp_path, 'labels = ["poor", "fine"]', texts())
    for keys, spared in (((), True), (("train.graph=compiled",), False)):
        recipe = Recipe.load(tmp_path / "recipe.toml", ["train.attention=padded", *keys])
        known, unknown = (
            memory_of(recipe, works_of(recipe, data, 1, False, 1e9)[0], 1, False).activations
            for data in (known_before(recipe, tmp_path / "run"), NOTHING_KNOWN)
        )
        assert (known < unknown) == spared and (known == unknown) != spared
