"""What a tiny scale replaces, what it leaves as it is said, and what it says of it."""

import tomllib
from pathlib import Path

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.scale.tiny import load_tiny
from bertwright.shipped import find_shipped

RECIPE = """
[corpus]
source = {path = "https://me:secret@example.org/dump.xml.bz2"}
language = "en"
[vocab]
file = "vocab.txt"
[model]
config = "bert.json"
[[train.phases]]
length = 128
batch = 64
batch_warmup = [[0, 16], [100, 64]]
learning_rate = 1e-3
samples = 640_000
warmup = 1000
end_after = 5000
restart_bias_correction = false
[[train.phases]]
length = 128
batch = 32
learning_rate = 1e-3
steps = 10_000
data = "examples"
document_range = [0.0, 1.0]
hours = 3.0
[train]
init_from = "checkpoint"
engine = "zero"
averaging = {kind = "last", every = 500}
mirror = "s3://bucket/run"
observers = ["tensorboard"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.toml").write_text(RECIPE)
    return tmp_path / "mine.toml"


def test_missing_inputs_are_replaced_and_schedules_keep_shape(file: Path) -> None:
    recipe, _ = load_tiny(file)
    first, second = recipe.train.phases
    assert (first.steps, second.steps) == (6, 6), "both are 10,000 steps long"
    assert (first.batch, second.batch) == (16, 8)
    assert first.batch_warmup == ((0, 8), (1, 16))
    assert (first.warmup, first.end_after) == (1, 3)
    assert first.samples is None and second.hours is None and second.data is None
    train = recipe.train
    assert train.init_from is None and train.mirror == "" and train.observers == () and train.engine.kind == "auto"
    assert getattr(train.averaging, "every", None) == 1
    assert (recipe.model.size, recipe.model.config, recipe.vocab.file, recipe.vocab.size) == ("tiny", None, None, 800)


def test_each_replacement_is_a_line_with_both_values_and_the_reason(file: Path) -> None:
    _, replaced = load_tiny(file)
    for line in (
        "model.config: bert.json -> left out (the smallest of its family instead)",
        "train.init_from: checkpoint -> left out (made for another network)",
        "train.phases.0.samples: 640,000 -> left out (replaced by steps)",
        "train.phases.0.batch: 64 -> 16 (the batches of the phases keep their ratio)",
        "train.engine: zero -> left out (a single process holds all weights)",
        "train.mirror: s3://bucket/run -> left out (no checkpoints are copied)",
    ):
        assert line in replaced
    assert not any("secret" in line for line in replaced)


def test_what_is_said_on_the_command_line_stays(file: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("A text.\n")
    source = f"corpus.source={tmp_path}/text.txt"
    said = [source, "train.phases.0.batch=24", "train.phases.0.batch_warmup=", "examples.passes=3"]
    recipe, replaced = load_tiny(file, said)
    assert recipe.corpus is not None
    assert recipe.corpus.source[0].path.endswith("text.txt") and recipe.corpus.language == "en"
    assert recipe.train.phases[0].batch == 24 and recipe.examples.passes == 3
    assert not any(line.startswith(("corpus.source", "corpus.language", "train.phases.0.batch")) for line in replaced)


def test_recipe_errors_are_reported_as_usual(file: Path) -> None:
    with pytest.raises(RecipeError, match="did you mean 'batch'"):
        load_tiny(file, ["train.phases.0.bacth=3"])


def test_a_recipe_without_a_corpus_has_one_then(tmp_path: Path) -> None:
    (tmp_path / "data.toml").write_text(
        'texts.language = "en"\nvocab.file = "v.txt"\nmodel.size = "base"\n'
        '[[train.phases]]\nlength = 64\nbatch = 8\nlearning_rate = 1e-3\nepochs = 3\ndata = "hdf5"\n'
    )
    recipe, _ = load_tiny(tmp_path / "data.toml")
    assert recipe.corpus is not None and recipe.texts is None and recipe.train.phases[0].steps == 12


@each_row(("task", "warmup"), [("cola", 7), ("mnli", 1)])
def test_a_warmup_in_steps_keeps_its_share_of_glue_epochs(task: str, warmup: int) -> None:
    """500 of 836 steps of 1,024 sentences: CoLA has 8,551 (MNLI: of 38,350 steps)."""
    recipe, _ = load_tiny("azure-glue", [f"train.objective.task={task}"])
    assert (recipe.train.phases[0].steps, recipe.train.phases[0].warmup) == (12, warmup)


def test_a_warm_up_whose_share_nobody_knows_is_the_usual_one(file: Path) -> None:
    schedule = 'schedule = {kind = "poly_nvidia", warmup_before = 76}'
    file.write_text(RECIPE.replace("samples = 640_000", f"epochs = 3\n{schedule}").replace("end_after = 5000", ""))
    recipe, replaced = load_tiny(file)
    assert recipe.train.phases[0].warmup == 0.1
    line = "train.phases.0.warmup: 1,000 -> left out (its share is not known before the examples are counted)"
    assert line in replaced


@each_row("preset", tomllib.loads(find_shipped("recipe", "mlperf-large").read_text())["presets"])
def test_every_preset_of_a_shipped_recipe_has_a_tiny_scale(preset: str) -> None:
    """Their schedules begin a warm-up before the first step."""
    recipe, _ = load_tiny("mlperf-large", [f"preset={preset}"])
    assert sum(phase.steps or 0 for phase in recipe.train.phases) <= 14
