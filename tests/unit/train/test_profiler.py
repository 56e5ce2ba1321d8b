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
from tests.rows import each_row
from tests.unit.train.test_run import Notes, metric_lines, same, weights
from torch.autograd import DeviceType

from bertwright.core.artifact import Artifact
from bertwright.train.monitor.profiler import (
    BACKWARD,
    FORWARD,
    IDLE,
    STEP,
    UPDATE,
    StepProfiler,
    table,
    times_by_purpose,
)

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


def event(name: str, start: float, end: float, own: float, parent: Any = None) -> Any:
    """An event of the host: `own` is its self time (microseconds)."""
    span = SimpleNamespace(start=start, end=end)
    return SimpleNamespace(
        name=name, time_range=span, self_cpu_time_total=own, cpu_parent=parent, device_type=DeviceType.CPU
    )


def on_gpu(name: str, start: float, end: float) -> Any:
    """An event of a GPU, as torch gives it: a kernel, or the span of the kernels of a labelled range."""
    span = SimpleNamespace(start=start, end=end)
    return SimpleNamespace(
        name=name, time_range=span, device_type=DeviceType.CUDA, is_user_annotation=not name.startswith("sm90")
    )


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
    """Parts are those of the host; kernels count by their names, whatever started them."""
    step = event(STEP, 0, 10_000, 200)
    forward, update = event(FORWARD, 0, 1000, 300, step), event(UPDATE, 2000, 2500, 100, step)
    events = [
        step, forward, event(BACKWARD, 1000, 2000, 900, step), update,
        event("aten::addmm", 100, 400, 300, forward), event("cudaGraphLaunch", 1100, 1200, 100),
        event("cudaDeviceSynchronize", 2500, 10_000, 7500, step),
        on_gpu(STEP, 500, 9900), on_gpu(FORWARD, 500, 3600), on_gpu(BACKWARD, 3700, 8000), on_gpu(UPDATE, 8100, 9900),
        on_gpu("sm90_gemm", 500, 3500), on_gpu("sm90_gemm", 3700, 7700), on_gpu("Torch-Compiled Region", 500, 7700),
        on_gpu("sm90_elementwise", 7700, 8000), on_gpu("sm90_elementwise", 8100, 9100),
        on_gpu("sm90_flash_fwd", 3600, 3900),  # beside a product, on a stream of its own
    ]  # fmt: skip
    lines = table(events, steps=1, waited=0.0, device="cuda").splitlines()
    assert lines[0] == "1 steps, 10.0 ms each"
    told = {line[:54].rstrip(): line[54:].split() for line in lines[1:]}
    assert [told[part][0] for part in ("forward", "backward", "update")] == ["1.00", "1.00", "0.50"]
    assert told["the rest (waiting for the GPU, sums over ranks)"] == ["7.50", "75.0%"]
    assert told["matrix products"] == ["7.00", "79.5%"] and told["clipping and optimizer"] == ["1.00", "11.4%"]
    assert told["attention"][0] == "0.30" and told["other"][0] == "0.30" and told[IDLE][0] == "0.20"


@each_row(
    ("name", "purpose"),
    [
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNT", "matrix products"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x256>", "matrix products"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>", "matrix products"),
        ("triton_tem_fused_addmm_t_4", "matrix products"),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, cutlass::bfloat16_t>>", "attention"),
        ("void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64>>", "attention"),
        ("triton_per_fused__to_copy_add_addmm_native_dropout_native_layer_norm_7", "layer norms"),
        ("void vectorized_layer_norm_kernel<float, float>", "layer norms"),
        ("triton_poi_fused_addmm_gelu_9", "activation"),
        ("triton_red_fused__log_softmax__log_softmax_backward_data_2", "loss"),
        ("void multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>", "clipping and optimizer"),
        ("triton_poi_fused_native_dropout_1", "dropout"),
        ("void indexSelectLargeIndex<float>", "embeddings and selecting tokens"),
        ("_attention_backward_keys", "attention"),
        ("_layer_norm_backward", "layer norms"),
        ("_bias_gelu", "activation"),
        ("Memcpy DtoD (Device -> Device)", "copies"),
        ("void unrolled_elementwise_kernel<direct_copy_kernel_cuda>", "copies"),
        ("void reduce_kernel<512, 1, ReduceOp<float, func_wrapper_t<sum_functor>>>", "other"),
    ],
)
def test_kernels_count_by_purpose(name: str, purpose: str) -> None:
    kernel = SimpleNamespace(**vars(on_gpu(name, 0, 1000)) | {"is_user_annotation": False})
    assert times_by_purpose([kernel], "cuda") == {purpose: 1.0, IDLE: 0.0}


@pytest.mark.parametrize("steps", [-1, 1001])
def test_how_many_steps_may_be_profiled(train: Train, steps: int) -> None:
    with pytest.raises(Exception, match="profile"):
        train(profile=steps)
