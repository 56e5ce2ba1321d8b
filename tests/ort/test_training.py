"""What ONNX Runtime computes is what torch computes, in the environment of `make ort-env`: `make test-ort`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.ort.program import rows, train
from tests.pipeline.test_lost_ranks import free_port
from tests.processes import PATIENCE, child_of

from bertwright.core.artifact import open_artifact
from bertwright.core.files import sha256
from bertwright.model.saved import load_model
from bertwright.optim.adam import has_fused_adam
from bertwright.train.graph.packages import missing_ortmodule

if missing_ortmodule():
    pytest.skip("needs the environment of make ort-env: make test-ort", allow_module_level=True)

import onnxruntime

from bertwright.train.graph.ortmodule import FullRows

PROGRAM = str(Path(__file__).with_name("program.py"))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]


class Stopped(Exception):
    """In place of a kill."""


def stop(checkpoint: Path) -> None:
    raise Stopped


def assert_alike(out: Path, other: Path, tolerance: float = 1e-5) -> None:
    ours, theirs = rows(out), rows(other)
    assert [row["batch"] for row in ours] == [row["batch"] for row in theirs] and len(ours) == 40
    for one, another in zip(ours, theirs, strict=True):
        for name in [name for name in one if name.endswith("loss") or name == "grad_norm"]:
            assert another[name] == pytest.approx(one[name], rel=tolerance), (one["total_steps"], name)


def assert_same_network(graph: Path, model: Path) -> None:
    """The file of a phase's end computes what the model that is saved does."""
    session = onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    sizes = {given.name: given.shape[0] for given in session.get_inputs()}
    tokens, length = sizes["token_ids"], 32
    rows = tokens // length
    bounds_B = np.full(sizes["cu_seqlens"], tokens, np.int32)
    bounds_B[: rows + 1] = np.arange(rows + 1) * length
    inputs = {
        "token_ids": np.arange(tokens, dtype=np.int64) % 50,
        "position_ids": np.arange(tokens, dtype=np.int64) % length,
        "segment_ids": np.zeros(tokens, np.int64),
        "cu_seqlens": bounds_B,
        "prediction_positions": np.arange(sizes["prediction_positions"], dtype=np.int64),
    }
    logits = session.run(None, inputs)
    arrays = [torch.from_numpy(array) for array in inputs.values()]
    with torch.inference_mode():
        expected = FullRows(load_model(model, "padded"), rows, length).eval()(*arrays)
    for ours, theirs in zip(expected, logits, strict=True):
        np.testing.assert_allclose(theirs, ours.numpy(), rtol=1e-4, atol=1e-5)


def test_losses_are_those_of_eager_in_both_phases(tmp_path: Path) -> None:
    eager, exported = (train(tmp_path / graph, graph) for graph in ("eager", "ortmodule"))
    assert_alike(eager.path, exported.path)
    assert exported.counts["sessions"][0]["graph"] == "ortmodule"
    assert exported.names("phase-") == ["phase-0.onnx", "phase-1.onnx"] and not eager.names("phase-")
    assert_same_network(exported.file("phase-1.onnx"), exported.path / "model")


def test_ranks_that_share_the_optimizer_have_them_too(tmp_path: Path) -> None:
    """The setting of the ONNX Runtime example: its partitioned optimizer and its graph. On one core, where ranks that
    end used to wait for their own threads forever."""
    train(tmp_path / "eager", "eager")
    core = min(os.sched_getaffinity(0))
    command = [*TORCHRUN, "--standalone", PROGRAM, str(tmp_path / "ranks"), "ortmodule", "zero"]
    subprocess.run(command, check=True, timeout=PATIENCE, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    assert_alike(tmp_path / "eager", tmp_path / "ranks")


def test_dropout_is_drawn_from_the_seed_of_the_step(tmp_path: Path) -> None:
    """So a training that is stopped and goes on ends with the bits of one that was not, as with torch."""
    whole = train(tmp_path / "whole", "ortmodule", dropout="0.1")
    with pytest.raises(Stopped):
        train(tmp_path / "resumed", "ortmodule", dropout="0.1", saved=stop)
    plain = train(tmp_path / "plain", "ortmodule")
    assert rows(whole.path)[1]["mlm_loss"] != rows(plain.path)[1]["mlm_loss"]
    weights = Path("model") / "model.safetensors"
    resumed = train(tmp_path / "resumed", "ortmodule", dropout="0.1")
    assert sha256(whole.path / weights) == sha256(resumed.path / weights)


def test_a_rank_killed_with_9_is_started_again_and_the_end_is_the_same_to_the_bit(tmp_path: Path) -> None:
    """With dropout, and an optimizer that the ranks share."""
    asked = ["ortmodule", "zero", "0.1"]
    subprocess.run([*TORCHRUN, "--standalone", PROGRAM, str(tmp_path / "whole"), *asked], check=True, timeout=PATIENCE)
    killed, log = tmp_path / "killed", tmp_path / "log"
    metrics = killed / "metrics.jsonl"
    with log.open("w") as handle:
        # Not --standalone, whose meeting torch 2.3 closes at the first failure.
        again = ["--master-port", free_port(), "--max-restarts", "1"]
        torchrun = subprocess.Popen([*TORCHRUN, *again, PROGRAM, str(killed), *asked], stdout=handle, stderr=handle)
    while not metrics.is_file() or metrics.read_bytes().count(b"\n") < 12:
        assert torchrun.poll() is None, log.read_text()
        time.sleep(0.01)
    os.kill(child_of(torchrun.pid, "RANK=1"), signal.SIGKILL)
    assert torchrun.wait(PATIENCE) == 0, log.read_text()
    assert "rank 1 of 2" in log.read_text() and "is lost: its connection ended" in log.read_text()
    sessions = open_artifact(killed, "train").counts["sessions"]
    assert [(each["graph"], each["ranks"]) for each in sessions] == [("ortmodule", 2)] * 2
    weights = Path("model") / "model.safetensors"
    assert sha256(killed / weights) == sha256(tmp_path / "whole" / weights)


def test_checkpoints_move_between_the_graphs(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        train(tmp_path / "moved", "eager", saved=stop)
    moved, eager = train(tmp_path / "moved", "ortmodule"), train(tmp_path / "eager", "eager")
    assert_alike(eager.path, moved.path)
    assert [session["graph"] for session in moved.counts["sessions"]] == ["eager", "ortmodule"]


def test_a_network_learns_from_a_teacher_as_in_torch(tmp_path: Path) -> None:
    """Without hidden states of single layers, which a graph does not show."""
    teacher = train(tmp_path / "teacher", "eager")
    objective = {"kind": "distillation", "teacher": str(teacher.path), "hidden_weight": 0}
    eager, exported = (train(tmp_path / graph, graph, objective=objective) for graph in ("eager", "ortmodule"))
    assert_alike(eager.path, exported.path)
    assert "soft_loss" in rows(exported.path)[-1]


def test_the_optimizer_took_its_plain_path() -> None:
    assert not has_fused_adam("cpu"), "this torch is of before 2.4"
