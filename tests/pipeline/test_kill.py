"""kill -9 at random moments, then the same command again: the result is bit-identical to that of an undisturbed run."""

import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipeline.command import forked

from bertwright.core.files import sha256

KILLS = [pytest.param(4, id="4"), pytest.param(200, id="200", marks=pytest.mark.slow)]
SHARDS = ("corpus", "corpus.workers=2", "corpus.shard_bytes=8192")
Start = Callable[[Path], tuple[object, ...]]


def finish(log: Path, *arguments: object) -> float:
    """Run a command to completion; returns the seconds it took."""
    began = time.monotonic()
    process = forked(log, *arguments)
    process.join()
    assert process.exitcode == 0, log.read_text()
    return time.monotonic() - began


def results(folder: Path, *names: str) -> dict[str, str]:
    found = {path.relative_to(folder).as_posix(): sha256(path) for name in names for path in folder.glob(name)}
    assert len(found) >= len(names), f"there is no {names} in {folder}"
    return found


def kill_and_compare(
    command: Start, prepare: Callable[[Path], Path], names: tuple[str, ...], kills: int, tmp_path: Path
) -> None:
    """Kill `command(folder)` `kills` times; whenever it finishes, its results must be the undisturbed ones."""
    log = tmp_path / "log"
    undisturbed = prepare(tmp_path / "undisturbed")
    seconds = finish(log, *command(undisturbed))
    expected = results(undisturbed, *names)
    chance = random.Random(f"{names} {kills}")
    folder, struck = prepare(tmp_path / "killed"), 0
    while struck < kills:
        process = forked(log, *command(folder))
        process.join(chance.uniform(0, seconds))
        process.kill()
        process.join()
        assert process.exitcode in (0, -9), log.read_text()
        struck += process.exitcode == -9
        if process.exitcode == 0:
            assert results(folder, *names) == expected
            shutil.rmtree(folder)
            folder = prepare(folder)
    finish(log, *command(folder))
    assert results(folder, *names) == expected
    # A worker whose parent dies while it starts fails in multiprocessing's code, which is fine; ours must not fail.
    assert not re.search(r'File ".*/bertwright/', log.read_text()), log.read_text()


@pytest.mark.parametrize("kills", KILLS)
def test_the_corpus_survives_kill_9(kills: int, small_recipe: Path, tmp_path: Path) -> None:
    def command(folder: Path) -> tuple[object, ...]:
        verb, *overrides = SHARDS
        return (verb, small_recipe, *overrides, "--out", folder)

    kill_and_compare(command, lambda folder: folder, ("corpus/shards/*",), kills, tmp_path)


@pytest.mark.parametrize("beside", ["false", "true"])
@pytest.mark.parametrize("kills", KILLS)
def test_training_survives_kill_9(
    kills: int, beside: str, small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    """With checkpoints written synchronously and in the background."""

    def command(folder: Path) -> tuple[object, ...]:
        steps = ("train.phases.0.steps=32", "train.phases.1.steps=16")
        return ("train", small_recipe, *steps, f"train.save_async={beside}", "--out", folder)

    results = ("train/model/model.safetensors", "train/guesses.jsonl")
    kill_and_compare(command, small_examples, results, kills, tmp_path)
