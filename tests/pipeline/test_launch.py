"""Launching on this machine: the description matches what runs, and a submission can be found again."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.pipeline.command import ENVIRONMENT, PROGRAM, ROOT, bertwright
from tests.pipeline.conftest import Call
from tests.processes import PATIENCE, children, gone, signal_again

FEW = ("train.phases.0.steps=2", "train.phases.1.steps=2")


def test_local_runs_the_recipe_that_was_described(small_recipe: Path, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "run"
    words = ("launch", "local", small_recipe, "train.seed=3", *FEW, "--out", out)
    described = json.loads(call(*words, "--json").out)
    # Only the corpus stage runs: a rejected stage ends the command with its own exit code.
    refused = bertwright(*words, "--submit", "--json", "corpus.source=nowhere.txt")
    assert refused.code == 3, refused.err
    message = "a command ended with code 3. Look at its messages on standard error."
    assert json.loads(refused.out)["error"] == {"code": 3, "message": message, "hint": message.partition(". ")[2]}
    assert "nowhere.txt" in refused.err
    assert not (out / "corpus").exists() and (out / "launch" / "recipe.toml").is_file()
    done = call(*words, "--submit", "--set", 'environment={OMP_NUM_THREADS="1"}')
    assert done.code == 0, done.err
    assert (out / "report.html").is_file()
    assert (out / "launch" / "recipe.toml").read_text(encoding="utf-8") == described["files"]["recipe.toml"]
    assert "seed = 3" in (out / "recipe.toml").read_text(encoding="utf-8")


def test_what_runs_here_is_not_looked_after(small_recipe: Path, tmp_path: Path, call: Call) -> None:
    for what in ("--status", "--logs", "--stop"):
        done = call("launch", "local", small_recipe, "--out", tmp_path / "run", what)
        assert (
            done.code == 2 and "runs its commands here and waits for them, so there are no submitted jobs" in done.err
        )
    both = call("launch", "local", small_recipe, "--submit", "--stop")
    assert both.code == 2 and "exclude each other. Give one of them." in both.err


@pytest.mark.parametrize(
    ("words", "runs", "status"),
    [
        (("kubeflow",), "kubectl create configmap", "kubectl get --ignore-not-found job/mine-prepare pytorchjob/mine"),
        (("skypilot",), "sky launch --cluster mine runs/mine/launch/task.yaml", "sky queue mine"),
    ],
)
def test_where_its_user_submits_files_are_written_and_commands_said(
    words: tuple[str, ...], runs: str, status: str, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("launch", words[0], "smoke", *words[1:], "--out", "runs/mine")
    done = call(*given, "--submit")
    assert done.code == 0, done.err
    head, *commands = done.out.splitlines()
    assert (
        head == "=== written to runs/mine/launch, nothing is submitted yet. Run these commands:" and runs in commands[0]
    )
    assert (tmp_path / "runs/mine/launch/recipe.toml").is_file()
    facts = json.loads(call(*given, "--submit", "--json").out)
    assert not facts["jobs"] and facts["commands"] == [line for line in commands if not line.startswith("=== ")]
    asked = call(*given, "--status")
    assert asked.code == 2 and f"launch {words[0]} submits nothing itself" in asked.err and status in asked.err


def test_what_its_user_has_to_do_is_said_when_it_is_submitted(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    words = ("launch", "container", "smoke", "corpus.source=/elsewhere/huwiki.xml.bz2", "--submit")
    note = "The container does not see corpus.source = /elsewhere/huwiki.xml.bz2"
    done = call(*words)
    assert done.code == 0 and note in done.err and done.out == "runs/smoke/launch\n"
    facts = json.loads(call(*words, "--json").out)
    assert facts["note"].startswith(note) and not facts["commands"] and not facts["jobs"]


def test_without_slurm_nothing_is_submitted(
    small_recipe: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = call("launch", "slurm", small_recipe, "--out", tmp_path / "run", "--submit")
    assert done.code == 5 and "there is no sbatch on this machine. Run the command on a machine with Slurm" in done.err
    none = call("launch", "slurm", small_recipe, "--out", tmp_path / "run", "--status")
    assert none.code == 2 and "has no jobs: there is no" in none.err and "Submit the run first (--submit)" in none.err


@pytest.mark.parametrize("target", ["local", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_a_signal_is_handed_on_and_the_exit_code_is_that_of_the_run(
    target: str, small_recipe: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ["launch", target, str(small_recipe), "train.phases.0.steps=4000", "--out", str(out), "--submit"]
    # torchrun's ranks meet at an address of this machine.
    environment = ENVIRONMENT if target == "local" else ENVIRONMENT | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen([*PROGRAM, *words], env=environment, stderr=subprocess.DEVNULL)
    metrics = out / "train" / "metrics.jsonl"
    until = time.monotonic() + PATIENCE
    while not metrics.is_file() and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE) == 75
    assert list((out / "train" / "checkpoints").iterdir())


@pytest.mark.parametrize("target", ["local", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_after_a_second_signal_a_stopped_run_is_killed_and_named(
    target: str, small_recipe: Path, tmp_path: Path
) -> None:
    """Ctrl-C twice, while the command and the ranks that it has started are stopped."""
    out = tmp_path / "run"
    words = ["launch", target, str(small_recipe), "train.phases.0.steps=4000", "--out", str(out), "--submit"]
    environment = ENVIRONMENT if target == "local" else ENVIRONMENT | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen([*PROGRAM, *words], env=environment, stderr=subprocess.PIPE, text=True)
    metrics = out / "train" / "metrics.jsonl"
    while not metrics.is_file():
        assert process.poll() is None
        time.sleep(0.1)
    (command,) = children(process.pid)
    stopped = [command, *children(command)]
    for each in stopped:
        os.kill(each, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    signal_again(process, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    name = "bertwright" if target == "local" else "torchrun"
    assert process.returncode == 130
    assert f"ended by a second signal, SIGINT; killed what did not end: {name} (process {command})." in err
    assert all(map(gone, stopped))
