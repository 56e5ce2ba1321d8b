"""Regression 4: a learning rate that falls at once, an update that does nothing, and a schedule nobody chose.

NVIDIA DeepLearningExamples BERT @4733603, schedulers.py, PolyWarmUpScheduler: the rate rises in a line to the peak,
and the square-root decay that follows is reckoned from the start of training, not from the end of the warm-up. At the
end of the warm-up the rate therefore drops by 1 - sqrt(1 - warm-up share) from one update to the next (15.4 % in
phase 1, 6.6 % in phase 2), and the last update has rate 0. ONNX Runtime's copy
(microsoft/onnxruntime-training-examples, parent of 967245e) still offers `--schedule warmup_poly`, which nothing
reads: its trainer is built with LinearWarmupLRScheduler, a straight line down from the same peak.

Here `poly` starts its decay from the peak and has no update at rate 0; `poly_nvidia` is NVIDIA's rule to the last
digit; `linear` is what ONNX Runtime did; and the schedule that the recipe names is the one that runs.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.conftest import Prepared
from tests.rows import each_row

from bertwright.core.stage_context import StageContext
from bertwright.model.bert.config import BertModelConfig
from bertwright.optim.config import AdamWConfig, ScheduleConfig
from bertwright.optim.schedule import learning_rate
from bertwright.train.config import TrainConfig
from bertwright.train.run import run
from bertwright.train.settings.identity import Inputs, Settings
from bertwright.train.settings.phase_config import PhaseConfig

SMALL = {
    "vocab_size": 200, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8,
    "max_position_embeddings": 16, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
PHASE_1 = (7038, 0.2843, 6e-3)
PHASE_2 = (1563, 0.128, 4e-3)


def nvidia(update: int, total: int, warmup: float, peak: float) -> float:
    """The rate of update number `update`, counted from 1."""
    progress = update / total
    return peak * progress / warmup if progress < warmup else peak * (1 - progress) ** 0.5


def onnx_runtime(update: int, total: int, warmup: float, peak: float) -> float:
    warm = warmup * total
    return peak * update / warm if update < warm else peak * max(0.0, (total - update) / (total - warm))


Rule = Callable[[int, int, float, float], float]


def curve(rule: Rule, total: int, warmup: float, peak: float) -> list[float]:
    return [rule(update, total, warmup, peak) for update in range(1, total + 1)]


def ours(kind: str, total: int, warmup: float, peak: float) -> list[float]:
    schedule = TypeAdapter(ScheduleConfig).validate_python(kind)
    return [learning_rate(schedule, step, total, warmup * total, peak) for step in range(total)]


def largest_fall(rates: list[float]) -> float:
    """The largest drop between neighbours, as a share of the peak."""
    return max(a - b for a, b in pairwise(rates)) / max(rates)


@each_row(("phase", "fall"), [(PHASE_1, 0.154), (PHASE_2, 0.066)])
def test_the_original_falls_at_once_and_ends_at_zero(phase: tuple[int, float, float], fall: float) -> None:
    rates = curve(nvidia, *phase)
    assert largest_fall(rates) == pytest.approx(fall, abs=1e-3)
    assert rates[-1] == 0.0


@each_row("phase", [PHASE_1, PHASE_2])
def test_ours_follows_it_to_the_letter_when_asked(phase: tuple[int, float, float]) -> None:
    assert ours("poly_nvidia", *phase) == pytest.approx(curve(nvidia, *phase), rel=1e-12)


@each_row("phase", [PHASE_1, PHASE_2])
def test_ours_has_no_jump_and_no_idle_update(phase: tuple[int, float, float]) -> None:
    total, warmup, peak = phase
    rates = ours("poly", *phase)
    decay = rates[int(warmup * total) :]
    assert largest_fall(decay[: total // 2]) < 2 / total
    assert max(rates) == pytest.approx(peak, rel=1e-3)
    assert min(rates) > 0


def test_onnx_runtime_trained_with_a_straight_line() -> None:
    """Three quarters into phase 1 the advertised rule has half the peak left, the one that ran 35 %."""
    total, warmup, peak = PHASE_1
    update = round(0.75 * total)
    assert nvidia(update, *PHASE_1) / peak == pytest.approx(0.5, abs=1e-3)
    assert onnx_runtime(update, *PHASE_1) / peak == pytest.approx(0.349, abs=1e-3)
    theirs, linear = curve(onnx_runtime, *PHASE_1), ours("linear", *PHASE_1)
    # Ours reaches 0 one update after the last, so that the last one still counts.
    assert theirs[-1] == 0.0 < linear[-1]
    assert max(abs(a - b) for a, b in zip(theirs, linear, strict=True)) / peak < 1.5 / (total * (1 - warmup))


def test_a_schedule_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="poly_nvidia"):
        PhaseConfig.model_validate(
            {"length": 16, "batch": 4, "learning_rate": 1.0, "steps": 4, "schedule": "warmup_poly"}
        )


class Rows:
    """A log that keeps the rows of metrics."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def say(self, message: str) -> None: ...

    def progress(self, stage: str, done: float, total: float, unit: str) -> None: ...

    def record(self, row: dict[str, Any]) -> None:
        self.rows.append(row)


@each_row("schedule", ["linear", "poly", "poly_nvidia", "constant", "cosine", "wsd"])
def test_the_schedule_of_the_recipe_is_the_one_that_runs(prepared: Prepared, tmp_path: Path, schedule: str) -> None:
    phase = {"length": 16, "batch": 2, "learning_rate": 1e-3, "warmup": 0.25, "steps": 8, "schedule": schedule}
    (tmp_path / "bert.json").write_text(json.dumps(SMALL))
    config = TrainConfig.model_validate(
        {"phases": [phase], "log_every": 1, "heldout_sequences": 2, "checkpoint_every": 8}
    )
    log, model = Rows(), BertModelConfig(config=tmp_path / "bert.json")
    inputs = Inputs(prepared.examples, prepared.vocab)
    run(Settings(config, model, AdamWConfig()), inputs, StageContext(tmp_path / "train", log))
    found = [row["learning_rate"] for row in log.rows if "learning_rate" in row]
    assert found == pytest.approx(ours(schedule, 8, 0.25, 1e-3))
