"""Contract of every multi-rank engine: reductions, shares, phase changes, and every feature a training may request."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import TypeAdapter
from safetensors.torch import load_file
from tests.conftest import Prepared
from tests.pipeline.engines import STAGES, TORCH, section
from tests.pipeline.ranks_of import NETWORK, PHASES, Training, train_on

from bertwright.core.artifact import Artifact
from bertwright.model.bert.network import BertConfig
from bertwright.optim.config import AdamWConfig, MuonConfig
from bertwright.train.engine.config import EngineConfig
from bertwright.train.engine.partition import deal_out
from bertwright.train.memory.held_tensors import Sharing, moment_bytes

FIRST, SECOND = PHASES
SHORT = [{**FIRST, "steps": 4}, {**SECOND, "steps": 2}]
EXACT = ("phase", "step", "total_steps", "optimizer_step", "skipped", "tokens_seen", "learning_rate", "batch", "saved")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def assert_same(folder: Path, expected: Path, rel: float, most: float = math.inf) -> None:
    """Assert the same rows, with measured values within a tolerance, and gradient norms of at most `most`."""
    ours, theirs = rows(folder), rows(expected)
    assert len(ours) == len(theirs) > 0
    for row, other in zip(ours, theirs, strict=True):
        assert row.keys() == other.keys(), folder.name
        for name in row.keys() & set(EXACT):
            assert row[name] == other[name], (folder.name, name, row["step"])
        for name in (name for name in row if name.endswith("_loss") or name == "grad_norm"):
            value = min(other[name], most) if name == "grad_norm" else other[name]
            assert row[name] == pytest.approx(value, rel=rel), (folder.name, name, row["step"])


@dataclass(frozen=True)
class Variant:
    """A feature requested on top of the plain recipe."""

    name: str
    train: Mapping[str, Any]
    optim: str = "adamw"
    rel: float = 2e-6
    engines: Sequence[str] = (*TORCH, *STAGES)
    ranks: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the optimizer with several ranks."""
    alone: Mapping[str, Any] = field(default_factory=dict)
    """Settings with which one process does the same."""
    most: float = math.inf
    """Largest gradient norm that the ranks report."""


# The fast ones: a rank with nothing to train on, growing batches, and the phase change.
VARIANTS = (
    # Micro-batches of one: of 5 sequences rank 1 has 2 in three micro-batches, so its last one is empty.
    Variant("empty", {"phases": [{**SECOND, "micro_batch": 1, "steps": 3}], "attention": "padded"}, "lamb"),
    Variant("growing", {"phases": [{**FIRST, "batch_warmup": [[0, 2], [1, 3], [2, 7]], "steps": 4}]}),
    Variant("kept-count", {"phases": [*SHORT[:1], {**SECOND, "restart_bias_correction": False, "steps": 4}]}, "lamb"),
    Variant("anew", {"phases": [*SHORT[:1], {**SECOND, "restart_bias_correction": True, "steps": 4}]}, "lamb"),
    # The part of the rank that has the only sequence is clipped to half of the limit, as in a process with that limit;
    # clipped after the sum, its norm would be larger.
    Variant(
        "clipped-parts",
        {"phases": [{**SECOND, "batch": 1, "micro_batch": 1, "steps": 3}]},
        "lamb",
        engines=("ddp", "zero"),
        ranks={"clip_before_reduction": True, "max_grad_norm": 0.05},
        alone={"max_grad_norm": 0.025},
        most=0.025,
    ),
)
FURTHER = (
    # A single held-out batch: rank 1 has nothing to score.
    Variant("one-batch", {"phases": SHORT, "heldout_sequences": 20}),
    Variant("recomputed", {"phases": SHORT, "checkpoint_activations": True}, "muon"),
    Variant("scaled", {"phases": SHORT, "precision": {"kind": "fp16", "allow_slow": True}}, rel=0.02, engines=TORCH),
    Variant("empty", {"phases": [{**SECOND, "micro_batch": 1, "steps": 4}]}, "lamb"),
    Variant("packed", {"phases": [{**SECOND, "packing": True, "micro_batch": 1, "steps": 4}]}),
    Variant("autocast", {"phases": SHORT, "precision": {"kind": "bf16", "allow_slow": True}}, rel=0.02),
    Variant(
        "low-copy",
        {"phases": SHORT, "precision": {"kind": "bf16", "weights": "bf16", "allow_slow": True}},
        rel=0.02,
        engines=("ddp", "zero"),
    ),
    Variant(
        "average",
        {"phases": SHORT, "averaging": {"kind": "ema", "decay": 0.5}},
        engines=("ddp", "zero", *STAGES[:2]),
    ),
    Variant("profiled", {"phases": SHORT, "profile": 2, "compare_ranks_every": 1}),
)


BOTH = pytest.mark.parametrize(
    ("engines", "rel"),
    [(TORCH, 2e-6), pytest.param(STAGES, 1e-5, marks=(pytest.mark.slow, pytest.mark.deepspeed))],
    ids=["torch", "deepspeed"],
)
"""Engines that are run by the same processes, and their tolerance where a variant has no larger one."""


@BOTH
@pytest.mark.parametrize("variants", [VARIANTS, pytest.param(FURTHER, marks=pytest.mark.slow)], ids=["", "further"])
def test_every_engine_does_what_one_process_does(
    variants: Sequence[Variant], engines: Sequence[str], rel: float, prepared: Prepared, tmp_path: Path
) -> None:
    """With AdamW in place of a variant's optimizer for DeepSpeed, which has no other."""

    def trainings(engine: str, asked: Sequence[Variant]) -> list[Training]:
        return [
            Training(
                f"{engine}-{v.name}",
                {"engine": section(engine), **v.train},
                {"kind": "adamw" if engines is STAGES else v.optim, **(v.alone if engine == "single" else v.ranks)},
            )
            for v in asked
        ]

    of_engine = {engine: [v for v in variants if engine in v.engines] for engine in engines}
    places = prepared.examples.path, prepared.vocab.path
    some = [v for v in variants if {*v.engines} & {*engines}]
    train_on(1, trainings("single", some), *places, tmp_path / "alone")
    train_on(2, [each for pair in of_engine.items() for each in trainings(*pair)], *places, tmp_path / "ranks")
    for engine, asked in of_engine.items():
        for v in asked:
            alone = tmp_path / "alone" / f"single-{v.name}"
            assert_same(tmp_path / "ranks" / f"{engine}-{v.name}", alone, max(v.rel, rel), v.most)
    if variants is VARIANTS:
        anew, kept = (rows(tmp_path / "alone" / f"single-{name}")[-1]["mlm_loss"] for name in ("anew", "kept-count"))
        assert anew != pytest.approx(kept, rel=5 * rel), "or the hand-over would not have been tested"
        for engine, (name, count) in product(engines, (("anew", 4), ("kept-count", 8))):
            last = max((tmp_path / "ranks" / f"{engine}-{name}" / "checkpoints").glob("step-*"))
            assert int(load_file(last / "optimizer.safetensors")["step"]) == count, (engine, name)


@pytest.mark.slow
@BOTH
def test_every_engine_learns_from_a_teacher(
    engines: Sequence[str], rel: float, prepared: Prepared, tmp_path: Path
) -> None:
    places = prepared.examples.path, prepared.vocab.path
    train_on(1, [Training("teacher", {"phases": SHORT})], *places, tmp_path / "alone")
    teacher = tmp_path / "alone" / "teacher"
    objective = {"kind": "distillation", "teacher": str(teacher), "hidden_weight": 1.0}
    asked = {"phases": SHORT, "objective": objective, "seed": 3}
    train_on(1, [Training("single", {"engine": "single", **asked})], *places, tmp_path / "alone")
    train_on(2, [Training(e, {"engine": section(e), **asked}) for e in engines], *places, tmp_path / "ranks")
    for engine in engines:
        assert_same(tmp_path / "ranks" / engine, tmp_path / "alone" / "single", rel)


@dataclass(frozen=True)
class Watched:
    """A training that records its all-reduces and backward passes, and the bytes of its optimizer."""

    training: Training

    @property
    def name(self) -> str:
        return self.training.name

    def run(self, examples: Path, vocab: Path, folder: Path) -> Artifact | None:
        events, engines = list[list[Any]](), list[Any]()
        with _watching(events, engines):
            done = self.training.run(examples, vocab, folder)
        (engine,) = engines
        single = getattr(engine, "single", None)
        state = (single.optimizer if single else engine._optimizer).state
        held = sum(t.nbytes for moments in state.values() for name, t in moments.items() if name != "step")
        report = {"events": events, "bytes": held}
        (folder / f"{self.name}.rank{os.environ['RANK']}.json").write_text(json.dumps(report))
        return done


@contextmanager
def _watching(events: list[list[Any]], engines: list[Any]) -> Iterator[None]:
    from torch import distributed as dist

    from bertwright.train.setup import build

    backward, build_engine = torch.Tensor.backward, build.build_engine
    sums = {name: getattr(dist, name) for name in ("all_reduce", "reduce_scatter_tensor", "reduce_scatter_single")}

    def noting(name: str) -> Any:
        def summed(*arguments: Any, **options: Any) -> Any:
            tensor = options.get("input", arguments[-1] if arguments else None)
            events.append(["sum", str(tensor.dtype).removeprefix("torch."), tensor.numel()])
            return sums[name](*arguments, **options)

        return summed

    def timed(loss: torch.Tensor, *arguments: Any, **options: Any) -> None:
        events.append(["backward"])
        backward(loss, *arguments, **options)
        events.append(["done"])

    def built(*arguments: Any) -> Any:
        engines.append(build_engine(*arguments))
        return engines[-1]

    torch.Tensor.backward, build.build_engine = timed, built  # type: ignore[assignment, method-assign]
    for name in sums:
        setattr(dist, name, noting(name))
    try:
        yield
    finally:
        torch.Tensor.backward, build.build_engine = backward, build_engine  # type: ignore[method-assign]
        for name, own in sums.items():
            setattr(dist, name, own)


REDUCTIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@pytest.fixture(scope="module")
def watched(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trainings of every engine on two ranks, reducing in float32 and bfloat16, 8 micro-batches per step and rank."""
    return watch(("fp32", "bf16"), prepared, tmp_path_factory.mktemp("watched") / "ranks")


@pytest.fixture(scope="module")
def watched_fp16(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like `watched`, in float32 and float16."""
    return watch(("fp32", "fp16"), prepared, tmp_path_factory.mktemp("watched") / "fp16")


def watch(reductions: Sequence[str], prepared: Prepared, folder: Path) -> Path:
    """The folder of the recorded trainings."""
    phases = [{**FIRST, "batch": 16, "micro_batch": 1, "steps": 3}]
    small = {"bucket_mb": 0.02}  # 5,000 of 26,000 parameters
    every = [
        Watched(
            Training(
                f"{engine}-{reduction}",
                {"engine": {"kind": engine, "reduction": reduction, **({} if engine == "fsdp" else small)}}
                | {"phases": phases, "heldout_sequences": 20},
            )
        )
        for engine, reduction in product(TORCH, reductions)
    ]
    short = {"phases": [{**phases[0], "steps": 1}], "heldout_sequences": 20}
    every += [Watched(Training(f"{engine}-muon", {"engine": engine, **short}, {"kind": "muon"})) for engine in TORCH]
    train_on(2, every, prepared.examples.path, prepared.vocab.path, folder)  # type: ignore[arg-type]
    return folder


def report(folder: Path, name: str, rank: int) -> dict[str, Any]:
    return dict(json.loads((folder / f"{name}.rank{rank}.json").read_text()))


def gradients_summed(events: Sequence[Sequence[Any]]) -> list[str]:
    """The dtypes in which gradients were summed; other sums are of counts and losses and have few numbers."""
    return [event[1] for event in events if event[0] == "sum" and event[2] > 100]


@pytest.mark.parametrize(("engine", "reduction"), list(product(TORCH, ("fp32", "bf16"))))
def test_gradients_travel_in_the_numbers_that_are_asked_for(engine: str, reduction: str, watched: Path) -> None:
    """The float16 case is slow, and so are tests that build on it."""
    assert_sums_in(reduction, engine, watched)


@pytest.mark.parametrize("engine", ["zero", "fsdp"])
def test_micro_batches_are_added_up_before_they_are_rounded(engine: str, watched: Path) -> None:
    assert_rounded_once("bf16", engine, watched)


@pytest.mark.slow
@pytest.mark.parametrize("engine", TORCH)
def test_sums_in_float16_are_as_those_in_bfloat16(engine: str, watched_fp16: Path) -> None:
    assert_sums_in("fp16", engine, watched_fp16)
    assert_rounded_once("fp16", engine, watched_fp16)


def assert_sums_in(reduction: str, engine: str, folder: Path) -> None:
    types = set(gradients_summed(report(folder, f"{engine}-{reduction}", 0)["events"]))
    assert types - {"int64", "float64"} == {REDUCTIONS[reduction]}
    ours, theirs = (rows(folder / f"{engine}-{kind}") for kind in (reduction, "fp32"))
    # 8 of a gradient's 24 bits remain, and errors of many numbers cancel in a loss.
    for row, other in zip(ours, theirs, strict=True):
        assert row["mlm_loss"] == pytest.approx(other["mlm_loss"], rel=2e-3)
        assert row["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-2)


def assert_rounded_once(reduction: str, engine: str, folder: Path) -> None:
    """Each rank's sum is rounded once, so all engines send the same numbers: eight roundings would be eight errors."""
    ours, ddps = (rows(folder / f"{kind}-{reduction}")[0]["grad_norm"] for kind in (engine, "ddp"))
    assert ours == pytest.approx(ddps, rel=2e-6)


@pytest.mark.parametrize("engine", TORCH)
def test_sums_begin_before_the_last_backward_pass_of_a_step_ends_and_not_before_it_begins(
    engine: str, watched: Path
) -> None:
    events = report(watched, f"{engine}-fp32", 0)["events"]
    during, inside = list[int](), False
    for event in events:
        if event[0] != "sum":
            inside = event[0] == "backward"
            during += [0] * inside
        elif inside and event[2] > 100:
            during[-1] += 1
    steps = [during[first : first + 8] for first in range(0, len(during), 8)]
    assert len(steps) == 3
    for sums in steps:
        assert not any(sums[:-1]) and sums[-1] >= 2, sums


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("engine", TORCH)
def test_a_rank_keeps_as_much_of_the_optimizers_state_as_forecast(engine: str, rank: int, watched: Path) -> None:
    shapes = {name: tensor.shape for name, tensor in weights(watched / "ddp-fp32").items()}
    network = BertConfig(**{**NETWORK, "vocab_size": shapes["mlm.bias"][0]})
    assert network.tensors == {name: tuple(shape) for name, shape in shapes.items()}
    for optim in (AdamWConfig(), MuonConfig()):
        name = f"{engine}-{'fp32' if optim.kind == 'adamw' else optim.kind}"
        sharing = Sharing(TypeAdapter(EngineConfig).validate_python(engine), optim, 2)
        assert report(watched, name, rank)["bytes"] == moment_bytes(network, sharing, rank)
    if engine == "zero":
        sizes = {name: shape.numel() for name, shape in shapes.items()}
        assert report(watched, "zero-fp32", rank)["bytes"] == 8 * sum(sizes[name] for name in deal_out(sizes, 2)[rank])
