"""`run --rehearse`: every part in a separate process, a table of failures, and nothing left behind."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.command import PROGRAM, bertwright, forked, start
from tests.pipeline.conftest import Call
from tests.processes import PATIENCE

from bertwright import Recipe, run
from bertwright.trial.rehearse import Outcome, Scratch

NOTHING_KEPT = "corpus.filter.min_words=1000000"
"""No document of the sample has this many words: the stage fails, and no part that needs torch is reached."""


def outcomes(out: str) -> dict[str, str]:
    return {part["part"]: part["outcome"] for part in json.loads(out)["parts"]}


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_what_would_have_failed_is_said_and_what_needs_it_not_reached(
    small_recipe: Path, tmp_path: Path, call: Call
) -> None:
    done = call("run", small_recipe, NOTHING_KEPT, "--rehearse", "--out", tmp_path / "runs" / "mine")
    assert done.code == 3, done.err
    lines = {line.split()[0]: line for line in done.out.splitlines()}
    assert "error" in lines["corpus"] and "min_words" in lines["corpus"]
    for name in ("vocab", "examples", "train", "resume", "evaluate", "export", "report"):
        assert "not reached  needs corpus" in lines[name]
    assert not (tmp_path / "runs").exists()


def test_what_is_not_tried_is_said_with_the_reason(
    small_recipe: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertwright.trial.shortened_recipe.default_workers", lambda: 1)
    given = (NOTHING_KEPT, "train.engine=zero", "train.observers=['tensorboard']", "train.mirror=s3://b/r")
    done = call("run", small_recipe, *given, "--rehearse", "--out", tmp_path / "mine")
    assert done.out.splitlines()[-2:] == [
        "not tried, because it would leave traces elsewhere: train.observers, train.mirror",
        "not tried, because one process has no other ranks to share weights and gradients with: train.engine",
    ]


def test_useless_options_are_refused(small_recipe: Path, tmp_path: Path, call: Call) -> None:
    done = call("run", small_recipe, "--rehearse", "--until", "vocab", "--out", tmp_path / "mine")
    assert done.code == 2 and "--until with --rehearse has no effect" in done.err
    done = call("run", small_recipe, "--rehearse", "corpus.source=nowhere.xml", "--out", tmp_path / "mine")
    assert done.code == 3 and "nowhere.xml" in done.err
    assert left_in(tmp_path) == []


def begun(process: subprocess.Popen[str], scratch: Path) -> None:
    """Wait until the first part has started."""
    until = time.monotonic() + PATIENCE
    while not (scratch / "mine" / ".lock").exists():
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.01)


def test_ctrl_c_leaves_nothing(small_recipe: Path, tmp_path: Path) -> None:
    process = start("run", small_recipe, "--rehearse", "--out", tmp_path / "mine")
    begun(process, tmp_path / ".mine.rehearsal")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert left_in(tmp_path) == []


def test_what_a_killed_one_left_goes_with_the_next(small_recipe: Path, tmp_path: Path, call: Call) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "run", str(small_recipe), "--rehearse", "--out", str(tmp_path / "mine")], start_new_session=True
    )
    scratch = tmp_path / ".mine.rehearsal"
    begun(process, scratch)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    again: Any = None
    until = time.monotonic() + PATIENCE
    # Its last part runs to its end, and nothing is deleted beneath it.
    while (again := call("run", small_recipe, NOTHING_KEPT, "--rehearse", "--out", tmp_path / "mine")).code == 4:
        assert "another rehearsal, or the last part of one that was killed" in again.err and scratch.exists()
        assert time.monotonic() < until
        time.sleep(0.2)
    assert again.code == 3 and left_in(tmp_path) == []


def in_a_fork(name: str, arguments: Sequence[str], scratch: Scratch) -> Outcome:
    """A part in a separate process, as in a real rehearsal, but one that does not have to import torch."""
    log = scratch.path / f"{name}.log"
    part = forked(log, *arguments)
    part.join()
    return Outcome(name, "error" if part.exitcode else "ok", log.read_text(), part.exitcode or 0)


def test_a_rehearsal_succeeds_to_its_end(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path, call: Call, monkeypatch: Any
) -> None:
    monkeypatch.setattr("bertwright.trial.rehearse._run", in_a_fork)
    monkeypatch.setattr("bertwright.trial.shortened_recipe.default_workers", lambda: 1)
    folder = small_examples(tmp_path / "mine")
    done = call("run", small_recipe, "train.engine=zero", "--rehearse", "--out", folder, "--json")
    assert done.code == 0, done.out
    told = json.loads(done.out)
    reached = {part["part"]: part["outcome"] for part in told["parts"] if not part["part"].startswith("check")}
    assert reached == dict.fromkeys(("train", "resume", "phase 0", "phase 1", "evaluate", "export", "report"), "ok"), (
        told["parts"]
    )
    assert told["left_out"] == ["train.engine"]
    assert left_in(tmp_path) == ["mine"] and not (folder / "train").exists()


@pytest.mark.slow
def test_a_recipe_is_rehearsed_to_its_end_with_what_is_prepared(small_recipe: Path, tmp_path: Path) -> None:
    folder = run(Recipe.load(small_recipe), tmp_path / "mine", ["corpus", "vocab", "examples"]).path
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file())
    done = bertwright("run", small_recipe, "--rehearse", "--out", folder, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["text"] == f"the finished stages in {folder} (corpus, vocab, examples)"
    parts = outcomes(done.out)
    assert {name for name in parts if parts[name] == "ok"} >= {
        "train",
        "resume",
        "phase 0",
        "phase 1",
        "export",
        "report",
    }
    assert not {"corpus", "vocab", "examples"} & parts.keys()
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()) == before
    assert left_in(tmp_path) == ["mine"]


@pytest.mark.slow
def test_each_phase_is_tried_alone_after_one_has_failed(small_recipe: Path, tmp_path: Path) -> None:
    # One pass of the network, larger than any memory.
    given = ("train.phases.1.batch=100_000_000", "train.phases.1.micro_batch=0")
    done = bertwright("run", small_recipe, *given, "--rehearse", "--out", tmp_path / "mine", "--json")
    parts = outcomes(done.out)
    assert done.code == 3, done.err
    assert parts["train"] == "error" and parts["resume"] == "not reached"
    assert parts["phase 0 alone"] == "ok" and parts["phase 1 alone"] == "error"
    assert left_in(tmp_path) == []
