"""Profiled steps are steps like all others, and where their time goes is written down."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.unit.train.test_run import Notes, metric_lines, same, weights
from torch.autograd import DeviceType

from bertwright.core.artifact import Artifact
from bertwright.train.monitor.profiler import BACKWARD, FORWARD, STEP, UPDATE, StepProfiler, table

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]


def test_profiling_writes_a_trace_and_changes_nothing(train: Train) -> None:
    said = Notes()
    profiled, plain = train("profiled", profile=3, log=said), train("plain")
    assert same(weights(profiled), weights(plain)) and metric_lines(profiled.path) == metric_lines(plain.path)
    assert profiled.fingerprint == plain.fingerprint
    folder = profiled.path / "profile"
    trace = json.loads((folder / "trace.json").read_text())
    names = [event.get("name") for event in trace["traceEvents"] if event.get("ph") == "X"]
    assert names.count(STEP) == 3 and names.count(UPDATE) == 3
    assert names.count(FORWARD) == names.count(BACKWARD) >= 6, "two micro-batches a step"
    text = (folder / "table.txt").read_text()
    assert text.startswith("3 steps, ")
    for what in ("waiting for data", "forward", "backward", "update", "matrix products", "clipping and optimizer"):
        assert what in text
    assert any(text.rstrip() in sentence and "trace.json" in sentence for sentence in said.lines)
    assert "profile/table.txt" not in profiled.manifest["files"] and not (plain.path / "profile").exists()


def test_a_training_that_ends_before_them_writes_what_there_was(train: Train) -> None:
    done = train(profile=1000, phases=[{"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 5}])
    assert (done.path / "profile" / "table.txt").read_text().startswith("3 steps, ")


def test_a_start_too_short_to_profile_is_logged(train: Train) -> None:
    said = Notes()
    done = train(profile=3, phases=[{"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 2}], log=said)
    assert not (done.path / "profile").exists()
    says = "warning: no step was profiled: this start took fewer than 3, and the first 2 are only a warm-up."
    assert says in said.lines


def test_a_first_profiled_step_that_fails_says_why(tmp_path: Path) -> None:
    said = Notes()
    with pytest.raises(MemoryError, match="the true error"), closing(profiler(tmp_path, said)) as begun:
        for number in range(3):
            with begun.step(TRAINED, waited=0.0):
                if number == 2:
                    raise MemoryError("the true error")
    assert len(said.lines) == 1 and not list(tmp_path.iterdir())


def test_a_trace_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    said = Notes()
    (tmp_path / "profile").write_text("a file, where a folder is to be")
    with closing(profiler(tmp_path, said)) as begun:
        for _ in range(3):
            with begun.step(TRAINED, waited=0.0):
                pass
    (line,) = said.lines
    assert line.startswith("warning: the profile could not be written (") and line.endswith(" Training goes on.")


def test_a_finished_training_is_neither_observed_nor_profiled(train: Train) -> None:
    said = Notes()
    first, second = train(), train(profile=3, log=said)
    assert first.fingerprint == second.fingerprint
    assert said.lines == ["train: already finished, so no rows are sent to observers, and no step is profiled."]


@dataclass(frozen=True)
class Parts:
    """What a step is taken with, as far as a profiler is concerned."""

    objective: Any = None
    engine: Any = None


TRAINED: Any = Parts()


def profiler(folder: Path, log: Any) -> StepProfiler:
    return StepProfiler(1, folder / "profile", torch.device("cpu"), log)


def event(name: str, start: float, end: float, own: float, parent: Any = None, kernels: float = 0.0) -> Any:
    """An event of the host: `own` is its self time, `kernels` that of the kernels that it started (microseconds)."""
    span = SimpleNamespace(start=start, end=end)
    return SimpleNamespace(
        name=name, time_range=span, self_cpu_time_total=own, self_device_time_total=kernels, cpu_parent=parent,
        device_type=DeviceType.CPU,
    )  # fmt: skip


def on_gpu(name: str, start: float, end: float) -> Any:
    """An event of a GPU, as torch gives it: a kernel, or the span of the kernels of a labelled range."""
    span = SimpleNamespace(start=start, end=end)
    return SimpleNamespace(
        name=name, time_range=span, self_cpu_time_total=0, self_device_time_total=end - start, cpu_parent=None,
        device_type=DeviceType.CUDA,
    )  # fmt: skip


def test_the_table_by_hand() -> None:
    step = event(STEP, 0, 10_000, 500)
    forward, backward = event(FORWARD, 0, 4000, 500, step), event(BACKWARD, 4000, 8000, 0, step)
    update = event(UPDATE, 8000, 9500, 0, step)
    attention = event("aten::scaled_dot_product_attention", 0, 1000, 0, forward)
    events = [
        step, forward, backward, update, attention,
        event("aten::addmm", 1000, 3000, 2000, forward),
        event("aten::copy_", 0, 1000, 1000, attention),
        event("aten::log_softmax", 3000, 3500, 500, forward),
        event("aten::mm", 4000, 8000, 4000, backward),
        event("aten::mul_", 8000, 9500, 1500, update),
        event("aten::mm", 20_000, 29_000, 9000),  # scored between two steps
    ]  # fmt: skip
    lines = table(events, steps=1, waited=0.002, device="cpu").splitlines()
    assert lines[0] == "1 steps, 12.0 ms each"
    told = {line[:54].rstrip(): line[54:].split() for line in lines[1:]}
    assert told["waiting for data"] == ["2.00", "16.7%"] and told["forward"] == ["4.00", "33.3%"]
    assert told["the rest (losses, reading the batch, sums over ranks)"] == ["0.50", "4.2%"]
    assert told["matrix products"] == ["6.00", "60.0%"] and told["attention"] == ["1.00", "10.0%"]
    assert told["clipping and optimizer"] == ["1.50", "15.0%"] and told["loss"] == ["0.50", "5.0%"]
    assert told["between operators (Python)"] == ["1.00", "10.0%"]


def test_the_table_of_a_gpu_by_hand() -> None:
    """Each kernel is listed at its operator and by itself, each labelled range for the host and for the GPU."""
    step = event(STEP, 0, 10_000, 200)
    forward, update = event(FORWARD, 0, 1000, 300, step), event(UPDATE, 2000, 2500, 100, step)
    events = [
        step, forward, event(BACKWARD, 1000, 2000, 900, step), update,
        event("aten::addmm", 100, 400, 300, forward, kernels=3000),
        event("aten::mm", 1100, 1200, 100, kernels=4000),  # the backward pass has a thread of its own
        event("aten::mul_", 2000, 2400, 400, update, kernels=1000),
        event("cudaDeviceSynchronize", 2500, 10_000, 7500, step),
        on_gpu(STEP, 500, 9900), on_gpu(FORWARD, 500, 3600), on_gpu(BACKWARD, 3700, 8000), on_gpu(UPDATE, 8100, 9900),
        on_gpu("sm90_gemm", 500, 3500), on_gpu("sm90_gemm", 3700, 7700), on_gpu("vectorized_elementwise", 8100, 9100),
    ]  # fmt: skip
    lines = table(events, steps=1, waited=0.0, device="cuda").splitlines()
    assert lines[0] == "1 steps, 10.0 ms each"
    told = {line[:54].rstrip(): line[54:].split() for line in lines[1:]}
    assert [told[part][0] for part in ("forward", "backward", "update")] == ["1.00", "1.00", "0.50"]
    assert told["the rest (waiting for the GPU, sums over ranks)"] == ["7.50", "75.0%"]
    assert told["matrix products"] == ["7.00", "87.5%"] and told["clipping and optimizer"] == ["1.00", "12.5%"]
    assert not {"between operators (Python)", "other"} & told.keys(), "they started no kernels"


@pytest.mark.parametrize("steps", [-1, 1001])
def test_how_many_steps_may_be_profiled(train: Train, steps: int) -> None:
    with pytest.raises(Exception, match="profile"):
        train(profile=steps)
