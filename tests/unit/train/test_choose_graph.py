"""What `train.graph = auto` chooses, and that a compiled network gets full rows of the same batches."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tests.rows import each_row

from bertwright.core.artifact import Artifact
from bertwright.train.config import TrainConfig
from bertwright.train.graph.config import CompiledConfig
from bertwright.train.graph.packages import graph_of
from bertwright.train.setup import choose_graph, training_environment
from bertwright.train.setup.job import TrainJob
from bertwright.train.state import State

Train = Callable[..., Artifact]
PHASE = {"length": 32, "batch": 12, "learning_rate": 1e-3, "steps": 3}


@each_row(
    ("settings", "gpu", "kind"),
    [
        ({}, True, "compiled"),
        ({}, False, "eager"),
        ({"graph": "eager"}, True, "eager"),
        ({"attention": "sequences"}, True, "eager"),
        ({"engine": "fsdp"}, True, "eager"),
        ({"engine": "zero"}, True, "compiled"),
        ({"objective": {"kind": "distillation", "teacher": "teacher"}}, True, "eager"),
    ],
)
def test_a_long_training_is_compiled_on_a_gpu_if_it_can_be(settings: dict[str, Any], gpu: bool, kind: str) -> None:
    config = TrainConfig.model_validate({"phases": [PHASE], **settings})
    assert graph_of(config, gpu).kind == kind


def job(flops: float = 1e18, hours: float = 0.0, several: int = 1, **settings: Any) -> Any:
    examples = SimpleNamespace(most_sequences=several)
    phase = SimpleNamespace(budget=3600 * hours, loader=SimpleNamespace(examples=examples))
    config = TrainConfig.model_validate({"phases": [PHASE], **settings})
    return SimpleNamespace(config=config, phases=[phase], out=Path("none"), flops_of=lambda phase: flops)


@each_row(
    ("given", "missing", "last", "kind", "reason"),
    [
        (job(), "", {}, "compiled", "in full rows"),
        (job(flops=1e15), "", {}, "eager", "too short"),
        (job(flops=1e15, hours=1.0), "", {}, "compiled", "in full rows"),
        (job(several=4), "", {}, "eager", "several sequences"),
        (job(attention="sequences"), "", {}, "eager", "different calls"),
        (job(), "a C compiler", {}, "eager", "needs a C compiler"),
        (job(flops=1e15), "", {"graph": "compiled", "device": "cuda:0"}, "compiled", "last start"),
        (job(), "", {"graph": "eager", "device": "cuda:0"}, "eager", "last start"),
        (job(), "", {"graph": "eager", "device": "cpu"}, "compiled", "in full rows"),
    ],
)
def test_the_choice_on_a_gpu_has_a_reason(
    given: TrainJob, missing: str, last: dict[str, str], kind: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_graph, "newest_state", lambda folder: State(sessions=(last,)) if last else None)
    chosen, why = choose_graph._choose(given, missing)
    assert chosen == kind and reason in why


def test_a_cpu_runs_networks_as_they_are_written(train: Train) -> None:
    (session,) = train(phases=[PHASE]).counts["sessions"]
    assert session["graph"] == "eager" and "graph_reason" not in session


@pytest.mark.heavy
@pytest.mark.parametrize("phase", [{}, {"micro_batch": 4}, {"micro_tokens": 70}, {"micro_batch": "auto"}], ids=str)
def test_auto_fills_rows_with_the_same_batches(
    train: Train, phase: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU; what is compiled runs as it is written, because a compiler of machine code takes a minute."""
    settings: dict[str, Any] = {"phases": [PHASE | phase], "dropout": 0.0, "attention": "padded", "log_every": 1}
    eager = train("eager", **settings)
    shapes, compiled = set[tuple[Any, ...]](), torch.compile
    monkeypatch.setattr(torch, "compile", lambda each, **more: compiled(each, backend="aot_eager", **more))

    def chosen(given: TrainJob, *more: Any) -> TrainJob:
        config = given.config.model_copy(update={"graph": CompiledConfig()})
        return replace(given, config=config, fills_rows=True)

    real = TrainJob.in_full_rows

    def in_full_rows(given: TrainJob, own: Any, world: int) -> Any:
        full = real(given, own, world)
        for step in range(3):
            for batch in full.loader.step(step):
                shapes.add((len(batch.cu_rows) - 1 <= full.loader.room().rows, batch.max_row))
        assert full.loader.settings.micro_batching.row_tokens == PHASE["length"]
        return full

    monkeypatch.setattr(training_environment, "_with_graph", chosen)
    monkeypatch.setattr(TrainJob, "in_full_rows", in_full_rows)
    filled = train("filled", **settings)
    assert all(fits and longest <= PHASE["length"] for fits, longest in shapes)
    rows = [
        [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()] for done in (eager, filled)
    ]
    for one, other in zip(*rows, strict=True):
        assert one["batch"] == other["batch"]
        for key in ("mlm_loss", "grad_norm"):
            assert other[key] == pytest.approx(one[key], rel=1e-4)
