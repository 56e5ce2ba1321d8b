"""A signal in any stage: one sentence, the documented exit code, no process left, and the same command resumes."""

import importlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.pipeline.command import forked
from tests.processes import PATIENCE, gone

from bertwright.core import signals

CODES = {signal.SIGINT: 130, signal.SIGTERM: 75, signal.SIGHUP: 75, signal.SIGUSR1: 75, signal.SIGUSR2: 75}


def wait_for(path: Path, lines: int, process: ForkServerProcess, log: Path) -> None:
    while not path.is_file() or path.read_text().count("\n") < lines:
        assert process.is_alive(), log.read_text()
        time.sleep(0.01)


def says_one_sentence(log: Path, number: signal.Signals) -> None:
    said = log.read_text()
    assert "Traceback" not in said and said.count("bertwright: ") == 1, said
    last = said.splitlines()[-1]
    by = "interrupted. " if number == signal.SIGINT else f"stopped by {number.name}. "
    assert last.startswith(f"bertwright: {by}") and "un the same command again" in last


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_and_the_programs_they_run_are_gone(number: signal.Signals, small_recipe: Path, tmp_path: Path) -> None:
    """The signal goes to all processes at once, as with Ctrl-C and schedulers."""
    begun, log = tmp_path / "begun", tmp_path / "log"
    splitter = tmp_path / "splitter"
    splitter.write_text(f"#!/bin/sh\necho $$ $PPID >> {begun}\nexec sleep 600\n")
    splitter.chmod(0o755)
    for name in "ab":  # one task per source
        (tmp_path / f"{name}.txt").write_text("A sentence. Another sentence.\n")
    source = (f"corpus.source={tmp_path}/*.txt", f'corpus.split={{command=["{splitter}"]}}', "corpus.workers=2")
    process = forked(log, "corpus", small_recipe, *source, "--out", tmp_path / "run", before=os.setsid)
    wait_for(begun, 2, process, log)
    assert process.pid is not None
    os.killpg(process.pid, number)
    process.join(PATIENCE)
    assert process.exitcode == CODES[number], log.read_text()
    says_one_sentence(log, number)
    for pid in begun.read_text().split():
        assert gone(int(pid)), "a worker, or a program it ran, is left"


def pause(module: str, function: str, here: Path) -> None:
    """Make this function report that it was reached and go no further."""

    def wait(*arguments: object, **settings: object) -> None:
        here.write_text("here\n")
        signals.pause(600)

    setattr(importlib.import_module(module), function, wait)


SEAL = ("bertwright.core.artifact", "seal")


@pytest.mark.parametrize(
    ("verb", "place", "number"),
    [
        ("vocab", SEAL, signal.SIGTERM),
        ("examples", SEAL, signal.SIGHUP),
        ("evaluate", SEAL, signal.SIGUSR1),
        ("export", SEAL, signal.SIGUSR2),
        ("report", ("bertwright.report.run", "run"), signal.SIGINT),
    ],
)
def test_a_stage_ends_with_one_sentence_and_goes_on(
    verb: str, place: tuple[str, str], number: signal.Signals, small_recipe: Path, finished: Path, tmp_path: Path
) -> None:
    folder, log, here = Path(shutil.copytree(finished, tmp_path / "run")), tmp_path / "log", tmp_path / "here"
    if verb != "report":
        shutil.rmtree(folder / verb)
    command = (verb, small_recipe, "--out", folder)
    process = forked(log, *command, before=partial(pause, *place, here))
    wait_for(here, 1, process, log)
    stop(process, number)
    assert process.exitcode == CODES[number], log.read_text()
    says_one_sentence(log, number)
    process = forked(log, *command)
    process.join()
    assert process.exitcode == 0, log.read_text()
    assert not list(folder.rglob("*.draft")) and not list(folder.rglob("*.tmp"))


def test_convert_ends_with_one_sentence_and_leaves_nothing(finished: Path, tmp_path: Path) -> None:
    log, here, made = tmp_path / "log", tmp_path / "here", tmp_path / "made"
    process = forked(
        log,
        *("convert", finished, made / "hdf5", "--to", "hdf5"),
        before=partial(pause, "bertwright.formats.export", "write_json", here),
    )
    wait_for(here, 1, process, log)
    stop(process, signal.SIGTERM)
    assert process.exitcode == 75, log.read_text()
    says_one_sentence(log, signal.SIGTERM)
    assert list(made.iterdir()) == []


def stop(process: ForkServerProcess, number: signal.Signals) -> None:
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(PATIENCE)


@pytest.mark.parametrize(
    ("number", "beside"), [(signal.SIGHUP, "false"), (signal.SIGUSR1, "true"), (signal.SIGUSR2, "false")]
)
def test_training_saves_first(
    number: signal.Signals, beside: str, small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder, log = small_examples(tmp_path / "run"), tmp_path / "log"
    long = ("train.phases.0.steps=4000", "train.checkpoint_every=4000", "train.evaluate_every=4000")
    process = forked(log, "train", small_recipe, *long, f"train.save_async={beside}", "--out", folder)
    wait_for(folder / "train" / "metrics.jsonl", 3, process, log)
    stop(process, number)
    assert process.exitcode == 75, log.read_text()
    said = log.read_text()
    assert "stopped by a signal after step" in said and "everything is saved" in said and "Traceback" not in said
    assert len(list((folder / "train" / "checkpoints").glob("step-*"))) == 1
