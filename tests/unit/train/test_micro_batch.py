"""`micro_batch = "auto"`: what fits, what happens when it does not, what a run that goes on takes, several ranks."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tests.conftest import Prepared
from tests.pipeline.command import context
from tests.pipeline.ranks_of import free_ports
from tests.processes import PATIENCE
from tests.unit.train.conftest import MODEL, PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.distributed import ranks_here
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.core.numbers import size_of
from bertwright.core.stage_context import StageContext
from bertwright.model.batch import PackedBatch
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.bert.network import BertConfig
from bertwright.optim.config import AdamWConfig
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.config import TrainConfig
from bertwright.train.engine.config import DdpConfig
from bertwright.train.memory.held_tensors import Sharing
from bertwright.train.memory.rank_memory import FILLED, Computing, computing_of, fitting_sequences, training_bytes
from bertwright.train.precision.config import Bf16Config
from bertwright.train.run import run
from bertwright.train.settings.identity import Inputs, Settings
from bertwright.train.settings.phase_config import PhaseConfig

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
AUTO = [{**phase, "micro_batch": "auto"} for phase in PHASES]
"""Batches of 8 and of 4 sequences."""
NETWORK = BertConfig(**MODEL)


def cut_to(size: int) -> list[dict[str, Any]]:
    return [{**phase, "micro_batch": min(size, phase["batch"])} for phase in PHASES]


def sizes(done: Artifact) -> list[list[int]]:
    return [[cut["micro_batch"] for cut in life["micro_batches"]] for life in done.counts["sessions"]]


@dataclass
class Memory:
    """A device on which a forward pass of more than `most` sequences fails, from call `since` on."""

    most: int
    since: int = 0
    calls: int = 0
    failed: int = 0

    def fill(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = PreTraining.terms

        def terms(objective: PreTraining, model: torch.nn.Module, batch: PackedBatch) -> Any:
            if not model.training:
                return real(objective, model, batch)
            self.calls += 1
            if len(batch.sequence_labels) > self.most and self.calls > self.since:
                self.failed += 1
                raise torch.OutOfMemoryError("the device is full")
            return real(objective, model, batch)

        monkeypatch.setattr(PreTraining, "terms", terms)


def test_the_largest_fitting_micro_batch_is_recorded(train: Train) -> None:
    whole, notes = train("whole", phases=AUTO), Notes()
    assert sizes(whole) == [[8, 4]], "the machine has room for all"
    phase = PhaseConfig.model_validate(AUTO[0])
    limit = 1e-9 * training_bytes(NETWORK, phase.model_copy(update={"micro_batch": 3}), Computing()) / FILLED
    done = train("limited", phases=AUTO, memory_limit_gb=limit + 1e-6, log=notes)
    assert sizes(done)[0][0] == 3 and done.counts["sessions"][0]["micro_batches"][0]["found"]
    assert any(f"phase 0 in micro-batches of 3 ({size_of(1e9 * limit)} for each rank)" in line for line in notes.lines)
    assert not [line for line in notes.lines if line.startswith("warning")]
    again = train("given", phases=[{**PHASES[0], "micro_batch": 3}, {**PHASES[1], "micro_batch": sizes(done)[0][1]}])
    assert same(weights(done), weights(again))
    assert sizes(train("nothing", phases=AUTO, memory_limit_gb=0.04, log=notes)) == [[1, 1]], "none has less than one"
    warned = [line for line in notes.lines if line.startswith("warning")]
    assert len(warned) == 2 and warned[1] == (
        "warning: train.phases.1.micro_batch = auto takes about 370 MB even with one sequence at a time, but "
        "train.memory_limit_gb = 0.04. Raise train.memory_limit_gb, lower train.phases.1.length, or choose a smaller "
        "model.size."
    )


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_out_of_memory_halves_and_the_step_is_trained_again(
    train: Train, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    smaller, whole = train("smaller", phases=cut_to(2), dropout=dropout), train("whole", dropout=dropout)
    memory, notes = Memory(most=3), Notes()
    memory.fill(monkeypatch)
    done = train("full", phases=AUTO, dropout=dropout, log=notes)
    assert memory.failed == 3 and sizes(done) == [[2, 2]]
    assert same(weights(done), weights(smaller)), "as if it had begun so"
    assert metric_lines(done.path) == metric_lines(smaller.path)
    assert [line for line in notes.lines if "out of memory" in line] == [
        f"train: out of memory in step 1 of phase {phase}, which is repeated: the micro-batch size is reduced "
        f"from {before} to {before // 2} for this and all later steps of this phase"
        for phase, before in ((0, 8), (0, 4), (1, 4))
    ]
    if not dropout:
        for one, other in zip(metric_lines(done.path), metric_lines(whole.path), strict=True):
            assert one["mlm_loss"] == pytest.approx(other["mlm_loss"], rel=1e-5), "another order of summation"
            assert one["batch"] == other["batch"]


def test_what_does_not_fit_one_by_one_is_an_error(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    Memory(most=0).fill(monkeypatch)
    with pytest.raises(torch.OutOfMemoryError, match="the device is full"):
        train("full", phases=AUTO)


def test_a_size_that_the_recipe_gives_is_never_halved(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(most=3)
    memory.fill(monkeypatch)
    with pytest.raises(torch.OutOfMemoryError, match="the device is full"):
        train("full", phases=cut_to(4))
    assert memory.failed == 1


@pytest.mark.parametrize("row", [1, 2, 3, 8])
def test_resuming_around_out_of_memory_is_bit_identical(
    train: Train, row: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory runs out at step 6; a run that is stopped after it goes on in the halves, though all would fit again."""
    with monkeypatch.context() as patched:
        Memory(most=5, since=5).fill(patched)
        undisturbed = train("undisturbed", phases=AUTO)
    with monkeypatch.context() as patched:
        Memory(most=5, since=5).fill(patched)
        with pytest.raises(Interrupted):
            train("disturbed", phases=AUTO, log=Notes(kill_at_row=row))
    before = 2 * row + 1  # a row is of two steps, each of one forward pass, and the signal is seen after the next one
    if before < 6:
        Memory(most=5, since=5 - before).fill(monkeypatch)
    continued = train("disturbed", phases=AUTO)
    assert same(weights(continued), weights(undisturbed))
    assert sizes(undisturbed) == [[4, 4]] and sizes(continued)[-1] == [4, 4]
    assert continued.fingerprint == undisturbed.fingerprint


def test_a_resumed_run_keeps_its_found_size(train: Train) -> None:
    with pytest.raises(Interrupted):
        train("run", phases=AUTO, memory_limit_gb=1e-3, log=Notes(kill_at_row=1))
    with pytest.raises(Interrupted):
        train("run", phases=AUTO, log=Notes(kill_at_row=1))
    with pytest.raises(Interrupted):
        train("run", phases=cut_to(8), log=Notes(kill_at_row=1))
    assert sizes(train("run", phases=AUTO)) == [[1, 1], [1, 1], [8, 4], [8, 4]]


def test_the_rules_take_account_of_what_is_to_be_kept() -> None:
    phase = PhaseConfig.model_validate({**AUTO[0], "batch": 10**6})
    limit = 3e9
    fits = {
        name: fitting_sequences(NETWORK, phase, Computing(**{name: True}), limit) for name in ("padded", "recompute")
    }
    plain = fitting_sequences(NETWORK, phase, Computing(), limit)
    assert fits["padded"] < plain and fits["recompute"] > 0
    for size in (plain, *fits.values()):
        assert 1 < size < phase.batch
    fixed = phase.model_copy(update={"micro_batch": plain})
    assert 0.99 * FILLED * limit < training_bytes(NETWORK, fixed, Computing()) <= FILLED * limit
    config = TrainConfig.model_validate({"phases": PHASES, "averaging": {"kind": "last", "count": 3}})
    assert [computing_of(config, AdamWConfig(), 1, gpu).averages for gpu in (False, True)] == [3, 0]
    assert [computing_of(config, AdamWConfig(), 1, gpu).padded for gpu in (False, True)] == [False, True]
    low = config.model_copy(update={"precision": Bf16Config()})
    assert not computing_of(low, AdamWConfig(), 1, gpu=True).padded, "attention = auto, which times all kernels there"


def test_two_sizes_of_a_forward_pass_are_refused() -> None:
    with pytest.raises(RecipeError, match="micro_tokens already sets the size of a forward pass: leave micro_batch"):
        PhaseConfig(**{**AUTO[0], "micro_tokens": 64})
    with pytest.raises(RecipeError, match="micro_batch"):
        PhaseConfig(**{**AUTO[0], "micro_batch": "all"})


def test_ranks_on_a_machine_are_as_many_as_the_launcher_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "6")):
        monkeypatch.setenv(name, value)
    assert ranks_here() == 6
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert ranks_here() == 2


@dataclass(frozen=True)
class OneOfTwo:
    """A rank of a training by two, which begins with torch imported already."""

    prepared: tuple[Path, Path]
    network: Path
    out: Path
    phases: list[dict[str, Any]]
    failing: int
    """The forward pass at which the second rank alone has too little memory; 0: none."""
    limit: float
    """Of the second rank's memory (GB)."""

    def run(self, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        real, calls, second = PreTraining.terms, [0], environment["RANK"] == "1"

        def terms(objective: PreTraining, model: Any, batch: PackedBatch) -> Any:
            calls[0] += model.training
            if model.training and second and calls[0] == self.failing:
                raise torch.OutOfMemoryError("full")
            return real(objective, model, batch)

        PreTraining.terms = terms  # type: ignore[method-assign]
        # Where no phase is "auto" there is nothing that it bounds.
        bounded = any(phase["micro_batch"] == "auto" for phase in self.phases)
        limit = (self.limit if second else 100) if bounded else 0
        train = TrainConfig.model_validate(
            {"phases": self.phases, "heldout_sequences": 32, "log_every": 1, "memory_limit_gb": limit}
        )
        examples, vocab = map(open_artifact, self.prepared)
        settings = Settings(train, BertModelConfig(config=self.network), AdamWConfig())
        run(settings, Inputs(examples, vocab), StageContext(self.out))


def two_ranks(prepared: Prepared, folder: Path, phases: Any, failing: int = 0, limit: float = 100) -> dict[str, Any]:
    """The last session of a training by two processes, and its rows."""
    (folder / "bert.json").write_text(json.dumps(MODEL))
    out = folder / f"out-{failing}-{phases[0]['micro_batch']}"
    made = prepared.examples.path, prepared.vocab.path
    one = OneOfTwo(made, folder / "bert.json", out, phases, failing, limit)
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_ports(1)[0]}
    ranks = [context().Process(target=one.run, args=({**common, "RANK": str(rank)},)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(PATIENCE)
    assert [rank.exitcode for rank in ranks] == [0, 0]
    return {"rows": metric_lines(out), **json.loads((out / "manifest.json").read_text())["counts"]["sessions"][-1]}


def test_two_ranks_take_the_smaller_and_halve_together(prepared: Prepared, tmp_path: Path) -> None:
    phases = [{**AUTO[0], "batch": 16}]
    phase = PhaseConfig.model_validate(phases[0])
    limit = (
        training_bytes(NETWORK, phase.model_copy(update={"micro_batch": 3}), Computing(Sharing(DdpConfig(), ranks=2)))
        / FILLED
    )
    limited = two_ranks(prepared, tmp_path, phases, limit=1e-9 * limit + 1e-6)
    (found,) = [cut["micro_batch"] for cut in limited["micro_batches"]]
    assert found == 3, "the second rank has less memory"
    halved = two_ranks(prepared, tmp_path, phases, failing=3)
    assert [cut["micro_batch"] for cut in halved["micro_batches"]] == [4]
    whole = two_ranks(prepared, tmp_path, [{**phases[0], "micro_batch": 8}])
    halves = two_ranks(prepared, tmp_path, [{**phases[0], "micro_batch": 4}])
    assert halved["rows"][:2] == whole["rows"][:2] and halved["rows"][2]["batch"] == halves["rows"][2]["batch"]
    assert halved["rows"][2] != whole["rows"][2], "from the third step on it is cut otherwise"


def test_a_limit_that_bounds_nothing_is_refused() -> None:
    with pytest.raises(
        ValidationError, match=r"memory_limit_gb 8 limits .* set phases\.0\.micro_batch=auto, or leave it"
    ):
        TrainConfig.model_validate({"phases": [{**AUTO[0], "micro_batch": 2}], "memory_limit_gb": 8})
