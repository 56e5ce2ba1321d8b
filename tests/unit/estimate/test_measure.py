"""A measurement is of the recipe's own steps, is kept by what it is of, and comes before the table of devices."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.reference.teachers import write_stock
from tests.rows import each_row
from tests.unit.test_choices import recipe as choosing
from tests.unit.test_classification import recipe as classifier
from tests.unit.test_classification import texts
from tests.unit.test_spans import recipe as answering

from bertwright import Recipe
from bertwright.cli import main
from bertwright.core.errors import DataError
from bertwright.estimate import measurement_cache
from bertwright.estimate.known_data import read_data
from bertwright.estimate.machine import HardwareConfig, machine_of, this_machine
from bertwright.estimate.measure import lengths_like, measure, synthetic
from bertwright.estimate.measurement_cache import Measured, cache_file, key_of, read_measurement, store_measurements
from bertwright.estimate.work import phase_work
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.pipeline.lineage import matching_artifacts
from bertwright.plan.plan import MEASURED_BAND, make_plan, planned_works

Load = Callable[..., Recipe]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bertwright" / "measured.json"


def test_what_was_measured_comes_before_the_table(load: Load, tmp_path: Path, cache: Path) -> None:
    recipe, out = load(), tmp_path / "run"
    machine = this_machine(recipe)
    found = measure(*planned_works(recipe, matching_artifacts(recipe, out), machine), machine.ranks, seconds=0.0)
    (key, measured), *others = found.items()
    assert not others and measured.micro_batch > 0 and measured.update >= 0
    store_measurements({key: Measured(2.0, 1.0, "2026-01-02")})
    assert cache_file() == cache and cache.is_file()
    plan = make_plan(recipe, matching_artifacts(recipe, out), machine)
    assert plan["phases"][0]["step_seconds"] == pytest.approx(2 * 2.0 + 1.0), "two micro-batches and an update"
    assert plan["calibrated"] == "from a measurement of this machine (2026-01-02)"
    assert plan["high_hours"] == pytest.approx(plan["total_hours"] * MEASURED_BAND[1])  # type: ignore[operator]
    assert make_plan(load("model.dropout=0.3"), matching_artifacts(recipe, out), machine)["calibrated"] == "", (
        "another network"
    )
    assert (
        make_plan(recipe, matching_artifacts(recipe, out), machine_of(HardwareConfig(gpu="h100")))["calibrated"] == ""
    ), "another machine"
    nodes, ranks = replace(machine, nodes=2), this_machine(recipe, 2)
    assert make_plan(recipe, matching_artifacts(recipe, out), nodes)["calibrated"], "each with one process"
    assert make_plan(recipe, matching_artifacts(recipe, out), ranks)["calibrated"] == "", "two share the cores"


def test_a_phase_of_new_rows_is_measured_by_itself(load: Load) -> None:
    recipe = load()
    machine = this_machine(recipe)
    _, (full,) = planned_works(recipe, {}, machine)
    rows = replace(full, phase=full.phase.model_copy(update={"trains": "new-rows"}))
    found = measure(recipe, [rows, full], machine.ranks, seconds=0.0)
    assert len(found) == 2 and key_of(recipe, full, 4) in found, "the key of what was measured before stays"
    assert all(each.micro_batch > 0 for each in found.values())


@each_row("kind", ["span", "choice"])
def test_labels_of_every_head_can_be_measured(kind: str, tmp_path: Path) -> None:
    recipe = answering(tmp_path, "bert", False, 1) if kind == "span" else choosing(tmp_path, "bert", 1)
    _, works = planned_works(recipe, matching_artifacts(recipe, tmp_path / "run"), this_machine(recipe))
    (found,) = measure(recipe, works, 1, seconds=0.0).values()
    assert found.micro_batch > 0


def measured(recipe: Recipe) -> Measured:
    machine = this_machine(recipe)
    (found,) = measure(*planned_works(recipe, {}, machine), machine.ranks, seconds=0.0).values()
    return found


def test_a_classifier_is_measured_on_random_labels(tmp_path: Path) -> None:
    for labels, kind in (('labels = ["poor", "fine"]', np.int64), ('labels = ["score"]', np.float32)):
        recipe = classifier(tmp_path, labels, texts())
        batch = synthetic(recipe, phase_work(recipe, 0, read_data(recipe, {})), 4)
        assert batch.sequence_labels.dtype == kind and (batch.sequence_weights == 1).all()
        assert batch.counts.predictions == 0 and batch.counts.sequences == 4
        assert measured(recipe).micro_batch > 0


def test_a_teacher_is_measured_with_its_network_and_known_by_it(load: Load, tmp_path: Path) -> None:
    plain = load()
    keys = {key_of(plain, phase_work(plain, 0, read_data(plain, {})), 4)}
    for size in ("tiny", "mini"):
        # As many rows as the network itself has entries: no id of the batch is outside of them.
        folder = write_stock(tmp_path / "teacher", PreTrainingModel(BertModelConfig(size=size).resolve(160, False)))
        objective = f'{{kind="distillation", hidden_weight=0, teacher="{folder}"}}'
        recipe = load(f"train.objective={objective}", "model.config=", "model.size=tiny")
        assert measured(recipe).micro_batch > 0
        keys.add(key_of(recipe, phase_work(recipe, 0, read_data(recipe, {})), 4))
        folder.rename(tmp_path / size)
    assert len(keys) == 3, "another network at the same path is another measurement"
    keys.add(key_of(recipe, phase_work(recipe, 0, read_data(recipe, {})), 4))
    assert len(keys) == 4, "a teacher that cannot be read stops no plan"


def test_a_cache_that_cannot_be_read_is_none(load: Load, tmp_path: Path, cache: Path) -> None:
    recipe = load()
    key = key_of(recipe, phase_work(recipe, 0, read_data(recipe, {})), 4)
    store_measurements({key: Measured(2.0, 1.0, "2026-01-02")})
    cache.write_text('{"' + key + '": {"micro_batch": "long"}}')
    assert read_measurement(key) is None
    store_measurements({key: Measured(3.0, 1.0, "2026-01-02")})
    assert read_measurement(key) == Measured(3.0, 1.0, "2026-01-02")


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_a_cache_of_a_bad_disk_or_another_user_is_none(
    error: OSError, load: Load, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_measurements({"a": Measured(2.0, 1.0, "2026-01-02")})

    def broken(path: Path) -> None:
        raise error

    monkeypatch.setattr(measurement_cache, "read_json", broken)
    assert read_measurement("a") is None
    recipe = load()
    assert make_plan(recipe, {}, this_machine(recipe))["calibrated"] == ""


def test_a_user_without_a_home_has_no_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert read_measurement("a") is None
    with pytest.raises(DataError, match=r"no folder for measurements \(Could not .* directory\)\. Set XDG_CACHE_HOME"):
        store_measurements({"a": Measured(2.0, 1.0, "2026-01-02")})


def test_a_cache_that_cannot_be_written_is_an_error(cache: Path) -> None:
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"cannot write .*bertwright: .* Measurements are written below XDG_CACHE_HOME"):
        store_measurements({"a": Measured(2.0, 1.0, "2026-01-02")})


def test_the_batch_has_the_sizes_of_the_phase(load: Load, tmp_path: Path) -> None:
    recipe = load("train.phases.0.masking.max_predictions=2")
    work = phase_work(recipe, 0, read_data(recipe, {}))
    batch = synthetic(recipe, work, 3)
    assert batch.counts.sequences == 3 and batch.counts.tokens == pytest.approx(3 * work.mean_length, abs=2)
    lengths = np.diff(batch.cu_seqlens)
    assert lengths.tolist() == lengths_like(work.mean_length, work.phase.length, 3).tolist()
    each = [min(2, max(1, round(work.predictions * length / work.mean_length))) for length in lengths]
    assert batch.counts.predictions == sum(each) and batch.token_ids.max() < 160
    assert batch.position_ids.tolist() == [place for length in lengths for place in range(length)]
    rows = np.searchsorted(batch.cu_seqlens, batch.prediction_positions, side="right") - 1
    assert (batch.prediction_positions > batch.cu_seqlens[rows]).all(), "[CLS] is not predicted"
    assert batch.max_row == lengths.max() <= work.phase.length


@each_row(
    ("mean", "sequences", "expected"),
    [
        (128, 3, [128, 128, 128]),
        (127, 2, [127, 127]),
        (96, 4, [128, 128, 43, 85]),
        (64, 3, [32, 64, 96]),
        (20, 3, [10, 20, 30]),
        (100, 1, [100]),
        (80, 1, [80]),
        (1, 2, [4, 4]),
    ],
)
def test_some_sequences_are_full_and_the_others_of_any_length(mean: int, sequences: int, expected: list[int]) -> None:
    assert lengths_like(mean, 128, sequences).tolist() == expected


def test_a_place_is_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "place.toml").write_text('[hardware]\ngpu = "h100"\n', encoding="utf-8")
    words = ["bertwright", "plan", "demo", "--place", str(tmp_path / "place.toml"), "--measure"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "--measure with --place has no effect. Leave it out." in capsys.readouterr().err
