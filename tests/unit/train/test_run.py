"""Training: phases, resuming, refusing, extending, damage, signals."""

import json
import math
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.conftest import Prepared
from tests.unit.train.conftest import MODEL, PHASES

from bertwright.core import signals
from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.errors import ArtifactError, CheckpointError, DataError, Interrupted
from bertwright.core.stage_context import StageContext
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.plans import Plans
from bertwright.examples.run import run as examples_run
from bertwright.examples.run_tasks import Inputs as ExamplesInputs
from bertwright.examples.store import Store
from bertwright.model.config import network_of
from bertwright.optim.config import MuonConfig
from bertwright.train import after_step
from bertwright.train.checkpoints.checkpoint import load, prune
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.run import run as vocab_run

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]


class Notes:
    """A log that remembers, and can raise a signal after a number of rows."""

    def __init__(self, kill_at_row: int | None = None, error: type[BaseException] | None = None) -> None:
        self.lines: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self._kill_at_row, self._error = kill_at_row, error

    def say(self, message: str) -> None:
        self.lines.append(message)

    def progress(self, stage: str, done: float, total: float, unit: str) -> None: ...

    def record(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if len(self.rows) == self._kill_at_row:
            if self._error:
                raise self._error("test")
            os.kill(os.getpid(), signal.SIGTERM)


def weights(artifact: Artifact) -> dict[str, torch.Tensor]:
    return load_file(artifact.file("model/model.safetensors"))


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def metric_lines(folder: Path) -> list[dict[str, Any]]:
    timings = {
        "time", "seconds", "tokens_per_second", "tflops_per_second", "floor_ratio", "data_wait_share", "memory_bytes",
        "remaining_seconds", "remaining_low_seconds", "remaining_high_seconds",
    }  # fmt: skip
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k not in timings} for row in rows]


SESSION = {
    "from_step", "ranks", "threads", "micro_batches", "attention", "engine", "precision", "device", "machine", "torch",
    "weights", "deterministic", "graph", "waiting", "isa", "precision_reason",
}  # fmt: skip


def test_it_learns_and_leaves_what_it_promises(train: Train, optim: Any) -> None:
    done = train(optim=optim)
    rows = metric_lines(done.path)
    assert rows[-1]["mlm_loss"] < rows[0]["mlm_loss"] - 0.1
    assert [r["total_steps"] for r in rows if "heldout_mlm_loss" in r] == [6, 12, 18]
    assert done.counts["steps"] == 18 and done.counts["sequences_seen"] == 12 * 8 + 6 * 4
    assert {"metrics.jsonl", "model/config.json", "model/model.safetensors", "model/vocab.txt"} <= set(done.names())
    assert (done.path / "checkpoints" / "step-000000012" / "state.json").is_file()
    assert [set(life) for life in done.counts["sessions"]] == [SESSION]
    assert not any(name.endswith((".pt", ".pkl", ".bin")) for name in done.names())


@pytest.mark.parametrize("precision", ["fp32", "bf16", "pure"])
def test_checkpointed_activations_change_no_bit(train: Train, precision: str) -> None:
    numbers = {"kind": precision.replace("pure", "bf16")} | ({"allow_slow": True} if precision != "fp32" else {})
    settings = {"precision": numbers | ({"weights": "bf16"} if precision == "pure" else {}), "dropout": 0.2}
    plain = train("plain", **settings)
    again = train("again", **settings, checkpoint_activations=True)
    assert same(weights(again), weights(plain)) and metric_lines(again.path) == metric_lines(plain.path)
    assert again.fingerprint == plain.fingerprint


def test_determinism_is_the_default_on_a_cpu(train: Train) -> None:
    on, notes = train("on"), Notes()
    off = train("off", deterministic=False, log=notes)
    assert [done.counts["sessions"][0]["deterministic"] for done in (on, off)] == [True, False]
    assert sum("not deterministic: another run gives slightly different numbers" in line for line in notes.lines) == 1
    assert not torch.are_deterministic_algorithms_enabled(), "left as it was found"


def test_the_same_call_again_changes_nothing(train: Train) -> None:
    first = train()
    stamps = {p: p.stat().st_mtime_ns for p in first.path.rglob("*")}
    again = train()
    assert again.fingerprint == first.fingerprint
    assert {p: p.stat().st_mtime_ns for p in first.path.rglob("*")} == stamps


@pytest.mark.parametrize("row", [1, 3, 6, 8])
def test_stopped_by_a_signal_and_continued_it_ends_bit_identical(train: Train, optim: Any, row: int) -> None:
    undisturbed = train("undisturbed", optim=optim)
    with pytest.raises(Interrupted, match="everything is saved. Run the same command again"):
        train("disturbed", optim=optim, log=Notes(kill_at_row=row))
    notes = Notes()
    continued = train("disturbed", optim=optim, log=notes)
    assert any("resuming from step-" in line for line in notes.lines)
    assert same(weights(continued), weights(undisturbed))


@pytest.mark.parametrize("row", [2, 5, 7, 9])
def test_resuming_after_any_crash_gives_the_same_result(train: Train, row: int) -> None:
    undisturbed = train("undisturbed")
    with pytest.raises(RuntimeError):
        train("crashed", log=Notes(kill_at_row=row, error=RuntimeError))
    continued = train("crashed")
    assert same(weights(continued), weights(undisturbed))
    assert metric_lines(continued.path) == metric_lines(undisturbed.path)


def test_micro_batches_change_only_the_order_of_summation(train: Train, no_dropout: dict[str, Any]) -> None:
    phases = [{**PHASES[0], "micro_batch": m} for m in (8, 3, 1)]
    rows = [metric_lines(train(f"m{p['micro_batch']}", phases=[p], **no_dropout).path) for p in phases]
    for key in ("mlm_loss", "nsp_loss", "grad_norm", "heldout_mlm_loss"):
        one, three, eight = ([row[key] for row in run if key in row] for run in rows)
        assert one == pytest.approx(eight, rel=1e-5) and three == pytest.approx(eight, rel=1e-5)
    assert [r["tokens_seen"] for r in rows[0]] == [r["tokens_seen"] for r in rows[1]]


def test_changed_settings_are_refused_by_name(train: Train) -> None:
    train()
    with pytest.raises(
        ArtifactError, match=r"train.seed: 42 -> 43.*Restore these settings, or train in another folder"
    ):
        train(seed=43)
    with pytest.raises(ArtifactError, match=r"train.phases.0.learning_rate: 0.01 -> 0.02"):
        train(phases=[{**PHASES[0], "learning_rate": 2e-2}, PHASES[1]])
    train(log_every=3, keep_checkpoints=7)  # how the work is done is free to change


def test_a_phase_may_grow_but_not_shrink(train: Train) -> None:
    short = train(phases=[PHASES[0]])
    notes = Notes()
    longer = train(phases=[{**PHASES[0], "steps": 15}], log=notes)
    assert longer.counts["steps"] == 15 and any("step-000000012" in line for line in notes.lines)
    assert longer.counts["extensions"] == [{"phase": 0, "step": 12, "from": 12, "to": 15}]
    fresh = train("fresh", phases=[{**PHASES[0], "steps": 15}])
    assert not same(weights(longer), weights(fresh)) and longer.fingerprint != fresh.fingerprint != short.fingerprint
    assert train(phases=[{**PHASES[0], "steps": 15}]).fingerprint == longer.fingerprint
    with pytest.raises(
        ArtifactError, match=r"begun with 15 steps, but the recipe now says 14. It may become longer, but not shorter"
    ):
        train(phases=[{**PHASES[0], "steps": 14}])
    assert train(phases=[{**PHASES[0], "steps": 15}]).fingerprint == longer.fingerprint, "a refusal changes nothing"


@pytest.mark.parametrize(
    ("phase", "says"),
    [
        # A share of warm-up grows with the phase: after 12 of 24 updates the decay is at 12 - 2.4 of 24 - 2.4.
        ({}, "and its learning rate goes from 0.00093 to 0.0056: the shorter schedule had already decayed"),
        ({"warmup": 4}, "and its learning rate goes from 0.0013 to 0.006: the shorter schedule had already decayed"),
        ({"schedule": "constant"}, "and its learning rate goes from 0.01 to 0.01"),
    ],
)
def test_the_rate_at_which_a_grown_phase_goes_on_is_said(train: Train, phase: dict[str, Any], says: str) -> None:
    train(phases=[PHASES[0] | phase])
    notes = Notes()
    done = train(phases=[PHASES[0] | phase | {"steps": 24}], log=notes, log_every=1)
    (line,) = [line for line in notes.lines if "grows from" in line]
    assert line.startswith(f"train: phase 0 grows from 12 to 24 steps at step 12, {says}")
    assert ("so the loss may rise at first" in line) == ("schedule" not in phase)
    rates = {row["step"]: row["learning_rate"] for row in metric_lines(done.path)}
    assert [f"{rates[step]:.2g}" for step in (12, 13)] == [
        line.split(" goes from ")[1].split(" ")[0],
        line.split(" to ")[-1].split(":")[0],
    ]
    train(phases=[PHASES[0] | phase | {"steps": 24}], log=(again := Notes()))
    assert not any("grows from" in line for line in again.lines), "it has grown before"


def test_a_phase_that_has_ended_cannot_change(train: Train) -> None:
    done = train()
    for steps in (10, 13):
        with pytest.raises(
            ArtifactError, match=r"train.phases.0 was trained with 12 steps, .* It has ended and cannot"
        ):
            train(phases=[{**PHASES[0], "steps": steps}, PHASES[1]])
    assert train().fingerprint == done.fingerprint


def test_a_phase_ended_early_begins_like_the_full_one(train: Train) -> None:
    def rates(done: Artifact) -> list[float]:
        return [row["learning_rate"] for row in metric_lines(done.path)]

    whole, early = train("whole"), train("early", phases=[{**PHASES[0], "end_after": 8}, PHASES[1]])
    assert early.counts["steps"] == 8 + 6
    assert rates(early)[:4] == rates(whole)[:4] and rates(early)[4:] == rates(whole)[6:]
    assert early.counts["phase_ends"] == [8, 6] and early.counts["extensions"] == []


def test_scoring_first_works_with_sharded_tensors(train: Train) -> None:
    """The phase has just ended at the step of the checkpoint, so scores come before any backward pass."""
    ended = [{**PHASES[0], "end_after": 8}, PHASES[1]]
    with pytest.raises(RuntimeError):
        train("run", engine="fsdp", log=Notes(kill_at_row=5, error=RuntimeError))
    done, fresh = train("run", engine="fsdp", phases=ended), train("fresh", engine="fsdp", phases=ended)
    assert same(weights(done), weights(fresh)) and done.counts["steps"] == 8 + 6


@pytest.mark.parametrize("end", [8, 10])
def test_a_phase_may_be_ended_while_it_is_under_way(train: Train, end: int) -> None:
    ended = [{**PHASES[0], "end_after": end}, PHASES[1]]
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=5, error=RuntimeError))  # after step 10, so it stands at checkpoint 8
    done, fresh = train("run", phases=ended), train("fresh", phases=ended)
    assert same(weights(done), weights(fresh)) and done.fingerprint == fresh.fingerprint
    (state,) = [s for s in states_of(done) if s["phase"] == 0 and s["phase_end"]]
    assert state["data_step"] == end and state["heldout"]
    with pytest.raises(ArtifactError, match=rf"has ended after step {end} and cannot end after 12 now. Set .*={end},"):
        train("run")


def test_a_moved_end_adds_scores_to_its_row(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = [{**PHASES[0], "end_after": 8}, PHASES[1]]
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=5, error=RuntimeError))
    right, slept = after_step.score_heldout, list[int]()

    def slow(*arguments: Any, **more: Any) -> Any:
        time.sleep(0.3 if not slept else 0)
        slept.append(1)
        return right(*arguments, **more)

    monkeypatch.setattr(after_step, "score_heldout", slow)
    notes = Notes()
    done, fresh = train("run", phases=ended, log=notes), train("fresh", phases=ended)
    rows, expected = metric_lines(done.path), metric_lines(fresh.path)
    assert len(rows) == len(expected) and rows[2]["step"] == 6
    assert rows[3:] == expected[3:], "as if that had been its end from the beginning"
    assert notes.rows[0]["step"] == 8 and "heldout_mlm_loss" in notes.rows[0], "it is shown again"
    assert states_of(done)[-1]["other_seconds"] >= 0.3, "time spent on scoring counts"


def test_each_epoch_is_scored_saved_and_logged_once(train: Train) -> None:
    """Also in a training that is stopped between and goes on."""
    every = dict.fromkeys(("evaluate_every", "checkpoint_every", "log_every"), "epoch")
    settings = {
        "phases": [{**PHASES[0], "batch": 32, "micro_batch": 32, "steps": None, "epochs": 2.5}],
        "keep_checkpoints": 100,
        **every,
    }
    whole = train("whole", **settings)
    rows = metric_lines(whole.path)
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=2, error=RuntimeError), **settings)
    again = metric_lines(train("run", **settings).path)
    assert len(rows) == 3 and [row["step"] for row in rows] == [row["step"] for row in again]
    assert all("heldout_mlm_loss" in row and row["saved"] for row in rows)
    assert rows[-1]["step"] == rows[-1]["steps"]
    assert [row["heldout_mlm_loss"] for row in rows] == [row["heldout_mlm_loss"] for row in again]


def test_a_phase_cannot_end_at_a_step_that_has_passed(train: Train) -> None:
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=5, error=RuntimeError))
    with pytest.raises(
        ArtifactError, match=r"end_after=7: step 8 is already done. .* set train.phases.0.end_after=8\."
    ):
        train("run", phases=[{**PHASES[0], "end_after": 7}, PHASES[1]])
    with pytest.raises(ValueError, match="end_after 13 is more than the phase's 12 steps"):
        train("run", phases=[{**PHASES[0], "end_after": 13}, PHASES[1]])


def states_of(done: Artifact) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(done.path.glob("checkpoints/*/state.json"))]


def test_checkpoints_of_other_settings_are_never_adopted(train: Train, tmp_path: Path) -> None:
    train("donor", phases=[PHASES[0]])
    (tmp_path / "thief").mkdir()
    shutil.copytree(tmp_path / "donor" / "checkpoints", tmp_path / "thief" / "checkpoints")
    with pytest.raises(ArtifactError, match=r"train.seed: 42 -> 7"):
        train("thief", phases=[PHASES[0]], seed=7)


def test_lost_checkpoints_are_a_clear_stop(train: Train, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=8, error=RuntimeError))
    (tmp_path / "run" / "checkpoints").rename(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=r"lists checkpoints, but .* has none. Restore them to continue"):
        train("run")
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 8


def test_deleting_old_checkpoints_keeps_the_model_valid(train: Train) -> None:
    done = train()
    shutil.rmtree(done.path / "checkpoints" / "step-000000012")
    assert train().fingerprint == done.fingerprint


def test_a_damaged_row_of_metrics_is_named(train: Train, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=6, error=RuntimeError))
    path = tmp_path / "run" / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[1][3:], *lines[2:]]))
    with pytest.raises(ArtifactError, match=r"metrics.jsonl:2 is damaged.*Remove that line"):
        train("run")


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def test_damage_falls_back_to_the_newest_valid_checkpoint(train: Train, tmp_path: Path) -> None:
    undisturbed = train("undisturbed")
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=6, error=RuntimeError))
    checkpoints = sorted((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert len(checkpoints) == 2
    flip_a_bit(checkpoints[-1] / "optimizer.safetensors")
    notes = Notes()
    continued = train("run", log=notes)
    assert any(
        f"skipping the damaged checkpoint {checkpoints[-1].name}" in line and "is damaged" in line
        for line in notes.lines
    )
    assert any(f"resuming from {checkpoints[0].name}" in line for line in notes.lines)
    assert same(weights(continued), weights(undisturbed))


def test_all_checkpoints_damaged_is_a_clear_stop(train: Train, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        train("run", log=Notes(kill_at_row=6, error=RuntimeError))
    for checkpoint in (tmp_path / "run" / "checkpoints").glob("step-*"):
        flip_a_bit(checkpoint / "model.safetensors")
    with pytest.raises(
        CheckpointError, match=r"none of the 2 checkpoints .* is complete.*move .* away to start again from step 0"
    ):
        train("run")


def test_retention_keeps_newest_best_and_phase_ends(train: Train, tmp_path: Path) -> None:
    done = train(checkpoint_every=1, evaluate_every=1, keep_checkpoints=2)
    states = {p.name: json.loads((p / "state.json").read_text()) for p in (done.path / "checkpoints").glob("step-*")}
    best = min((s for s in states.values() if s["phase"] == 1), key=lambda s: s["heldout"]["mlm_loss"])
    scores = [r["heldout_mlm_loss"] for r in metric_lines(done.path) if r["phase"] == 1 and "heldout_mlm_loss" in r]
    assert best["heldout"]["mlm_loss"] == min(scores)
    assert {"step-000000012", "step-000000017", "step-000000018"} <= states.keys() and len(states) <= 4
    prune(done.path / "checkpoints", 1, done.path / "checkpoints" / "step-000000018")
    assert {"step-000000012", "step-000000018"} <= {p.name for p in (done.path / "checkpoints").glob("step-*")}


def test_hand_over_keeps_moments_and_resets_the_step(train: Train) -> None:
    done = train(checkpoint_every=1, keep_checkpoints=100)
    state, _, moments = load(open_artifact(done.path / "checkpoints" / "step-000000013"))
    assert (state.phase, state.data_step, state.optimizer_step, int(moments["step"])) == (1, 1, 1, 1)
    _, _, before = load(open_artifact(done.path / "checkpoints" / "step-000000012"))
    name = "exp_avg_sq.bert.embeddings.token.weight"
    kept = 0.999 * before[name] <= moments[name] * (1 + 1e-6)
    assert bool(kept.all()) and bool(before[name].any())


def test_one_phase_alone_from_a_checkpoint(train: Train) -> None:
    whole = train("whole")
    checkpoint = whole.path / "checkpoints" / "step-000000012"
    alone = train("alone", phases=[PHASES[1]], init_from=checkpoint)
    assert alone.counts["steps"] == 6
    fresh = train("fresh", phases=[PHASES[1]])
    assert metric_lines(alone.path)[0]["mlm_loss"] < metric_lines(fresh.path)[0]["mlm_loss"]
    again = train("from model", phases=[PHASES[1]], init_from=whole.path)
    assert metric_lines(again.path)[0]["mlm_loss"] < metric_lines(fresh.path)[0]["mlm_loss"]


def test_moments_of_another_optimizer_are_refused(train: Train) -> None:
    """Those of a finished training are not: it has none."""
    whole = train("whole")
    checkpoint = whole.path / "checkpoints" / "step-000000012"
    said = r"step-000000012 has the moments of optim\.kind=adamw, which muon cannot continue; set optim\.kind=adamw, or"
    with pytest.raises(ArtifactError, match=said):
        train("other", phases=[PHASES[1]], init_from=checkpoint, optim=MuonConfig())
    assert train("weights", phases=[PHASES[1]], init_from=whole.path, optim=MuonConfig()).counts["steps"] == 6


def test_a_donor_may_go_once_training_has_begun(train: Train, tmp_path: Path) -> None:
    checkpoint = train("whole").path / "checkpoints" / "step-000000012"
    undisturbed = train("undisturbed", phases=[PHASES[1]], init_from=checkpoint)
    with pytest.raises(Interrupted):
        train("run", phases=[PHASES[1]], init_from=checkpoint, log=Notes(kill_at_row=2))
    checkpoint.rename(tmp_path / "gone")
    assert same(weights(train("run", phases=[PHASES[1]], init_from=checkpoint)), weights(undisturbed))
    with pytest.raises(ArtifactError, match="train.init_from: .* is not a finished artifact"):
        train("late", phases=[PHASES[1]], init_from=checkpoint)


def test_init_with_another_network_or_vocabulary_is_refused(train: Train, prepared: Prepared, tmp_path: Path) -> None:
    donor = train("donor", phases=[PHASES[0]])
    checkpoint = open_artifact(next((donor.path / "checkpoints").glob("step-*")))
    assert network_of(checkpoint.manifest["config"]).num_attention_heads == 2
    small = {**MODEL, "hidden_size": 8, "intermediate_size": 16}
    (tmp_path / "bert.json").write_text(json.dumps(small))
    with pytest.raises(
        ArtifactError, match=r"train.init_from .* is another network: .* is \(\d+.*\) there and \(\d+.*\) here"
    ):
        train("other", phases=[PHASES[0]], init_from=donor.path)
    other = vocab_run(VocabConfig(size=160, alphabet_coverage=1, lower_case=True), prepared.corpus, tmp_path / "vocab")
    sets = (PlanSet(length=16),)
    examples = examples_run(
        ExamplesConfig(passes=1, heldout=0.1, workers=1),
        sets,
        ExamplesInputs(prepared.corpus, other),
        StageContext(tmp_path / "ex"),
    )
    with pytest.raises(
        ArtifactError, match=r"has another vocabulary than .*vocab \([0-9a-f]{12} instead of .* Set vocab\.file="
    ):
        train("words", phases=[PHASES[0]], init_from=donor.path, examples=examples, vocab=other)


def test_own_data_may_not_hold_what_the_run_holds_out(train: Train, prepared: Prepared, tmp_path: Path) -> None:
    config = ExamplesConfig(passes=1, heldout=0.01, workers=1)
    leaky = examples_run(
        config, (PlanSet(length=16),), ExamplesInputs(prepared.corpus, prepared.vocab), StageContext(tmp_path / "leaky")
    )
    with pytest.raises(
        ArtifactError, match=r"train.phases.0.data .* trains on [\d,]+ documents that this run holds out"
    ):
        train(phases=[{**PHASES[0], "data": leaky.path}])
    done = train("own", phases=[{**PHASES[0], "data": prepared.examples.path}])
    assert same(weights(done), weights(train("run's", phases=[PHASES[0]])))


def test_a_phase_may_be_measured_in_samples_epochs_or_tokens(train: Train, prepared: Prepared) -> None:
    bare = {k: v for k, v in PHASES[0].items() if k != "steps"}
    assert train("samples", phases=[{**bare, "samples": 33}]).counts["steps"] == 5
    rows = prepared.examples.counts["train"]["rows"]["16"]
    assert train("epochs", phases=[{**bare, "epochs": 0.1}]).counts["steps"] == math.ceil(0.1 * rows[0] / 8)
    tokens = train("tokens", phases=[{**bare, "tokens": 1000}]).counts["tokens_seen"]
    assert abs(tokens - 1000) < 2 * 8 * 16


def test_divergence_is_a_clear_stop(train: Train) -> None:
    with pytest.raises(DataError, match=r"not finite in 20 steps in a row.*Lower train.phases.0.learning_rate"):
        train(phases=[{**PHASES[0], "learning_rate": 1e30, "warmup": 0.0, "steps": 60}])


def test_shares_of_the_documents_are_disjoint_and_complete(prepared: Prepared) -> None:
    tokens = Store.open(prepared.examples).shard_tokens[-1]
    seen = []
    for plan_set in (PlanSet(length=16, document_range=(0.0, 0.5)), PlanSet(length=32, document_range=(0.5, 1.0))):
        read = np.zeros(tokens, bool)
        for rows in Plans.open(prepared.examples, plan_set).rows:
            for start, count in (("a_start", "a_count"), ("b_start", "b_count")):
                for row in rows:
                    read[row[start] : row[start] + row[count]] = True
        seen.append(read)
    assert not (seen[0] & seen[1]).any() and (seen[0] | seen[1]).all()


def test_a_second_interrupt_leaves_at_once(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "SAME", -1.0)  # as if the first one had been long ago

    class Twice(Notes):
        def record(self, row: dict[str, Any]) -> None:
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        train(log=Twice())
