"""A plan says what a run takes: compared with the run's own reckoning, with what it took, and with its own text."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.golden.plan.plans import PLANS, ROOT, planned
from tests.rows import each_row

from bertwright import Recipe, RunFolder
from bertwright.cli import main
from bertwright.core.errors import RecipeError
from bertwright.estimate.devices import gpu_of_driver
from bertwright.estimate.disk import run_bytes
from bertwright.estimate.known_data import read_data
from bertwright.estimate.machine import HardwareConfig, machine_of, read_place, this_machine
from bertwright.estimate.memory import memory_of, teacher_bytes
from bertwright.estimate.step_time import all_reduce_seconds, straggler_share
from bertwright.estimate.work import phase_work
from bertwright.forecast_shapes import PLAN
from bertwright.pipeline.lineage import matching_artifacts
from bertwright.plan.plan import make_plan
from bertwright.shipped import shipped
from bertwright.train.memory.rank_memory import computing_of, training_bytes
from bertwright.train.settings.phases import resolve_phases

Load = Callable[..., Recipe]
GPUS = HardwareConfig(gpu="h100", gpus=8, cores=64, price=25.0)


@pytest.mark.parametrize(
    "length",
    ["steps=7", "samples=100", "tokens=2000", "epochs=1.5", "epochs=3", "tokens=900 batch_warmup=[[0,4],[2,8]]"],
)
def test_steps_are_those_that_training_resolves(trained: Path, load: Load, length: str) -> None:
    recipe = load("train.phases.0.steps=", *(f"train.phases.0.{key}" for key in length.split()))
    folder = RunFolder(trained)
    (phase,) = resolve_phases(recipe.train, folder.artifact("examples"), folder.artifact("vocab"))
    work = phase_work(recipe, 0, read_data(recipe, matching_artifacts(recipe, trained)))
    assert (work.steps, work.sequences) == (phase.steps, phase.loader.settings.batches.before(phase.steps))
    assert work.mean_length == pytest.approx(phase.loader.examples.mean_tokens, abs=0.01)


@each_row("key", ["train.attention=padded", "train.checkpoint_activations=true", "train.averaging=ema"])
def test_the_parts_of_memory_are_those_of_the_check(load: Load, key: str) -> None:
    recipe = load(key)
    for ranks in (1, 2):
        work = phase_work(recipe, 0, read_data(recipe, {}))
        memory, computing = (
            memory_of(recipe, work, ranks, gpu=False),
            computing_of(recipe.train, recipe.optim, ranks, gpu=False),
        )
        beside = memory.batches + teacher_bytes(recipe, recipe.network(), work.phase, ranks)
        checked = training_bytes(recipe.network(), recipe.train.phases[0], computing, memory.activations)
        assert memory.total == pytest.approx(checked + beside) and min(vars(memory).values()) >= 0


def test_what_is_finished_is_counted_and_not_planned(trained: Path, load: Load) -> None:
    recipe = load()
    plan = PLAN.validate_python(make_plan(recipe, matching_artifacts(recipe, trained), this_machine(recipe)))
    disk = RunFolder(trained).artifact("examples").manifest["disk"]["bytes"]
    assert plan["disk"]["examples"] == disk and plan["basis"] == "examples"
    assert plan["disk"]["train"] == run_bytes(recipe, None)["train"]
    assert set(plan["hours"]) == {"evaluate", "export"}, "of the stages that are still to be made"
    assert plan["fits"] and not plan["remedies"]


def test_what_hours_end_is_not_counted_as_trained(load: Load) -> None:
    recipe = load("train.phases.0.steps=1000000")
    whole = make_plan(recipe, {}, this_machine(recipe))["phases"][0]
    cut = make_plan(load("train.phases.0.steps=1000000", "train.phases.0.hours=0.01"), {}, this_machine(recipe))
    phase = cut["phases"][0]
    assert whole["steps"] and phase["steps"] and phase["steps"] < whole["steps"]
    for name in ("sequences", "tokens"):
        assert phase[name] == pytest.approx(whole[name] * phase["steps"] / whole["steps"], abs=1)  # type: ignore[literal-required]


@each_row(
    ("driver", "name"), [("NVIDIA A10G", "a10"), ("NVIDIA RTX A1000", None), ("NVIDIA L40", None), ("NVIDIA L4", "l4")]
)
def test_a_gpu_is_known_by_whole_words_of_its_driver(driver: str, name: str | None) -> None:
    found = gpu_of_driver(driver, 24e9)
    assert (found and found.name) == name


def test_unknown_values_are_question_marks(load: Load, tmp_path: Path) -> None:
    recipe = load("corpus.source=https://a.b/c.xml.bz2", "train.phases.0.steps=", "train.phases.0.epochs=2")
    plan = PLAN.validate_python(make_plan(recipe, {}, this_machine(recipe)))
    assert plan["basis"] == "nothing" and plan["text_bytes"] is None and plan["disk"]["corpus"] is None
    assert plan["phases"][0]["steps"] is None and plan["total_hours"] is None and plan["cost"] is None
    assert plan["phases"][0]["step_seconds"] > 0 and plan["memory_bytes"] > 0


def test_every_remedy_makes_the_training_fit() -> None:
    recipe = Recipe.load("nvidia-large", given=False)
    for hardware in (HardwareConfig(gpu="v100-16", gpus=8), HardwareConfig(gpu="h100", memory_gb=6.0, gpus=2)):
        machine = machine_of(hardware)
        plan = make_plan(recipe, {}, machine)
        assert not plan["fits"] and plan["remedies"]
        for remedy in plan["remedies"]:
            helped = Recipe.load("nvidia-large", remedy["keys"], given=False)
            again = make_plan(helped, {}, machine)
            assert again["fits"] and again["memory_bytes"] == pytest.approx(remedy["memory_bytes"])


def test_energy_and_cost_are_of_the_machines_that_work(load: Load, tmp_path: Path) -> None:
    recipe = load("train.phases.0.batch=64", "train.phases.0.steps=100000")
    one, four = (make_plan(recipe, {}, replace(machine_of(GPUS), nodes=nodes)) for nodes in (1, 4))
    for plan, nodes in ((one, 1), (four, 4)):
        # All machines train, and one of them does the rest.
        stages = {stage: value or 0.0 for stage, value in plan["hours"].items()}
        hours = stages.pop("train") * nodes + sum(stages.values())
        assert hours and plan["cost"] == pytest.approx(25.0 * hours)
        assert plan["energy_kwh"] == pytest.approx(hours * 8 * 700 * 1.35 / 1000)
    assert four["phases"][0]["micro_batch"] == 2 and four["machine"]["ranks"] == 32


def test_a_sum_over_ranks_takes_what_a_ring_sends() -> None:
    # 1 GB in a machine of 8: each sends 7 of 8 parts twice; then an eighth goes between 4 machines likewise.
    inside = 2 * 7 * (1e9 / 8) / (0.8 * 450e9)
    between = 2 * 3 * (1e9 / 8 / 4) / (0.8 * 25e9)
    seconds = all_reduce_seconds(1e9, 8, 4, 450e9, 25e9)
    assert 0 < seconds - (inside + between) < 1.5e-3, "messages take a while however short"
    assert all_reduce_seconds(1e9, 1, 1, 450e9, 25e9) == 0
    assert straggler_share(1) == 0 and straggler_share(64) == pytest.approx(0.01 * math.sqrt(2 * math.log(64)))


@each_row("name", PLANS)
def test_the_text_is_the_kept_one(name: str) -> None:
    assert planned(name) == (ROOT / f"{name}.txt").read_text(encoding="utf-8")


@each_row("name", PLANS)
def test_the_text_fits_a_terminal_of_80_columns(name: str) -> None:
    assert max(map(len, planned(name, 80).splitlines())) <= 80


def test_a_gpu_of_unknown_memory_is_no_device_without_any(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As AMD's are: what fits there is not known before training."""
    monkeypatch.setattr("bertwright.estimate.machine.training_gpus", lambda recipe: (0,))
    monkeypatch.setattr("bertwright.estimate.machine.gpu_names", lambda: ())
    for key in ("train.phases.0.micro_batch=64", "train.phases.0.micro_batch=auto"):
        monkeypatch.setattr("sys.argv", ["bertwright", "plan", "nvidia-large", key])
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code
        said = capsys.readouterr().out
        assert "1 of 1 GPUs (a GPU), memory unknown\n" in said and "total" in said
        assert "does not fit" not in said and "share of the available memory" not in said
    recipe = Recipe.load("nvidia-large", ["train.phases.0.micro_batch=auto"], given=False)
    plan = PLAN.validate_python(make_plan(recipe, {}, this_machine(recipe)))
    assert plan["fits"] and not plan["remedies"] and plan["machine"]["memory_bytes"] == 0
    assert plan["phases"][0]["micro_batch"] > 1, "by the memory of the smallest GPU"


def test_json_is_the_whole_plan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bertwright", "plan", "demo", "--json"])
    with pytest.raises(SystemExit) as left:
        main()
    printed = json.loads(capsys.readouterr().out)
    assert left.value.code == 0 and printed.pop("recipe") == "demo"
    assert PLAN.validate_python(printed)["parameters"] == Recipe.load("demo").network().parameters


@each_row(
    ("text", "message"),
    [
        (None, "cannot read the place {path}: "),
        (
            "kind = 'local'\n",
            "{path} does not describe the hardware of its machines. Add a section [hardware], such as: gpu = "
            '"h100", gpus = 8.',
        ),
        ("[hardware]\ngpu = 'h1000'\n", "'h1000' is not a known GPU. Did you mean h100?"),
        ("[hardware]\ngpu = 'tpu'\n", "'tpu' is not a known GPU. Known GPUs: b200, h200, "),
        ("[hardware]\nnodes = 0\n", "{path}:2: nodes: "),
        (
            "overrides = 'train.seed=1'\n[hardware]\n",
            '{path}:1: overrides: give a list, such as ["train.precision=fp16"].',
        ),
        ("[hardware]\ngpuz = 8\n", "{path}:2: gpuz: "),
        (
            "accelerators = 'H100:8'\n[hardware]\ngpu = 'h100'\n",
            "{path}: [hardware] does not say how many GPUs a machine with accelerators = 'H100:8' has, so the "
            "forecast would be for one. Add for example gpus = 8 to [hardware].",
        ),
    ],
)
def test_an_incomplete_place_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "place.toml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as error:
        read_place(path)
    assert str(error.value).startswith(message.format(path=path))


def test_a_launch_place_describes_its_hardware(tmp_path: Path) -> None:
    path = tmp_path / "place.toml"
    said = 'kind = "slurm"\nnodes = 3\ngpus = 4\noverrides = ["train.precision=fp16"]\n'
    path.write_text(said + '[hardware]\ngpu = "h100"\n', encoding="utf-8")
    place = read_place(path)
    assert (place.machine.nodes, place.machine.each, place.overrides) == (3, 4, ("train.precision=fp16",))


def test_ranks_of_a_machine_share_its_cores_and_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "place.toml"
    path.write_text('kind = "slurm"\nranks = 2\n[hardware]\ncores = 8\nmemory_gb = 64\n', encoding="utf-8")
    machine = read_place(path).machine
    assert (machine.ranks, machine.device.memory, machine.cores) == (2, 32e9, 8)


def test_a_run_of_another_recipe_is_not_used(load: Load, trained: Path) -> None:
    recipe, other = load(), load("train.phases.0.steps=99", "examples.heldout=0.3")
    assert set(matching_artifacts(recipe, trained)) >= {"corpus", "vocab", "examples", "train"}
    assert set(matching_artifacts(other, trained)) == {"corpus", "vocab"}
    hours = make_plan(other, matching_artifacts(other, trained), this_machine(other))["hours"]
    assert "vocab" not in hours and {"examples", "train"} <= set(hours)


@each_row("name", shipped("place"))
def test_every_shipped_place_can_be_planned_for(name: str) -> None:
    assert read_place(name).machine.device.memory > 0


def test_more_ranks_than_sequences_are_refused(load: Load, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as error:
        make_plan(load(), {}, replace(machine_of(GPUS), nodes=2))
    assert str(error.value) == (
        "16 ranks (2 machines of 8) cannot share train.phases.0.batch = 8: some ranks would have no sequences. "
        "Plan for fewer ranks, or raise the batch."
    )


def test_a_precision_that_its_gpus_have_no_unit_for_is_refused(load: Load, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as error:
        make_plan(load("train.device=auto", "train.precision=bf16"), {}, machine_of(HardwareConfig(gpu="v100")))
    assert str(error.value) == (
        "train.precision = bf16, but a v100 has no hardware support for it. Set train.precision=fp16."
    )


def test_a_recipe_without_training_and_no_machines_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tmp_path / "half.toml"
    recipe.write_text('[corpus]\nsource = "sample"\nlanguage = "hu"\n[model]\nsize = "tiny"\n', encoding="utf-8")
    said = {("plan", str(recipe)): "train: ", ("plan", "demo", "--nodes", "0"): "--nodes"}
    for words, wanted in said.items():
        monkeypatch.setattr("sys.argv", ["bertwright", *words])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 2 and wanted in capsys.readouterr().err
