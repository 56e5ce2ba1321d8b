"""Every shipped recipe is valid, says how to start it, and trains to completion at a tiny scale."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
from tests.pipeline.command import RECIPES
from tests.pipeline.conftest import Call
from tests.pipeline.heads import entries, head, overrides, presets_of
from tests.rows import each_row

from bertwright import Recipe
from bertwright.core.config import result_settings
from bertwright.scale.tiny import load_tiny
from bertwright.train.settings.phase_config import PhaseConfig

COLA = 8551
"""Sentences of CoLA, as the data set's card gives them; the recipes for labelled texts name this task."""
SHIPPED = sorted(RECIPES.glob("*.toml"))
each_recipe = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)


each_preset = each_row(
    ("path", "preset"),
    [pytest.param(path, preset, id=" ".join([path.stem, *preset])) for path in SHIPPED for preset in presets_of(path)],
)


@pytest.fixture(scope="module")
def made() -> dict[str, Path]:
    """Folders of corpora and vocabularies built by recipes so far, by the settings they depend on."""
    return {}


@each_preset
def test_it_is_valid(path: Path, preset: list[str], tmp_path: Path, call: Call) -> None:
    done = call("check", path, *preset, "--scale", "tiny", "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.out + done.err


@each_row("path", SHIPPED)
def test_its_head_names_a_command_that_parses(path: Path, call: Call) -> None:
    head = path.read_text().partition("\n\n")[0]
    assert all(line.startswith("#") for line in head.splitlines())
    assert head.partition("\n")[0].endswith("."), "`bertwright recipes` shows the first line"
    for fact in ("command", "hardware", "time", "expect"):
        assert f"#   {fact} " in head, f"{path.name} does not say its {fact}"
    line = next(line for line in head.splitlines() if line.startswith("#   command "))
    words = shlex.split(line[line.index("bertwright ") :].rstrip(") "))
    assert words[:3] == ["bertwright", "run", path.stem]
    overrides = [word for word in words[3:] if "=" in word]
    Recipe.load(path, overrides)
    assert [word for word in words[3:] if "=" not in word][::2] in ([], ["--out"])


@each_recipe
def test_it_runs_end_to_end_at_a_tiny_scale(path: Path, tmp_path: Path, call: Call, made: dict[str, Path]) -> None:
    recipe, replaced = load_tiny(path)
    settings = json.dumps(result_settings([recipe.corpus]))
    known = {"corpus": settings, "vocab": settings + json.dumps(result_settings([recipe.vocab]))}
    run = tmp_path / "run"
    for stage in known.keys() & {stage for stage, key in known.items() if key in made}:
        shutil.copytree(made[known[stage]], run / stage)
    done = call("run", path, "--scale", "tiny", "--out", run)
    assert done.code == 0, done.err
    made |= {key: run / stage for stage, key in known.items()}
    assert all(f"scale: {line}" in done.err for line in replaced) and replaced
    summary = json.loads((run / "summary.json").read_text())
    assert summary["steps"] == sum(phase.steps or 0 for phase in recipe.train.phases)
    assert (run / "report.html").is_file() and (run / "export" / "hf" / "model.safetensors").is_file()


def test_azure_glue_as_masked_lm_trains_at_a_tiny_scale(tmp_path: Path, call: Call) -> None:
    """As its head says it: the example's README calls it masked LM."""
    path = RECIPES / "azure-glue.toml"
    masked = next(overrides(entries(head(path))["masked LM"]))
    done = call("run", path, *masked, "--scale", "tiny", "--until", "train", "--out", tmp_path / "run")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (tmp_path / "run" / "train" / "metrics.jsonl").read_text().splitlines()]
    losses = [row["mlm_loss"] for row in rows if "mlm_loss" in row]
    assert len(losses) == 12 and not any(name.startswith("classification") for row in rows for name in row)


def planned_steps(phase: PhaseConfig) -> float:
    """The steps of a phase, about, whichever key gives its length."""
    of_epochs = (phase.epochs or 0) * COLA / phase.batch
    return phase.steps or (phase.tokens or 0) / phase.batch / phase.length or of_epochs


def rising_shares(phase: PhaseConfig) -> tuple[float, float]:
    """The warm-up, and what of it counts as done before the phase, as shares of the phase's steps."""
    steps, before = planned_steps(phase), getattr(phase.schedule, "warmup_before", 0)
    return (phase.warmup / steps if phase.warmup >= 1 else phase.warmup), before / steps


@each_preset
def test_a_tiny_scale_keeps_the_shape_of_the_schedule(path: Path, preset: list[str]) -> None:
    whole, (tiny, _) = Recipe.load(path, preset), load_tiny(path, preset)
    assert tiny.optim == whole.optim and tiny.model.kind == whole.model.kind
    for before, after in zip(whole.train.phases, tiny.train.phases, strict=True):
        kept = {"length", "learning_rate", "masking", "document_range"}
        assert after.model_dump(include=kept) == before.model_dump(include=kept)
        schedules = [phase.schedule.model_dump(exclude={"warmup_before"}) for phase in (before, after)]
        assert schedules[0] == schedules[1]
        assert after.batch * after.length <= 2048 and after.steps is not None and after.steps <= 12
        assert rising_shares(after) == pytest.approx(rising_shares(before), abs=1 / after.steps)
