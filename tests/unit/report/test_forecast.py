"""The forecast stands beside what was measured, in the summary and on the page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report.test_comparison import sealed_anew
from tests.unit.report.test_report import STAGES, report

from bertwright.core.artifact import open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.core.files import read_json, sha256_of
from bertwright.report.facts import read_facts

Make = Callable[..., Path]


def phase(steps: int | None) -> dict[str, Any]:
    """The forecast of a phase of this number of steps."""
    parts = ("weights", "gradients", "optimizer", "activations", "batches", "teacher", "program")
    sizes = {"memory": dict.fromkeys(parts, 1.0), "memory_bytes": 7.0, "micro_batch": 1, "micro_batches": 1}
    speed = {"attention": "sequences", "precision": "fp32", "step_seconds": 1.0, "tokens_per_second": 1.0, "hours": 1.0}
    return {"steps": steps, "sequences": None, "tokens": None, "epochs": None, **sizes, **speed}


def keep(folder: Path, **changed: Any) -> None:
    """A forecast in the run folder that each of its numbers makes easy to check."""
    train = open_artifact(folder / "train")
    plan = {
        "machine": {
            "title": "this machine, 2 <cores>",
            "device": "cpu",
            "ranks": 2,
            "nodes": 1,
            "memory_bytes": 8e9,
            "watts": 52.0,
            "price": 0.0,
            "currency": "",
        },
        "basis": "sources",
        "calibrated": "",
        "parameters": 4_386_178,
        "text_bytes": 1e7,
        "phases": [phase(600), phase(300)],
        "memory_bytes": 350_000_000,
        "fits": True,
        "remedies": [],
        "disk": {"train": 9.0 * train.manifest["disk"]["bytes"], "examples": None},
        "disk_left": {"train": 2.0 * train.manifest["disk"]["bytes"], "examples": None},
        "hours": {"corpus": None, "train": 1 / 3600, "evaluate": 1 / 3600},
        "total_hours": 1.0,
        "low_hours": 0.5,
        "high_hours": 2.0,
        "tokens_per_second": 51_234.5,
        "energy_kwh": 0.1,
        "cost": None,
    }
    kept = {"recipe_sha256": "0" * 64, **plan, **changed}
    (folder / "forecast.json").write_text(json.dumps({**kept, "sha256": sha256_of(kept)}))


def test_each_number_is_graded(run_folder: Make) -> None:
    folder = run_folder()
    keep(folder)
    page, graded = report(folder), read_json(folder / "summary.json")["forecast"]
    errors = {name: grade["error"] for name, grade in graded.items()}
    for name, stage in (("train_seconds", "train"), ("other_seconds", "evaluate")):
        took = open_artifact(folder / stage).manifest["seconds"]
        assert errors.pop(name) == pytest.approx(took - 1, abs=1e-3), "a second was forecast"
    assert errors == {"tokens_per_second": 0.0, "memory_bytes": 1.0, "disk_bytes": -0.5}
    assert "Forecast" in page.text and "this machine, 2 <cores>, 2 ranks" in page.text
    assert "+100\u00a0%" in page.text and "-50\u00a0%" in page.text


@pytest.mark.parametrize(
    ("forecast", "length", "same"),
    [
        ((600, 300), {"steps": 300}, True),
        ((600, 200), {"steps": 200}, False),
        ((500, 300), {"steps": 300}, False),
        ((600, None), {"epochs": 2.0}, True),
        ((600, 280), {"epochs": 2.0}, True),
        ((600, 280), {"tokens": 10_000}, True),
        ((600, 280), {"steps": 400, "hours": 1.0}, True),
    ],
)
def test_a_training_of_other_steps_is_not_graded_by_its_time(
    forecast: tuple[int, int | None], length: dict[str, Any], same: bool, run_folder: Make
) -> None:
    folder = run_folder()
    train = open_artifact(folder / "train")
    phases = [{**phase, **length} for phase in train.manifest["config"]["train"]["phases"]]
    phases[0] |= {"tokens": None, "epochs": None, "steps": 600}
    sealed_anew(folder / "train", {"phases": phases}, {"extensions": []})
    keep(folder, phases=[phase(steps) for steps in forecast])
    page, graded = report(folder), read_json(folder / "summary.json")["forecast"]
    assert ("train_seconds" in graded, "disk_bytes" in graded) == (same, same)
    assert {"other_seconds", "tokens_per_second", "memory_bytes"} <= graded.keys()
    assert ("Training had other steps than forecast" in page.text) is not same


@pytest.mark.parametrize(
    "changed", [{"phase_ends": [600, 200]}, {"extensions": [{"phase": 1, "step": 150, "from": 200, "to": 300}]}]
)
def test_nor_is_one_in_tokens_that_was_extended_or_ended_early(changed: dict[str, Any], run_folder: Make) -> None:
    folder = run_folder()
    train = open_artifact(folder / "train")
    phases = [{**phase, "tokens": 10_000} for phase in train.manifest["config"]["train"]["phases"]]
    sealed_anew(folder / "train", {"phases": phases}, {"phase_steps": [600, 300], "extensions": [], **changed})
    keep(folder, phases=[phase(600), phase(280)])
    report(folder)
    assert "train_seconds" not in read_json(folder / "summary.json")["forecast"]


@pytest.mark.parametrize("kept", [True, False], ids=["with a forecast", "without one"])
def test_settings_of_fewer_phases_than_were_trained_are_refused(kept: bool, run_folder: Make) -> None:
    folder = run_folder()
    train = open_artifact(folder / "train")
    sealed_anew(folder / "train", {"phases": train.manifest["config"]["train"]["phases"][:1]}, {"extensions": []})
    if kept:
        keep(folder, phases=[phase(600), phase(300)])
    with pytest.raises(ArtifactError, match="phase_steps must have a number for each of the 1 phases in its settings"):
        report(folder)


def test_without_a_forecast_there_is_no_section(run_folder: Make) -> None:
    folder = run_folder()
    assert "forecast" not in report(folder).ids and "forecast" not in read_json(folder / "summary.json")


def test_a_damaged_forecast_is_refused(run_folder: Make) -> None:
    folder = run_folder()
    keep(folder, memory_bytes="much")
    with pytest.raises(ArtifactError) as error:
        read_facts(folder, {stage: open_artifact(folder / stage) for stage in STAGES}, "")
    assert str(error.value).startswith(f"{folder / 'forecast.json'} is not valid: memory_bytes: ")
    keep(folder)
    text = (folder / "forecast.json").read_text()
    (folder / "forecast.json").write_text(text.replace("350000000", "360000000"))
    with pytest.raises(ArtifactError) as error:
        read_facts(folder, {stage: open_artifact(folder / stage) for stage in STAGES}, "")
    assert str(error.value) == (
        f"{folder / 'forecast.json'} is damaged: it does not match its checksum. Remove it: the report can be "
        "written without it."
    )
