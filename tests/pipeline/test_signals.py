"""SIGTERM and SIGINT during training, and two processes on one folder."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.pipeline.command import bertwright, start

from bertwright import Recipe, run
from bertwright.core.files import sha256

STEPS = ("train.phases.0.steps=150", "train.checkpoint_every=50", "train.evaluate_every=100")


def wait_for_step(folder: Path, step: int, process: subprocess.Popen[str]) -> None:
    """Return when the metrics have the line of `step` (one per step)."""
    metrics = folder / "train" / "metrics.jsonl"
    while not metrics.is_file() or metrics.read_bytes().count(b"\n") < step:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_a_signal_saves_and_the_same_command_goes_on(
    small_recipe: Path, small_examples: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = small_examples(tmp_path / "run")
    command = ("train", small_recipe, *STEPS, "--out", folder)
    for number, step, code in ((signal.SIGTERM, 5, 75), (signal.SIGINT, 60, 130)):
        process = start(*command)
        wait_for_step(folder, step, process)
        if number == signal.SIGTERM:
            process.send_signal(signal.SIGSTOP)  # or it might finish in the meantime
            second = bertwright(*command)
            process.send_signal(signal.SIGCONT)
            assert second.code == 4
            assert f"another process is working in {folder}" in second.err and "another --out" in second.err
        process.send_signal(number)
        out, err = process.communicate()
        assert (process.returncode, out) == (code, ""), err
        assert "stopped by a signal after step" in err and "everything is saved" in err
        assert "Run the same command again" in err and "Traceback" not in err
        assert not (folder / "train" / "manifest.json").exists()
    last = bertwright(*command)
    assert last.code == 0, last.err
    assert "train: resuming from step-" in last.err

    undisturbed = small_examples(tmp_path / "undisturbed")
    run(Recipe.load(small_recipe, STEPS), undisturbed, ["train"])
    model = Path("train") / "model" / "model.safetensors"
    assert sha256(folder / model) == sha256(undisturbed / model)
