"""Precision `auto`: what is chosen from given timings, kept on resume, the same on all ranks, and recorded."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on
from tests.rows import each_row
from tests.unit.train.test_precision import StopsAt

from bertwright.core.artifact import Artifact
from bertwright.core.errors import DataError, Interrupted, RecipeError
from bertwright.core.log import Log
from bertwright.train.checkpoints.checkpoint import newest_state
from bertwright.train.precision import precision as precisions
from bertwright.train.precision.units import of_gpu
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup import choose_precision
from bertwright.train.setup.choose_precision import choose, resolve_precision

Train = Callable[..., Artifact]
LONG = {"length": 16, "batch": 8, "micro_batch": 4, "learning_rate": 1e-2, "steps": 10**9}
"""Takes more than minutes, by the table."""


class Says:
    """A log that keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str) -> None: ...

    def record(self, row: dict[str, Any]) -> None: ...


@pytest.fixture
def with_units(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """`with_units(True)`: this processor has units for bfloat16."""

    def have(units: bool) -> None:
        for module in (precisions, choose_precision):
            monkeypatch.setattr(module, "has_bf16", lambda: units)

    return have


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, with_units: Callable[[bool], None]) -> Callable[[float, float], None]:
    """`timed(2.0, 1.0)`: every training is worth timing, and a pass takes 2 seconds in fp32 and one in bf16."""

    def take(full: float, low: float) -> None:
        with_units(True)
        monkeypatch.setattr(choose_precision, "SHORT", 0.0)
        monkeypatch.setattr(choose_precision, "_time", lambda *_: (full, low))

    return take


@pytest.fixture
def never_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("timed")

    monkeypatch.setattr(choose_precision, "_time", fail)


def sessions(done: Artifact) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], done.counts["sessions"])


@each_row(
    ("full", "low", "kind", "message"),
    [
        (1.2, 1.0, "bf16", "precision bf16: a pass takes 1 s, in fp32 1.2 s (train.precision=fp32 for float32)"),
        (1.19, 1.0, "fp32", "precision fp32: a pass takes 1.19 s, in bf16 1 s (train.precision=bf16 for bfloat16)"),
        (0.5, 1.0, "fp32", "precision fp32: a pass takes 500 ms, in bf16 1 s (train.precision=bf16 for bfloat16)"),
    ],
)
def test_bf16_needs_a_fifth_more_speed(full: float, low: float, kind: str, message: str) -> None:
    chosen = choose(full, low)
    assert (chosen.config.kind, chosen.message, chosen.speedup) == (kind, message, full / low)


@each_row(
    ("capability", "engine", "kind"),
    [
        ((9, 0), "auto", "bf16"),
        ((8, 0), "deepspeed", "bf16"),
        ((7, 5), "fsdp", "fp16"),
        ((7, 0), "deepspeed", "fp32"),
        ((6, 1), "auto", "fp32"),
        (None, "auto", "bf16"),
    ],
)
def test_the_units_of_a_gpu_decide(capability: tuple[int, int] | None, engine: str, kind: str) -> None:
    assert of_gpu(capability, engine).config.kind == kind


def test_the_oldest_gpu_of_all_ranks_decides(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    done, log = train("short"), Says()
    job = job_like(done)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(Ranks, "each", lambda self, value: [value, 705])
    found = resolve_precision(replace(job, out=done.path / "other"), torch.device("cuda"), Ranks(), log)
    assert found.config.precision.kind == "fp16" and "capability 7.5" in log.lines[0]


def job_like(done: Artifact) -> Any:
    """The job of the training in the folder of `done`, as far as a choice on a GPU reads it."""
    from bertwright.train.config import TrainConfig
    from bertwright.train.setup.job import TrainJob

    config = TrainConfig.model_validate({"phases": [{"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 1}]})
    nothing: Any = None
    return TrainJob(config, nothing, nothing, nothing, [], nothing, nothing, done.path, "", 0, nothing)


def test_a_short_training_is_not_timed(train: Train, with_units: Callable[[bool], None], never_timed: None) -> None:
    with_units(True)
    log = Says()
    (session,) = sessions(train(log=cast(Log, log)))
    assert (session["precision"], session["precision_reason"]) == ("fp32", "training is too short for bf16 to be timed")
    assert "bf16_speedup" not in session and not any("precision" in line for line in log.lines)


def test_without_units_nothing_is_timed(
    train: Train, timed: Callable[[float, float], None], with_units: Callable[[bool], None], never_timed: None
) -> None:
    timed(2.0, 1.0)
    with_units(False)
    (session,) = sessions(train())
    assert (session["precision"], session["precision_reason"]) == ("fp32", "no units for bfloat16")


def test_a_limit_of_instructions_leaves_no_units(train: Train, timed: Callable[[float, float], None]) -> None:
    timed(2.0, 1.0)
    config = job_like(train("short", precision="fp32")).config.model_copy(update={"device": "cpu", "cpu_isa": "avx512"})
    assert not choose_precision._common_units(config, torch.device("cpu"), Ranks()).bf16


def test_a_named_precision_has_no_choice(train: Train, timed: Callable[[float, float], None]) -> None:
    timed(2.0, 1.0)
    (session,) = sessions(train(precision="fp32"))
    assert session["precision"] == "fp32" and "precision_reason" not in session


def test_a_choice_is_recorded_but_not_in_the_identity(train: Train, timed: Callable[[float, float], None]) -> None:
    named = train("named", precision="fp32")
    timed(2.0, 1.0)
    log = Says()
    chosen = train("chosen", log=log)
    (session,) = sessions(chosen)
    assert (session["precision"], session["weights"], session["bf16_speedup"]) == ("bf16", "fp32", 2.0)
    assert session["precision_reason"] == "a pass takes 1 s, in fp32 2 s"
    assert any(line.startswith("train: precision bf16: a pass takes 1 s, in fp32 2 s") for line in log.lines)
    assert chosen.manifest["config"] == named.manifest["config"], "identity and fingerprint do not know the precision"
    rows = [(done.path / "metrics.jsonl").read_text() for done in (named, chosen)]
    assert rows[0] != rows[1], "the network computed in another precision"


@each_row("kind", ["bf16", "fp32"])
def test_a_resumed_run_keeps_the_choice_and_its_bits(
    kind: str, train: Train, timed: Callable[[float, float], None]
) -> None:
    timed(2.0, 1.0 if kind == "bf16" else 1.9)
    undisturbed = train(f"undisturbed-{kind}")
    with pytest.raises(Interrupted):
        train(f"disturbed-{kind}", log=StopsAt(3))
    timed(2.0, 1.9 if kind == "bf16" else 1.0)
    log = Says()
    continued = train(f"disturbed-{kind}", log=log)
    assert [each["precision"] for each in sessions(continued)] == [kind, kind]
    assert sessions(continued)[1]["precision_reason"] == "as at the last start"
    assert f"train: precision {kind}, as at the last start" in log.lines
    one, other = (load_file(done.file("model/model.safetensors")) for done in (undisturbed, continued))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_resumed_run_keeps_weights_in_bf16(train: Train, timed: Callable[[float, float], None]) -> None:
    timed(2.0, 1.0)
    with pytest.raises(Interrupted):
        train("run", precision={"kind": "bf16", "weights": "bf16", "allow_slow": True}, log=StopsAt(3))
    assert [each["weights"] for each in sessions(train("run"))] == ["bf16", "bf16"]


def test_a_processor_without_units_refuses_to_resume_bf16(
    train: Train, timed: Callable[[float, float], None], with_units: Callable[[bool], None]
) -> None:
    timed(2.0, 1.0)
    with pytest.raises(Interrupted):
        train("run", log=StopsAt(3))
    with_units(False)
    with pytest.raises(RecipeError, match=r"the last start of this run computed in bf16.*this CPU has no unit for it"):
        train("run")
    assert [each["precision"] for each in sessions(train("run", precision="fp32"))] == ["bf16", "fp32"]


def test_a_start_on_another_kind_of_device_is_not_kept() -> None:
    last = {"device": "cuda:0 NVIDIA H100", "precision": "bf16", "weights": "fp32"}
    assert choose_precision._kept(last, gpu=False) is None
    kept = choose_precision._kept(last, gpu=True)
    assert kept is not None and kept.config.kind == "bf16"


def test_a_failed_timing_trains_in_float32(
    train: Train, timed: Callable[[float, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed(2.0, 1.0)

    def fail(*_: Any) -> None:
        raise DataError("the timing in bf16 ended early: ended by SIGKILL")

    monkeypatch.setattr(choose_precision, "_time", fail)
    log = Says()
    (session,) = sessions(train(log=log))
    assert session["precision"] == "fp32" and "bf16_speedup" not in session
    assert any("bf16 could not be timed (the timing in bf16 ended early" in line for line in log.lines)


def test_the_passes_of_a_training_are_timed(
    train: Train, with_units: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Really, in two processes; either precision may be the faster one."""
    if not precisions.has_bf16():
        pytest.skip("this processor has no units for bfloat16")
    for name, value in (("SHORT", 0.0), ("_SECONDS", 0.1)):
        monkeypatch.setattr(choose_precision, name, value)
    log = Says()
    (session,) = sessions(train(log=log))
    (said,) = [line for line in log.lines if "train: precision" in line]
    assert session["precision"] == ("bf16" if session["bf16_speedup"] >= 1.2 else "fp32")
    assert session["bf16_speedup"] > 0 and session["precision_reason"] in said and "could not" not in said


def test_long_micro_batches_are_timed_in_part(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[tuple[int, int]]()

    def note(job: Any, state: Any, world: int) -> tuple[float, float]:
        batch = choose_precision._to_time(job, job.phases[0], 0, world)
        monkeypatch.setattr(choose_precision, "_PASS", 1e-12)
        part = choose_precision._to_time(job, job.phases[0], 0, world)
        seen.append((batch.counts.sequences, part.counts.sequences))
        np.testing.assert_array_equal(part.token_ids, batch.token_ids[: part.counts.tokens])
        return 1.0, 1.0

    monkeypatch.setattr(choose_precision, "SHORT", 0.0)
    monkeypatch.setattr(choose_precision, "has_bf16", lambda: True)
    monkeypatch.setattr(choose_precision, "_time", note)
    train()
    assert seen == [(4, 1)]


def test_all_ranks_use_the_choice_of_the_first(prepared: Prepared, tmp_path: Path) -> None:
    """Each start stops after two rows, and the second resumes the first."""
    if not precisions.has_bf16():
        pytest.skip("this processor has no units for bfloat16")
    training = Training("run", {"phases": [LONG], "compare_ranks_every": 1}, stop_after=2)
    train_on(2, [training, training], prepared.examples.path, prepared.vocab.path, tmp_path / "runs")
    state = newest_state(tmp_path / "runs" / "run" / "checkpoints")
    assert state is not None
    first, second = state.sessions
    assert first["ranks"] == 2 and first["bf16_speedup"] > 0
    assert second["precision"] == first["precision"] and second["precision_reason"] == "as at the last start"
